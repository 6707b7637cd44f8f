/* Every piece is done once, whatever the number of pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/parallel.h"

enum { MOST = 1000 };

typedef struct pieces {
    int done[MOST];
} pieces;

static void count_piece(void *context, int64_t index) {
    ((pieces *)context)->done[index]++;
}

static void does_every_piece_once(void **state) {
    (void)state;
    static const int counts[] = {0, 1, 2, 17, MOST};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        pieces p = {{0}};
        kkt_parallel_for(counts[c], count_piece, &p);
        for (int i = 0; i < MOST; i++)
            assert_int_equal(p.done[i], i < counts[c]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(does_every_piece_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
