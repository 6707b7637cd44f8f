/* Moves: each value of each parameter once, claims as stated, points not twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/moves.h"

typedef struct fixture {
    kkt_arena *arena;
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_values problem, base;
    kkt_move_set set;
    kkt_error error;
} fixture;

static fixture f;

static int setup(void **state) {
    (void)state;
    memset(&f, 0, sizeof f);
    f.arena = kkt_arena_open();
    f.arch = kkt_arch_find("sm90");
    f.device = kkt_device_first(f.arch);
    if (kkt_kernel_parse("kkt_solve", &f.kernel, NULL) != KKT_OK)
        return -1;
    f.variant = f.kernel->variants[0];
    kkt_params_defaults(&f.kernel->problem, &f.problem);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kkt_arena_close(f.arena);
    return 0;
}

static kkt_status make(const char *base) {
    kkt_params_defaults(&f.variant->params, &f.base);
    assert_int_equal(
        kkt_params_parse(&f.variant->params, "couple=tf32,threads=128", &f.base, NULL, &f.error),
        KKT_OK);
    assert_int_equal(kkt_params_parse(&f.variant->params, base, &f.base, NULL, &f.error), KKT_OK);
    return kkt_moves_make(f.kernel, f.variant, &f.problem, &f.base, f.arch, f.device, f.arena,
                          &f.set, &f.error);
}

static int differing(const kkt_values *a, const kkt_values *b) {
    int count = 0;
    for (size_t i = 0; i < f.variant->params.count; i++)
        count += a->v[i] != b->v[i];
    return count;
}

static void moves_each_parameter_to_each_other_value(void **state) {
    (void)state;
    const kkt_param_table *table = &f.variant->params;
    assert_int_equal(make("chunk=64"), KKT_OK);
    size_t single = 0;
    size_t expected = 0;
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->params[i].name, "chunk") != 0)
            expected += table->params[i].count - 1;
    for (size_t i = 0; i < f.set.move_count; i++) {
        const kkt_move *move = &f.set.moves[i];
        if (move->claim != NULL)
            continue;
        const kkt_values *to = &f.set.points[move->to].config;
        assert_int_equal(move->from, 0);
        assert_int_equal(differing(&f.base, to), 1);
        assert_int_not_equal(kkt_params_get(table, to, move->param->name),
                             kkt_params_get(table, &f.base, move->param->name));
        assert_non_null(strstr(move->label, move->param->name));
        single++;
    }
    assert_int_equal(single, expected);
    assert_true(kkt_values_equal(table, &f.set.points[0].config, &f.base));
}

static void lists_each_configuration_once(void **state) {
    (void)state;
    assert_int_equal(make("chunk=64"), KKT_OK);
    for (size_t i = 0; i < f.set.point_count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(differing(&f.set.points[i].config, &f.set.points[j].config) > 0);
}

static const kkt_move *find(const char *label) {
    for (size_t i = 0; i < f.set.move_count; i++)
        if (f.set.moves[i].claim == NULL && strcmp(f.set.moves[i].label, label) == 0)
            return &f.set.moves[i];
    fail_msg("no move %s", label);
    return NULL;
}

static void says_why_a_move_cannot_be_had(void **state) {
    (void)state;
    assert_int_equal(make("chunk=64"), KKT_OK);
    const kkt_move *three = find("heads_per_block 1 -> 3");
    assert_non_null(strstr(f.set.points[three->to].reason, "does not divide"));
    assert_false(f.set.points[three->to].known);
    const kkt_move *two = find("heads_per_block 1 -> 2");
    assert_null(f.set.points[two->to].reason);
    assert_true(f.set.points[two->to].known);
    assert_true(f.set.points[two->to].prediction.predicted_us > 0);
    assert_non_null(f.set.points[find("transpose 0 -> 1")->to].reason); /* couple is tf32 */
}

