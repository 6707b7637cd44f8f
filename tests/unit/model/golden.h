/* Golden values for the model's tests: read once, compared member by member. */
#ifndef KKT_TESTS_MODEL_GOLDEN_H
#define KKT_TESTS_MODEL_GOLDEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"

static inline kkt_json *golden_open(const char *name) {
    char path[1024];
    char *text = NULL;
    size_t length = 0;
    kkt_json *root = NULL;
    kkt_error err = {0};
    snprintf(path, sizeof path, "%s/golden/%s", KKT_TEST_DATA, name);
    if (kkt_file_read(path, 1 << 20, &text, &length, &err) ||
        kkt_json_parse(text, length, name, &root, &err))
        fail_msg("%s", err.message);
    free(text);
    return root;
}

static inline void golden_int(const kkt_json *row, const char *key, int64_t actual) {
    int64_t expected;
    if (!kkt_json_int(row, key, &expected))
        fail_msg("golden row has no integer '%s'", key);
    if (expected != actual)
        fail_msg("%s: expected %lld, got %lld", key, (long long)expected, (long long)actual);
}

static inline void golden_real(const kkt_json *row, const char *key, double actual) {
    double expected;
    if (!kkt_json_real(row, key, &expected))
        fail_msg("golden row has no number '%s'", key);
    if (!(fabs(expected - actual) <= 1e-12 * fabs(expected)))
        fail_msg("%s: expected %.17g, got %.17g", key, expected, actual);
}

static inline void golden_near(double actual, double expected, double tolerance) {
    if (!(fabs(actual - expected) <= tolerance))
        fail_msg("expected %.9g within %g, got %.9g", expected, tolerance, actual);
}

static inline int64_t golden_get(const kkt_json *row, const char *key) {
    int64_t value;
    if (!kkt_json_int(row, key, &value))
        fail_msg("golden row has no integer '%s'", key);
    return value;
}

#endif
