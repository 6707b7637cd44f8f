/* Bytes of A and B from HBM, wave by wave: counted by hand for a few tiles, and against the
 * counters of the rows that ship, whose errors are printed (docs/model.md tells them). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "kernels/gemm/gemm.h"
#include "kernels/kernel.h"
#include "model/style.h"

#define RECORDED KKT_TEST_DATA "/../db/reference/sm90_h200.jsonl"

enum { LINE_BYTES = 1 << 16, ROWS = 1024 };

/* ---- by hand ---- */

/* 16 x 16 tiles of 256 x 256 in groups of 8 rows, 66 at a time; lines of 8192 bytes. */
static const kkt_gemm_waves large = {.m = 4096,
                                     .n = 4096,
                                     .height = 256,
                                     .width = 256,
                                     .group = 8,
                                     .at_once = 66,
                                     .parts = 1,
                                     .line_bytes = 8192};
static const double tile_lines = 256.0 * 8192, no_l2 = 1, all_l2 = 1e12;

/* Tiles 0 to 65: 8 rows, 9 columns. To 131: the last 8 columns, and of the next group 4 tiles of
 * the first, so 12 rows. To 197: 8 rows, 9 columns. The rest: 8 and 8. */
static void a_wave_reads_what_it_spans(void **state) {
    (void)state;
    const double rows = 8 + 12 + 8 + 8, columns = 9 + (8 + 1) + 9 + 8;
    assert_true(kkt_gemm_wave_reads(&large, no_l2, 2) == (rows + columns) * tile_lines);
}

static void what_stays_is_not_read_again(void **state) {
    (void)state;
    assert_true(kkt_gemm_wave_reads(&large, all_l2, 2) == 32 * tile_lines);
    const double some = kkt_gemm_wave_reads(&large, 60e6, 2);
    assert_true(some > 32 * tile_lines && some < kkt_gemm_wave_reads(&large, no_l2, 2));
    kkt_gemm_waves one = large; /* all at once */
    one.at_once = 256;
    assert_true(kkt_gemm_wave_reads(&one, no_l2, 2) == 32 * tile_lines);
}

/* Parts of k follow one another, and share nothing. */
static void parts_read_their_shares(void **state) {
    (void)state;
    kkt_gemm_waves halves = large;
    halves.parts = 2;
    assert_true(kkt_gemm_wave_reads(&halves, no_l2, 2) == kkt_gemm_wave_reads(&large, no_l2, 2));
}

/* Tiles at the edges are read as far as there is a matrix: 2 x 2 of 256 x 256 over 300 x 300, one
 * at a time, down the columns. */
static void edges_are_cut_short(void **state) {
    (void)state;
    kkt_gemm_waves edge = large;
    edge.m = edge.n = 300;
    edge.at_once = 1;
    assert_true(kkt_gemm_wave_reads(&edge, no_l2, 2) == 4 * 300.0 * 8192);
}

/* Four parts of 4 MB that the second launch adds up are read from L2, sixteen of them from HBM. */
static void partials_stay_in_l2(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    const double partial = 4.0 * 128 * 8192;
    const int64_t parts[] = {4, 16};
    for (int i = 0; i < 2; i++) {
        const kkt_gemm_waves w = {.m = 128,
                                  .n = 8192,
                                  .height = 128,
                                  .width = 256,
                                  .group = 8,
                                  .at_once = 132,
                                  .parts = parts[i],
                                  .line_bytes = 2 * 8192};
        kkt_footprint fp = {.hbm_read_bytes = 1e9};
        kkt_gemm_reread(&w, arch, &fp);
        assert_true(fp.hbm_read_bytes == 1e9 - (i == 0 ? 4 * partial : 0));
    }
}

/* ---- against counters ---- */

typedef struct errors {
    int rows, within[5]; /* 2, 5, 10, 20 %, more */
    double least, most;
} errors;

static bool counter(const kkt_json *run, const char *name, double *out) {
    for (const kkt_json *one = kkt_json_first(kkt_json_get(run, "counters")); one;
         one = kkt_json_next(one)) {
        const char *found = kkt_json_string(one, "name");
        if (found && strcmp(found, name) == 0)
            return kkt_json_real(one, "value", out);
    }
    return false;
}

