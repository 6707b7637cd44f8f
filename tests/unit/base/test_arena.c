/* Arrays of an arena that grow row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

static void grows_and_keeps_rows(void **state) {
    (void)state;
    enum { ROWS = 1000 };
    kkt_arena *arena = kkt_arena_open();
    int64_t *rows = NULL;
    size_t capacity = 0, moves = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const int64_t *before = rows;
        rows = kkt_arena_grow(arena, rows, i, &capacity, sizeof *rows);
        assert_true(capacity > i);
        moves += rows != before;
        rows[i] = (int64_t)(i * i);
    }
    assert_int_equal(moves, 7); /* 16, 32, ... 1024 rows */
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(rows[i], (int64_t)(i * i));
    kkt_arena_close(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(grows_and_keeps_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
