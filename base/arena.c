#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define BLOCK_BYTES ((size_t)65536)
#define ROWS_LEAST 16 /* of an array that grows */

typedef struct block {
    struct block *next;
    size_t capacity, used;
    max_align_t data[]; /* fixes the alignment of everything given out */
} block;

struct kkt_arena {
    block *blocks; /* the first one is being filled */
};

static size_t round_up(size_t size) {
    size_t align = sizeof(max_align_t);
    if (size == 0)
        size = 1;
    if (size > SIZE_MAX - align - sizeof(block))
        kkt_memory_exhausted();
    return (size + align - 1) / align * align;
}

static block *block_open(size_t capacity) {
    block *made = kkt_memory_alloc(sizeof(block) + capacity);
    made->capacity = capacity;
    return made;
}

kkt_arena *kkt_arena_open(void) {
    kkt_arena *arena = kkt_memory_alloc(sizeof *arena);
    arena->blocks = block_open(BLOCK_BYTES);
    return arena;
}

void kkt_arena_close(kkt_arena *arena) {
    if (!arena)
        return;
    for (block *each = arena->blocks; each;) {
        block *next = each->next;
        free(each);
        each = next;
    }
    free(arena);
}

void *kkt_arena_alloc(kkt_arena *arena, size_t size) {
    size_t need = round_up(size);
    block *first = arena->blocks;
    if (need > BLOCK_BYTES / 4) { /* a block of its own, behind the one being filled */
        block *own = block_open(need);
        own->used = need;
        own->next = first->next;
        first->next = own;
        return own->data;
    }
    if (first->capacity - first->used < need) {
        block *fresh = block_open(BLOCK_BYTES);
        fresh->next = first;
        arena->blocks = fresh;
        first = fresh;
    }
    char *place = (char *)first->data + first->used;
    first->used += need;
    return place;
}

void *kkt_arena_array(kkt_arena *arena, size_t count, size_t size) {
    if (size > 0 && count > SIZE_MAX / size)
        kkt_memory_exhausted();
    return kkt_arena_alloc(arena, count * size);
}

void *kkt_arena_grow(kkt_arena *arena, void *rows, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity)
        return rows;
    *capacity = *capacity < ROWS_LEAST ? ROWS_LEAST : 2 * *capacity;
    void *grown = kkt_arena_array(arena, *capacity, size);
    if (count > 0)
        memcpy(grown, rows, count * size);
    return grown;
}

char *kkt_arena_strdup(kkt_arena *arena, const char *text) {
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = kkt_arena_alloc(arena, size);
    memcpy(copy, text, size);
    return copy;
}

char *kkt_arena_printf(kkt_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        length = 0;
    char *text = kkt_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
