/* Enumeration, constraints, fixed parameters and ordinals of a space. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic.h"
#include "tuner/engine/space.h"

static kkt_space *open_space(const char *fixed) {
    kkt_values problem;
    kkt_space *space = NULL;
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_params_defaults(&synthetic_kernel.problem, &problem);
    assert_int_equal(kkt_space_open(&synthetic_kernel, &synthetic_variant, &problem, arch,
                                    kkt_device_first(arch), fixed, &space, NULL),
                     KKT_OK);
    return space;
}

typedef struct rejects {
    int64_t constraint, memory;
} rejects;

static void count_reject(void *context, const kkt_values *config, const char *reason) {
    rejects *r = context;
    if (strstr(reason, "pad 1")) {
        assert_int_equal(config->v[P_PAD], 1);
        r->constraint++;
    } else {
        assert_non_null(strstr(reason, "shared memory"));
        r->memory++;
    }
}

/* Largest ring that fits: 227 KiB opt-in. */
static bool fits(int64_t chunk, int64_t stages) {
    return chunk * 512 * stages <= 227 * 1024;
}

static void every_point_once(void **state) {
    (void)state;
    kkt_space *space = open_space(NULL);
    rejects r = {0, 0};
    int64_t points = 0;
    int64_t last = -1;
    kkt_point point;
    while (kkt_space_next(space, count_reject, &r, &point)) {
        kkt_values back;
        kkt_space_decode(space, point.ordinal, &back);
        assert_true(kkt_values_equal(&synthetic_variant.params, &back, &point.config));
        assert_true(point.ordinal > last);
        assert_true(fits(point.config.v[P_CHUNK], point.config.v[P_STAGES]));
        last = point.ordinal;
        points++;
    }
    assert_int_equal(kkt_space_raw_size(space), 4 * 5 * 6 * 4 * 5 * 2);
    assert_int_equal(r.constraint, 4 * 5 * 6 * 3 * 5);
    int64_t unfit = 0;
    for (int64_t c = 16; c <= 128; c *= 2) {
        for (int64_t s = 1; s <= 6; s++) {
            unfit += !fits(c, s);
        }
    }
    assert_true(unfit > 0);
    assert_int_equal(r.memory, unfit * 5 * 5 * 5);
    assert_int_equal(points + r.constraint + r.memory, kkt_space_raw_size(space));
    kkt_space_close(space);
}

/* What the defaults cannot have, and not what most configurations are turned down for. */
static void tells_why_it_is_empty(void **state) {
    (void)state;
    kkt_space *space = open_space("chunk=128,stages=6");
    char reason[240];
    kkt_point point;
    rejects r = {0, 0};
    assert_false(kkt_space_next(space, count_reject, &r, &point));
    kkt_space_why_empty(space, reason, sizeof reason);
    assert_non_null(strstr(reason, "shared memory"));
    kkt_space_close(space);
    space = open_space("pad=1,swizzle=1");
    kkt_space_why_empty(space, reason, sizeof reason);
    assert_non_null(strstr(reason, "pad 1"));
    kkt_space_close(space);
    space = open_space(NULL);
    kkt_space_why_empty(space, reason, sizeof reason);
    assert_string_equal(reason, "");
    kkt_space_close(space);
}

static void fixed_parameters_hold(void **state) {
    (void)state;
    kkt_space *space = open_space("chunk=32,order=3");
    kkt_point point;
    int64_t points = 0;
    assert_int_equal(kkt_space_raw_size(space), 5 * 6 * 4 * 2);
    while (kkt_space_next(space, NULL, NULL, &point)) {
        assert_int_equal(point.config.v[P_CHUNK], 32);
        assert_int_equal(point.config.v[P_ORDER], 3);
        points++;
    }
    assert_int_equal(points, 5 * 6 * 5);
    kkt_space_close(space);
}

static void points_by_configuration(void **state) {
    (void)state;
    kkt_space *space = open_space("chunk=32");
    kkt_values config;
    kkt_point point;
    char reason[240];
    kkt_params_defaults(&synthetic_variant.params, &config);
    assert_false(kkt_space_point(space, &config, &point, reason, sizeof reason));
    assert_non_null(strstr(reason, "chunk"));
    config.v[P_CHUNK] = 32;
    assert_true(kkt_space_point(space, &config, &point, reason, sizeof reason));
    kkt_values back;
    kkt_space_decode(space, point.ordinal, &back);
    assert_true(kkt_values_equal(&synthetic_variant.params, &back, &config));
    kkt_space_close(space);
}

static void bad_fixed_text(void **state) {
    (void)state;
    kkt_values problem;
    kkt_space *space = NULL;
    kkt_error err = {0};
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_params_defaults(&synthetic_kernel.problem, &problem);
    assert_int_equal(kkt_space_open(&synthetic_kernel, &synthetic_variant, &problem, arch,
                                    kkt_device_first(arch), "chunk=48", &space, &err),
                     KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "48"));
    assert_null(space);
}

static bool go_on(void *context) {
    int *left = context;
    return (*left)-- > 0;
}

static int64_t walk(kkt_space *space) {
    kkt_point point;
    int64_t points = 0;
    for (kkt_space_rewind(space); kkt_space_next(space, NULL, NULL, &point);) {
        points++;
    }
    return points;
}

static void a_walk_ends_where_it_is_told_to(void **state) {
    (void)state;
    kkt_space *space = open_space(NULL);
    int64_t all = walk(space);
    int left = 1; /* a first look, and not a second one */
    kkt_space_limit(space, go_on, &left);
    assert_in_range(walk(space), 1, all - 1);
    assert_true(kkt_space_cut(space));
    assert_int_equal(walk(space), 0);
    kkt_space_limit(space, NULL, NULL);
    assert_int_equal(walk(space), all);
    assert_false(kkt_space_cut(space));
    kkt_space_close(space);
}

