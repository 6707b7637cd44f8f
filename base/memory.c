#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kkttune/status.h"

_Noreturn void kkt_memory_exhausted(void) {
    fputs("kkttune: out of memory; free some, or ask for a smaller problem\n", stderr);
    exit(KKT_ERR_ENVIRONMENT);
}

void *kkt_memory_alloc(size_t size) {
    void *block = calloc(1, size > 0 ? size : 1);
    if (!block)
        kkt_memory_exhausted();
    return block;
}

void *kkt_memory_resize(void *block, size_t size) {
    void *moved = realloc(block, size > 0 ? size : 1);
    if (!moved)
        kkt_memory_exhausted();
    return moved;
}

char *kkt_memory_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = kkt_memory_alloc(size);
    memcpy(copy, text, size);
    return copy;
}