static void refuses_a_base_that_cannot_be_had(void **state) {
    (void)state;
    assert_int_equal(make("chunk=64,heads_per_block=3"), KKT_ERR_INPUT);
    assert_non_null(strstr(f.error.message, "heads_per_block=3"));
    assert_non_null(strstr(f.error.message, "--config"));
}

/* Every comparison of every claim is found at its chunk: none names a parameter or a value that
 * the table does not have. */
static void finds_every_comparison(void **state) {
    (void)state;
    static const int64_t chunks[] = {16, 32, 64, 128};
    for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
        char base[32];
        size_t expected = 0;
        size_t found = 0;
        snprintf(base, sizeof base, "chunk=%d,threads=%d", (int)chunks[c],
                 chunks[c] == 128 ? 256 : 128);
        assert_int_equal(make(base), KKT_OK);
        for (size_t i = 0; i < f.kernel->claim_count; i++)
            for (size_t j = 0; j < f.kernel->claims[i].count; j++) {
                int64_t chunk = f.kernel->claims[i].comparisons[j].chunk;
                expected += chunk == 0 || chunk == chunks[c];
            }
        for (size_t i = 0; i < f.set.move_count; i++)
            found += f.set.moves[i].claim != NULL;
        assert_int_equal(found, expected);
    }
}

/* From a base through shared memory both sides of every claim can be had, at some chunk at least.
 */
static void can_decide_every_claim(void **state) {
    (void)state;
    static const char *const bases[] = {"chunk=32", "chunk=64", "chunk=128,threads=256"};
    size_t possible[64] = {0};
    assert_true(f.kernel->claim_count > 0 && f.kernel->claim_count <= 64);
    for (size_t b = 0; b < 3; b++) {
        assert_int_equal(make(bases[b]), KKT_OK);
        for (size_t i = 0; i < f.set.move_count; i++) {
            const kkt_move *move = &f.set.moves[i];
            if (move->claim != NULL && f.set.points[move->from].reason == NULL &&
                f.set.points[move->to].reason == NULL && move->from != move->to)
                possible[move->claim - f.kernel->claims]++;
        }
    }
    for (size_t i = 0; i < f.kernel->claim_count; i++) {
        assert_non_null(f.kernel->claims[i].name);
        assert_true(f.kernel->claims[i].count > 0);
        if (possible[i] == 0)
            fail_msg("claim %s cannot be decided anywhere", f.kernel->claims[i].name);
    }
}

static void leaves_out_claims_of_other_variants(void **state) {
    (void)state;
    static const kkt_comparison foreign[] = {
        {.from = "stages=1", .to = "stages=2", .expect = KKT_EXPECT_LOWER},
        {.from = "", .to = "heads_per_block=2", .expect = KKT_EXPECT_LOWER, .condition = "own"},
    };
    static const kkt_claim claims[] = {{.name = "a",
                                        .statement = "A.",
                                        .figure = KKT_FIGURE_TIME,
                                        .comparisons = foreign,
                                        .count = 2}};
    kkt_kernel kernel = *f.kernel;
    kernel.claims = claims;
    kernel.claim_count = 1;
    f.kernel = &kernel;
    assert_int_equal(make("chunk=64"), KKT_OK);
    const kkt_move *last = &f.set.moves[f.set.move_count - 1];
    assert_ptr_equal(last->claim, &claims[0]);
    assert_string_equal(last->label, "own");
    assert_int_equal(last->from, 0);
    assert_ptr_equal(f.set.moves[f.set.move_count - 2].claim, NULL);
    assert_int_equal(last->to, find("heads_per_block 1 -> 2")->to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moves_each_parameter_to_each_other_value, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_each_configuration_once, setup, teardown),
        cmocka_unit_test_setup_teardown(says_why_a_move_cannot_be_had, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_a_base_that_cannot_be_had, setup, teardown),
        cmocka_unit_test_setup_teardown(finds_every_comparison, setup, teardown),
        cmocka_unit_test_setup_teardown(can_decide_every_claim, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_out_claims_of_other_variants, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
