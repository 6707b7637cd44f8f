#include "golden.h"

#include "model/traffic.h"

static void compare_hbm(const kkt_json *row) {
    kkt_attention a = {.tokens = golden_get(row, "tokens"),
                       .sequences = 1,
                       .heads_k = golden_get(row, "heads_k"),
                       .heads_v = golden_get(row, "heads_v"),
                       .dk = golden_get(row, "dk"),
                       .dv = 128,
                       .element_bytes = 2,
                       .gated = true};
    if (strcmp(kkt_json_string(row, "kernel"), "kkt_solve") == 0) {
        int64_t chunk = golden_get(row, "chunk");
        golden_int(row, "bytes", kkt_traffic_solve_bytes(&a, chunk));
        golden_int(row, "flop", kkt_traffic_solve_flop(&a, chunk, 16));
    } else {
        assert_string_equal(kkt_json_string(row, "kernel"), "gdn_fwd");
        golden_int(row, "bytes", kkt_traffic_forward_bytes(&a));
    }
}

static void compare_stages(const kkt_json *row) {
    kkt_stage stages[KKT_STAGES_MAX];
    int count = kkt_stage_widths(golden_get(row, "chunk"), golden_get(row, "base"), stages);
    const kkt_json *expected = kkt_json_first(kkt_json_get(row, "stages"));
    for (int i = 0; i < count; ++i, expected = kkt_json_next(expected)) {
        assert_non_null(expected);
        assert_string_equal(kkt_json_string(expected, "kind"),
                            stages[i].coupling ? "coupling" : "substitution");
        golden_int(expected, "depth", stages[i].depth);
        golden_int(expected, "tasks", stages[i].tasks);
        golden_int(expected, "outputs", stages[i].outputs);
    }
    assert_null(expected);
}

static void compare_gemm(const kkt_json *row) {
    kkt_gemm_tile tile = {.bm = golden_get(row, "bm"),
                          .bn = golden_get(row, "bn"),
                          .bk = golden_get(row, "bk"),
                          .threads = (int)golden_get(row, "threads"),
                          .stages = (int)golden_get(row, "stages")};
    tile.operands_in_registers = strcmp(kkt_json_string(row, "operands"), "fragment") == 0;
    golden_real(row, "accumulator_regs", kkt_gemm_accumulator_registers(&tile));
    golden_real(row, "operand_fragment_regs", kkt_gemm_operand_registers(&tile, 2));
    golden_int(row, "smem_bytes", kkt_gemm_smem_bytes(&tile, 2));
}

static void compare_bank(const kkt_json *row) {
    int64_t offset;
    int wavefronts = kkt_bank_substitution(16, golden_get(row, "block_pad"), &offset);
    golden_int(row, "offset", offset);
    golden_int(row, "bank", offset % 32);
    golden_int(row, "wavefronts", wavefronts);
}

static void test_golden(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*compare)(const kkt_json *row);
        int rows;
    } arrays[] = {{"hbm", compare_hbm, 25},
                  {"stage_widths", compare_stages, 3},
                  {"gemm", compare_gemm, 4},
                  {"bank", compare_bank, 2}};
    kkt_json *root = golden_open("traffic.json");
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; ++i) {
        int rows = 0;
        for (const kkt_json *row = kkt_json_first(kkt_json_get(root, arrays[i].name)); row;
             row = kkt_json_next(row), ++rows)
            arrays[i].compare(row);
        assert_int_equal(rows, arrays[i].rows);
    }
    kkt_json_close(root);
}

