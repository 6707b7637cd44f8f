#include "golden.h"

#include "model/ledger.h"

static void compare_row(const kkt_json *row) {
    kkt_ledger l;
    kkt_error err = {0};
    assert_int_equal(kkt_ledger_compute(golden_get(row, "chunk"), golden_get(row, "base"),
                                        golden_get(row, "dk"), golden_get(row, "dv"), 2, &l, &err),
                     KKT_OK);
    golden_int(row, "chain_row", l.chain_row);
    golden_int(row, "chain_recursive", l.chain_recursive);
    golden_int(row, "chain_flat", l.chain_flat);
    golden_int(row, "fma_row", l.fma_row);
    golden_int(row, "fma_recursive", l.fma_recursive);
    golden_int(row, "fma_flat", l.fma_flat);
    golden_int(row, "recursion_levels", l.recursion_levels);
    golden_int(row, "diagonal_blocks", l.diagonal_blocks);
    golden_int(row, "coupling_gemm_pairs", l.coupling_gemm_pairs);
    golden_real(row, "fma_inverse_per_token", l.fma_inverse_per_token);
    golden_int(row, "fma_main_per_token_seed", l.fma_main_per_token_seed);
    golden_int(row, "fma_main_per_token_full", l.fma_main_per_token_full);
    golden_real(row, "inverse_share_seed", l.inverse_share_seed);
    golden_real(row, "inverse_share_full", l.inverse_share_full);
    golden_real(row, "state_bytes_per_token", l.state_bytes_per_token);
    golden_int(row, "t_write_bytes_per_token", l.t_write_bytes_per_token);
    golden_int(row, "table_fp32_bytes", l.table_fp32_bytes);
    const kkt_json *registers = kkt_json_get(row, "table_regs_per_thread");
    golden_real(registers, "128", kkt_ledger_table_registers(l.chunk, 128));
    golden_real(registers, "256", kkt_ledger_table_registers(l.chunk, 256));
    golden_real(registers, "512", kkt_ledger_table_registers(l.chunk, 512));
}

static void test_golden_rows(void **state) {
    (void)state;
    kkt_json *root = golden_open("ledger.json");
    int rows = 0;
    for (const kkt_json *row = kkt_json_first(kkt_json_get(root, "ledger")); row;
         row = kkt_json_next(row), ++rows)
        compare_row(row);
    assert_int_equal(rows, 14);
    kkt_json_close(root);
}

/* Counts by simulating the algorithms, rather than by the closed forms. */
static int64_t simulate_row(int64_t n) {
    int64_t fma = 0;
    for (int64_t i = 1; i < n; ++i)     /* row of the inverse */
        for (int64_t j = 1; j < i; ++j) /* rows above, without the unit diagonal's */
            fma += j;                   /* its strictly lower entries */
    return fma;
}

static int64_t simulate_recursive(int64_t n, int64_t base) {
    if (n <= base)
        return simulate_row(n);
    return 2 * simulate_recursive(n / 2, base) + 2 * (n / 2) * (n / 2) * (n / 2);
}

static int64_t simulate_flat(int64_t n, int64_t base) {
    int64_t blocks = n / base, fma = blocks * simulate_row(base);
    for (int64_t i = 0; i < blocks; ++i)
        for (int64_t j = 0; j < i; ++j)
            fma += (i - j + 1) * base * base * base; /* sum over k in [j, i), then L_ii^-1 */
    return fma;
}

static void test_counts_match_simulation(void **state) {
    (void)state;
    for (int64_t base = 1; base <= 64; ++base)
        for (int64_t n = base; n <= 512; n *= 2) {
            assert_int_equal(kkt_inverse_fma_row(n), simulate_row(n));
            assert_int_equal(kkt_inverse_fma_recursive(n, base), simulate_recursive(n, base));
            assert_int_equal(kkt_inverse_fma_flat(n, base), simulate_flat(n, base));
        }
}

/* The figures the article prints, and values that are in no table. */
static void test_article_and_other_values(void **state) {
    (void)state;
    kkt_ledger l;
    assert_int_equal(kkt_ledger_compute(32, 16, 128, 128, 2, &l, NULL), KKT_OK);
    golden_near((double)l.fma_recursive / (double)l.fma_row, 1.88, 0.005);
    golden_near(l.inverse_share_seed, 0.007, 0.0005);
    assert_int_equal(kkt_ledger_compute(128, 16, 128, 128, 2, &l, NULL), KKT_OK);
    golden_near(l.inverse_share_seed, 0.076, 0.0005);
    golden_near(l.inverse_share_full, 0.045, 0.0005);
    assert_true(3 * kkt_ledger_table_registers(128, 128) == 384);
    assert_int_equal(kkt_ledger_compute(256, 32, 96, 64, 4, &l, NULL), KKT_OK);
    assert_int_equal(l.chain_recursive, 31 + 6);
    assert_int_equal(l.chain_flat, 31 + 14);
    assert_int_equal(l.fma_main_per_token_seed, 2 * 96 * 64 + 256 * 160);
    assert_true(l.state_bytes_per_token == 2.0 * 4 * 96 * 64 / 256);
    assert_int_equal(l.t_write_bytes_per_token, 1024);
    golden_near(kkt_ledger_table_registers(256, 384), 65536.0 / 384, 1e-12);
}

static void expect_error(int64_t chunk, int64_t base, int64_t dk, const char *text) {
    kkt_ledger l;
    kkt_error err = {0};
    assert_int_equal(kkt_ledger_compute(chunk, base, dk, 128, 2, &l, &err), KKT_ERR_INPUT);
    if (!strstr(err.message, text))
        fail_msg("'%s' does not say '%s'", err.message, text);
}

static void test_errors(void **state) {
    (void)state;
    expect_error(0, 1, 128, "chunk 0 is out of range");
    expect_error(5000, 16, 128, "must be 1 to 4096");
    expect_error(16, 32, 128, "base 32 is out of range");
    expect_error(16, 0, 128, "base 0 is out of range");
    expect_error(48, 16, 128, "power of two");
    expect_error(50, 16, 128, "chunk 50 cannot be halved down to base 16");
    expect_error(64, 16, 0, "head dimensions");
    expect_error(64, 16, 65537, "head dimensions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_rows),
        cmocka_unit_test(test_counts_match_simulation),
        cmocka_unit_test(test_article_and_other_values),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