static void endless_footprint(const kkt_values *problem, const kkt_values *config,
                              const kkt_arch *arch, kkt_footprint *out) {
    synthetic_footprint(problem, config, arch, out);
    if (config->v[P_THREADS] == 512) {
        out->hbm_read_bytes = (double)INFINITY;
    }
}

static void expect_no_time(void *context, const kkt_values *config, const char *reason) {
    if (config->v[P_THREADS] == 512 && strstr(reason, "no time")) {
        ++*(int64_t *)context;
    }
}

/* A search could make nothing of it. */
static void an_endless_prediction_is_refused(void **state) {
    (void)state;
    kkt_variant variant = synthetic_variant;
    variant.footprint = endless_footprint;
    kkt_values problem;
    kkt_space *space = NULL;
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_params_defaults(&synthetic_kernel.problem, &problem);
    assert_int_equal(kkt_space_open(&synthetic_kernel, &variant, &problem, arch,
                                    kkt_device_first(arch), "chunk=16,stages=1", &space, NULL),
                     KKT_OK);
    kkt_point point;
    int64_t refused = 0;
    int64_t points = 0;
    while (kkt_space_next(space, expect_no_time, &refused, &point)) {
        assert_true(point.config.v[P_THREADS] != 512);
        points++;
    }
    assert_int_equal(points, 4 * 25); /* 5 orders, and of pad and swizzle 5 of 8 go together */
    assert_int_equal(refused, 25);
    kkt_space_close(space);
}

/* The parameters of the made-up kernel, three of which have an effect only where others do: with
 * fallbacks in the middle, at the end and at the beginning of their values. */
static const kkt_param dependent_params[] = {
    {.name = "chunk", .count = 2, .values = {16, 32}, .fallback = 16},
    {.name = "threads", .count = 2, .values = {32, 64}, .fallback = 64},
    {.name = "stages", .count = 3, .values = {1, 2, 3}, .fallback = 2},
    {.name = "swizzle",
     .count = 4,
     .values = {0, 1, 2, 3},
     .fallback = 2,
     .depends_on = 1 + P_STAGES,
     .depends_values = 1 << 1 | 1 << 3},
    {.name = "order",
     .count = 5,
     .values = {0, 1, 2, 3, 4},
     .fallback = 4,
     .depends_on = 1 + P_STAGES,
     .depends_values = 1 << 2},
    {.name = "pad",
     .count = 2,
     .values = {0, 1},
     .fallback = 0,
     .depends_on = 1 + P_SWIZZLE,
     .depends_values = 1 << 0 | 1 << 3},
};

static bool differs_in_effect(const kkt_values *config) {
    for (size_t i = 0; i < sizeof dependent_params / sizeof *dependent_params; i++) {
        const kkt_param *param = &dependent_params[i];
        if (param->depends_on > 0 && config->v[i] != param->fallback &&
            !(param->depends_values >> config->v[param->depends_on - 1] & 1)) {
            return false;
        }
    }
    return true;
}

typedef struct expected {
    const kkt_space *space;
    int64_t at; /* the ordinal that was seen last */
} expected;

/* What comes next in the space by brute force must be this configuration. */
static void expect_next(void *context, const kkt_values *config, const char *reason) {
    expected *e = context;
    kkt_values decoded;
    (void)reason;
    do {
        assert_in_range(++e->at, 0, kkt_space_raw_size(e->space) - 1);
        kkt_space_decode(e->space, e->at, &decoded);
    } while (!differs_in_effect(&decoded));
    assert_memory_equal(decoded.v, config->v,
                        sizeof dependent_params / sizeof *dependent_params * sizeof decoded.v[0]);
}

static void walks_pass_by_what_has_no_effect(void **state) {
    (void)state;
    static const char *const held[] = {NULL, "stages=2", "stages=3,threads=32"};
    kkt_variant variant = synthetic_variant;
    variant.params = (kkt_param_table){"parameter", dependent_params,
                                       sizeof dependent_params / sizeof *dependent_params};
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_values problem;
    kkt_params_defaults(&synthetic_kernel.problem, &problem);
    for (size_t h = 0; h < sizeof held / sizeof *held; h++) {
        kkt_space *space = NULL;
        kkt_point point;
        assert_int_equal(kkt_space_open(&synthetic_kernel, &variant, &problem, arch,
                                        kkt_device_first(arch), held[h], &space, NULL),
                         KKT_OK);
        for (int twice = 0; twice < 2; twice++) {
            expected e = {space, -1};
            while (kkt_space_next(space, expect_next, &e, &point)) {
                expect_next(&e, &point.config, "");
                assert_int_equal(point.ordinal, e.at);
            }
            kkt_values decoded;
            while (++e.at < kkt_space_raw_size(space)) { /* and nothing is left */
                kkt_space_decode(space, e.at, &decoded);
                assert_false(differs_in_effect(&decoded));
            }
            kkt_space_rewind(space);
        }
        kkt_space_close(space);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_ends_where_it_is_told_to),
        cmocka_unit_test(an_endless_prediction_is_refused),
        cmocka_unit_test(every_point_once),
        cmocka_unit_test(walks_pass_by_what_has_no_effect),
        cmocka_unit_test(tells_why_it_is_empty),
        cmocka_unit_test(fixed_parameters_hold),
        cmocka_unit_test(points_by_configuration),
        cmocka_unit_test(bad_fixed_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
