/* kkt_reason against snprintf, in rooms of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"

enum { ROOM = 96 };

#define SAME(...)                                                                                  \
    do {                                                                                           \
        for (size_t size = 1; size <= ROOM; size++) {                                              \
            char ours[ROOM + 1], theirs[ROOM + 1];                                                 \
            memset(ours, '#', sizeof ours);                                                        \
            memset(theirs, '#', sizeof theirs);                                                    \
            kkt_reason(ours, size, __VA_ARGS__);                                                   \
            snprintf(theirs, size, __VA_ARGS__);                                                   \
            assert_string_equal(ours, theirs);                                                     \
            assert_int_equal(ours[size], '#'); /* nothing behind the room */                       \
        }                                                                                          \
    } while (0)

static void says_what_snprintf_says(void **state) {
    (void)state;
    SAME("%s", "");
    SAME("no marks at all");
    SAME("base=%lld is above chunk=%lld", 32LL, 16LL);
    SAME("%s: %d of %d, %lld of %lld", "sm90", 0, INT_MIN, LLONG_MIN, LLONG_MAX);
    SAME("%ld%ld%s%s", LONG_MIN, 7L, "", "end");
    SAME("%" PRId64 " is no multiple of %" PRId64, INT64_C(-5), INT64_C(64));
    SAME("%d", INT_MAX);
    SAME("%s%s", "a word that is longer than all of the smaller rooms", " and one more");
}

/* Whatever else there is in a format is left to the C library, also behind what is known. */
static void other_marks(void **state) {
    (void)state;
    SAME("%g us, which is no time", 0.5);
    SAME("%s is %.2f, %d", "x", 2.0 / 3, 9);
    SAME("%d %% of %s", 40, "them");
    SAME("%.*s|%5d|%zu|%x", 3, "abcdef", 42, (size_t)7, 255U);
}

static void nothing_for_nobody(void **state) {
    (void)state;
    char untouched = '#';
    kkt_reason(NULL, 0, "%s", "nobody asks");
    kkt_reason(&untouched, 0, "%d", 5);
    assert_int_equal(untouched, '#');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_snprintf_says),
        cmocka_unit_test(other_marks),
        cmocka_unit_test(nothing_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