/* Predicted over counted bytes read and written; false where a row has no counters, or spills,
 * which move bytes of their own. */
static bool ratio_of(const kkt_json *line, kkt_style_id style_id, double *out) {
    const char *kernel_name = kkt_json_string(line, "kernel");
    const kkt_style *style = kkt_style_find(kkt_json_string(line, "style"));
    const kkt_json *run = kkt_json_get(line, "run");
    const kkt_kernel *kernel = NULL;
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_values problem, config;
    double read, written, spilled = 0;
    if (!kernel_name || strcmp(kernel_name, "gemm") != 0 || !style || style->id != style_id ||
        !counter(run, "dram_read_bytes", &read) || !counter(run, "dram_write_bytes", &written) ||
        (kkt_json_real(kkt_json_get(line, "build"), "spill_store_bytes", &spilled) && spilled > 0))
        return false;
    assert_int_equal(kkt_kernel_parse(kernel_name, &kernel, NULL), KKT_OK);
    const kkt_variant *variant = kkt_kernel_variant(kernel, style->id);
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&kernel->problem, kkt_json_string(line, "problem"), &problem, NULL,
                         NULL) != KKT_OK ||
        kkt_params_parse(&variant->params, kkt_json_string(line, "config"), &config, NULL, NULL) !=
            KKT_OK)
        return false; /* of an older space */
    kkt_footprint fp = {0};
    variant->footprint(&problem, &config, arch, &fp);
    *out = (fp.hbm_read_bytes + fp.hbm_write_bytes) / (read + written);
    return true;
}

static void add(errors *all, double ratio) {
    const double off = fabs(ratio - 1);
    all->within[off <= 0.02 ? 0 : off <= 0.05 ? 1 : off <= 0.1 ? 2 : off <= 0.2 ? 3 : 4]++;
    all->least = all->rows == 0 ? ratio : fmin(all->least, ratio);
    all->most = all->rows == 0 ? ratio : fmax(all->most, ratio);
    all->rows++;
}

static errors errors_of(kkt_style_id style) {
    static char text[LINE_BYTES];
    errors all = {0};
    FILE *file = fopen(RECORDED, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        kkt_json *line = NULL;
        double ratio;
        assert_int_equal(kkt_json_parse(text, strlen(text), RECORDED, &line, NULL), KKT_OK);
        if (ratio_of(line, style, &ratio))
            add(&all, ratio);
        kkt_json_close(line);
    }
    assert_int_equal(fclose(file), 0);
    if (all.rows > 0)
        print_message("| gemm, %s | %d | %d | %d | %d | %d | %d | %+.0f to %+.0f %% |\n",
                      kkt_style_get(style)->name, all.rows, all.within[0], all.within[1],
                      all.within[2], all.within[3], all.within[4], 100 * (all.least - 1),
                      100 * (all.most - 1));
    return all;
}

static void counted_bytes_are_near(void **state) {
    (void)state;
    static const kkt_style_id styles[] = {KKT_STYLE_FRAGMENT, KKT_STYLE_PIPELINED,
                                          KKT_STYLE_WARP_SPECIALIZED, KKT_STYLE_MATERIALIZED};
    int rows = 0, near = 0;
    print_message("| style | rows | within 2 %% | 5 %% | 10 %% | 20 %% | more | errors |\n");
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        const errors e = errors_of(styles[i]);
        rows += e.rows;
        near += e.within[0] + e.within[1] + e.within[2];
    }
    if (rows == 0) {
        print_message("skipped: no row of gemm that ships was counted\n");
        skip();
    }
    assert_true(near >= 0.8 * rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wave_reads_what_it_spans),
        cmocka_unit_test(what_stays_is_not_read_again),
        cmocka_unit_test(parts_read_their_shares),
        cmocka_unit_test(edges_are_cut_short),
        cmocka_unit_test(partials_stay_in_l2),
        cmocka_unit_test(counted_bytes_are_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
