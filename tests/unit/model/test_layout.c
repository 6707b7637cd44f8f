#include "golden.h"

#include "model/layout.h"

static void compare_row(const kkt_json *row) {
    kkt_layout_query query = {.chunk = golden_get(row, "chunk"),
                              .dk = 128,
                              .block_dv = 64,
                              .element_bytes = 2,
                              .buffers = (int)golden_get(row, "buffers")};
    kkt_layout layout;
    assert_true(kkt_layout_compute(kkt_layout_find("seed_warp_specialized"), &query, &layout));
    golden_int(row, "total", layout.total);
    const kkt_json *parts = kkt_json_get(row, "parts");
    assert_int_equal(kkt_json_count(parts), layout.part_count);
    for (int i = 0; i < layout.part_count; ++i)
        golden_int(parts, layout.parts[i].name, layout.parts[i].bytes);
}

static void test_golden_rows(void **state) {
    (void)state;
    kkt_json *root = golden_open("published_layouts.json");
    int rows = 0;
    for (const kkt_json *row = kkt_json_first(kkt_json_get(root, "seed_warp_specialized")); row;
         row = kkt_json_next(row), ++rows)
        compare_row(row);
    assert_int_equal(rows, 8);
    kkt_json_close(root);
}

/* The article's table: blocks per SM by shared memory for C = 32 and 64, double-buffered. */
static void test_article_blocks_per_sm(void **state) {
    (void)state;
    static const struct {
        const char *arch;
        int at_32, at_64, at_64_single;
    } rows[] = {{"sm89", 1, 0, 1}, {"sm80", 2, 1, 1}, {"sm90", 3, 1, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const kkt_arch *arch = kkt_arch_find(rows[i].arch);
        kkt_layout_query query = {.chunk = 32, .dk = 128, .block_dv = 64, .element_bytes = 2};
        kkt_layout layout;
        const kkt_layout_source *source = kkt_layout_find("seed_warp_specialized");
        query.buffers = 2;
        assert_true(kkt_layout_compute(source, &query, &layout));
        assert_int_equal(kkt_layout_blocks_per_sm(&layout, arch), rows[i].at_32);
        query.chunk = 64;
        assert_true(kkt_layout_compute(source, &query, &layout));
        assert_int_equal(kkt_layout_blocks_per_sm(&layout, arch), rows[i].at_64);
        query.buffers = 1;
        assert_true(kkt_layout_compute(source, &query, &layout));
        assert_int_equal(kkt_layout_blocks_per_sm(&layout, arch), rows[i].at_64_single);
    }
}

static void expect_kib(const char *name, int64_t chunk, int64_t block_dv, int buffers, double kib,
                       double tolerance) {
    kkt_layout_query query = {
        .chunk = chunk, .dk = 128, .block_dv = block_dv, .element_bytes = 2, .buffers = buffers};
    kkt_layout layout;
    assert_true(kkt_layout_compute(kkt_layout_find(name), &query, &layout));
    int64_t sum = 0;
    for (int i = 0; i < layout.part_count; ++i)
        sum += layout.parts[i].bytes;
    assert_int_equal(sum, layout.total);
    golden_near((double)layout.total / 1024, kib, tolerance);
}

static void test_published_totals(void **state) {
    (void)state;
    expect_kib("flashqla_fwd", 64, 32, 2, 117.6, 1.5);
    expect_kib("flashqla_fwd", 64, 64, 2, 145.6, 1.5);
    expect_kib("flashqla_fwd", 64, 128, 2, 201.6, 1.5);
    expect_kib("flashqla_fwd", 32, 32, 2, 56.8, 1.5);
    expect_kib("flashqla_fwd", 32, 64, 2, 74.8, 1.5);
    expect_kib("flashqla_fwd", 32, 128, 2, 110.8, 1.5);
    expect_kib("flashqla_kkt_solve", 64, 64, 1, 42.6, 0.05);
    expect_kib("flashqla_kkt_solve", 32, 64, 1, 15.3125, 1e-9);
}

static void test_what_does_not_exist(void **state) {
    (void)state;
    kkt_layout_query query = {
        .chunk = 48, .dk = 128, .block_dv = 64, .element_bytes = 2, .buffers = 1};
    kkt_layout layout;
    assert_false(kkt_layout_compute(kkt_layout_find("flashqla_kkt_solve"), &query, &layout));
    assert_false(kkt_layout_compute(kkt_layout_find("flashqla_fwd"), &query, &layout));
    assert_null(kkt_layout_find("nothing"));
    assert_null(kkt_layout_find(NULL));
}

/* A footprint's layout: own buffers sum to the launch's shared memory, overlays cost nothing. */
static void test_from_footprint(void **state) {
    (void)state;
    kkt_footprint fp = {.chunk = 64, .threads = 128, .static_smem_bytes = 48};
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "k", 64, 128, 2)->stages = 2;
    kkt_footprint_buffer(&fp, KKT_PLACE_REGISTER, "acc", 64, 64, 4);
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "odd", 1, 3, 4);
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "t", 64, 64, 4)->overlays = 1;
    kkt_layout layout;
    kkt_layout_from_footprint("mine", &fp, 0, 1, &layout);
    assert_int_equal(layout.total, 2 * 64 * 128 * 2 + 16 + 48);
    assert_int_equal(layout.total, kkt_footprint_smem_bytes(&fp) + fp.static_smem_bytes);
    assert_int_equal(layout.part_count, 4);
    assert_string_equal(layout.parts[2].reuses, "k");
    assert_int_equal(layout.parts[2].bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_rows),      cmocka_unit_test(test_article_blocks_per_sm),
        cmocka_unit_test(test_published_totals), cmocka_unit_test(test_what_does_not_exist),
        cmocka_unit_test(test_from_footprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
