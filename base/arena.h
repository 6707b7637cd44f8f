/* Memory that lives as long as a command: allocated piece by piece, freed at once. */
#ifndef KKT_BASE_ARENA_H
#define KKT_BASE_ARENA_H

#include <stddef.h>

#include "base/error.h"

typedef struct kkt_arena kkt_arena;

/* Never returns NULL: out of memory ends the process with one line on standard error and exit
 * code 3, for there is nothing a command could still do. */
kkt_arena *kkt_arena_open(void);
void kkt_arena_close(kkt_arena *arena); /* NULL is a no-op */

/* Zeroed, aligned for any type; `size` 0 gives a unique pointer. Never NULL. */
void *kkt_arena_alloc(kkt_arena *arena, size_t size);
/* Zeroed array; the product is checked for overflow. */
void *kkt_arena_array(kkt_arena *arena, size_t count, size_t size);
/* Room for one row more of an array that grows by doubling: `rows` itself where `count` is below
 * `*capacity`, else a copy with twice the room (at least 16 rows), and `*capacity` is that. The old
 * array stays where it is. `rows` may be NULL where `count` is 0. */
void *kkt_arena_grow(kkt_arena *arena, void *rows, size_t count, size_t *capacity, size_t size);
char *kkt_arena_strdup(kkt_arena *arena, const char *text); /* NULL gives NULL */
char *kkt_arena_printf(kkt_arena *arena, const char *format, ...) KKT_PRINTF(2, 3);

#endif