static void test_formulas_off_the_table(void **state) {
    (void)state;
    kkt_attention a = {.tokens = 1000,
                       .sequences = 3,
                       .heads_k = 2,
                       .heads_v = 6,
                       .dk = 96,
                       .dv = 64,
                       .element_bytes = 2,
                       .gated = false};
    assert_int_equal(kkt_attention_chunks(&a, 64), 18); /* 333, 333, 334: six chunks each */
    assert_int_equal(kkt_traffic_solve_bytes(&a, 64), 1000 * (2 * 2 * 96 + 6 * (4 + 128)));
    assert_int_equal(kkt_traffic_forward_bytes(&a),
                     1000 * (4 * 2 * 96 + 6 * (4 * 64 + 4)) + 8 * 3 * 6 * 96 * 64);
    a.gated = true;
    assert_int_equal(kkt_traffic_solve_bytes(&a, 64),
                     1000 * (2 * 2 * 96 + 6 * (4 + 128)) + 4 * 1000 * 6);
    assert_int_equal(kkt_traffic_forward_t_bytes(&a, 64) - kkt_traffic_forward_bytes(&a),
                     1000 * (2 * 2 * 96 + 6 * (4 * 64 + 16)));
    assert_int_equal(kkt_traffic_solve_flop(&a, 64, 16), 18 * 6 * (2 * 64 * 64 * 96 + 2 * 84160));
    assert_true(kkt_traffic_forward_flop(&a, 64, 16) ==
                1000.0 * 6 * (4 * 64 * 160 + 6 * 96 * 64 + 2 * 1315));
}

/* The pipeline whose states go through HBM, tensor by tensor. */
static void test_materialized_kernels(void **state) {
    (void)state;
    const kkt_attention a = {.tokens = 32768,
                             .sequences = 2,
                             .heads_k = 16,
                             .heads_v = 64,
                             .dk = 128,
                             .dv = 96,
                             .element_bytes = 2,
                             .gated = true};
    const int64_t keys = INT64_C(32768) * 16 * 128 * 2;       /* q or k */
    const int64_t values = INT64_C(32768) * 64 * 96 * 2;      /* v, u, v_new or o */
    const int64_t w = INT64_C(32768) * 64 * 128 * 2;          /* w */
    const int64_t scalars = INT64_C(32768) * 64 * 4;          /* beta or g */
    const int64_t t = INT64_C(32768) * 64 * 32 * 2;           /* t at chunk 32 */
    const int64_t states = INT64_C(1024) * 64 * 128 * 96 * 2; /* h at chunk 32 */
    const int64_t ends = 2 * INT64_C(64) * 128 * 96 * 4;      /* h0 or ht */
    assert_int_equal(kkt_traffic_wu_bytes(&a, 32, false),
                     keys + values + 2 * scalars + t + w + values);
    assert_int_equal(kkt_traffic_wu_bytes(&a, 32, true), keys + values + scalars + t + w + values);
    assert_int_equal(kkt_traffic_state_bytes(&a, 32),
                     keys + w + values + scalars + ends + states + values + ends);
    assert_int_equal(kkt_traffic_output_bytes(&a, 32),
                     2 * keys + values + states + scalars + values);
    assert_int_equal(kkt_traffic_forward_given_t_bytes(&a, 32, false),
                     2 * keys + values + 2 * scalars + t + ends + values + ends);
    assert_int_equal(kkt_traffic_forward_given_t_bytes(&a, 32, true),
                     2 * keys + values + scalars + t + ends + values + ends);
}

/* The transposed store of the coupling's intermediate: 64 passes with rows of 16 words, 8 to 16
 * with rows of 17; block padding alone changes nothing there. */
static void test_transposed_store(void **state) {
    (void)state;
    assert_int_equal(kkt_bank_transposed_store(16, 16), 64);
    int padded = kkt_bank_transposed_store(16, 17);
    assert_true(padded >= 8 && padded <= 16);
}

static void test_wavefronts(void **state) {
    (void)state;
    int64_t word[32];
    for (int stride = 0; stride <= 33; ++stride) {
        for (int lane = 0; lane < 32; ++lane)
            word[lane] = (int64_t)lane * stride;
        int gcd = 32;
        while (stride % gcd)
            gcd /= 2;
        assert_int_equal(kkt_bank_wavefronts(word, 32), stride ? gcd : 1);
    }
    int64_t offset;
    assert_int_equal(kkt_bank_substitution(32, 0, &offset), 1);
    assert_int_equal(offset, 1024);
    assert_int_equal(kkt_bank_substitution(8, 0, &offset), 4);
    assert_int_equal(kkt_bank_substitution(8, 1, &offset), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_formulas_off_the_table),
        cmocka_unit_test(test_materialized_kernels),
        cmocka_unit_test(test_transposed_store),
        cmocka_unit_test(test_wavefronts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
