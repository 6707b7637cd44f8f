/* The fragment and pipelined styles of gdn_fwd and gdn_fwd_t: what their constraints say, shared
 * memory by hand, the bytes of T that are read, and that plans fit footprints. Device code asserts
 * the same sizes when it is compiled (compile.test_family). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kernels/gdn/fused.h"
#include "model/predict.h"
#include "model/style.h"

typedef struct point {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values problem, config;
} point;

static point point_of(const char *kernel, kkt_style_id style, const char *problem,
                      const char *config) {
    point p;
    kkt_error err = {0};
    assert_int_equal(kkt_kernel_parse(kernel, &p.kernel, &err), KKT_OK);
    p.variant = kkt_kernel_variant(p.kernel, style);
    assert_non_null(p.variant);
    kkt_params_defaults(&p.kernel->problem, &p.problem);
    kkt_params_defaults(&p.variant->params, &p.config);
    if (kkt_params_parse(&p.kernel->problem, problem, &p.problem, NULL, &err) != KKT_OK ||
        kkt_params_parse(&p.variant->params, config, &p.config, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return p;
}

static kkt_footprint footprint_of(const point *p) {
    kkt_footprint footprint;
    p->variant->footprint(&p->problem, &p->config, kkt_arch_find("sm90"), &footprint);
    return footprint;
}

static void says_why_a_configuration_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *kernel;
        kkt_style_id style;
        const char *arch, *problem, *config, *part; /* part NULL: it is applicable */
    } rows[] = {
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "sm75", "", "", "cp.async"},
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "sm80", "", "", NULL},
        {"gdn_fwd", KKT_STYLE_FRAGMENT, "sm80", "", "", NULL},
        {"gdn_fwd", KKT_STYLE_PIPELINED, "sm90", "dv=96", "", "does not divide dv = 96"},
        {"gdn_fwd", KKT_STYLE_PIPELINED, "sm90", "dv=96", "block_dv=32,threads=64", NULL},
        {"gdn_fwd", KKT_STYLE_PIPELINED, "sm90", "", "block_dv=32", "no 16 columns for each of 4"},
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "sm90", "dk=256", "block_dv=128",
         "takes 256 registers a thread in 4 warps"},
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "sm90", "", "min_blocks=2", "that is no limit"},
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "sm90", "", "min_blocks=3", NULL},
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "sm90", "", "min_blocks=6", "fragments take more"},
        {"gdn_fwd", KKT_STYLE_FRAGMENT, "sm90", "", "chunk=16,block_dv=32",
         "no 16 columns for each of 4 warps of a strip"},
        {"gdn_fwd", KKT_STYLE_FRAGMENT, "sm90", "", "chunk=128,threads=64",
         "one table of the chunk takes 256 registers"},
        {"gdn_fwd", KKT_STYLE_FRAGMENT, "sm90", "dk=256", "block_dv=128",
         "the state takes 256 registers"},
        {"gdn_fwd", KKT_STYLE_FRAGMENT, "sm90", "dk=96,dv=96", "block_dv=32,threads=64", NULL},
    };
    char reason[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const point p = point_of(rows[i].kernel, rows[i].style, rows[i].problem, rows[i].config);
        const bool yes = p.variant->applicable(&p.problem, &p.config, kkt_arch_find(rows[i].arch),
                                               reason, sizeof reason);
        if (yes != (rows[i].part == NULL) || (!yes && !strstr(reason, rows[i].part)))
            fail_msg("row %zu: %s", i, yes ? "applicable" : reason);
    }
}

/* Tiles: rows of 2 (columns + 8) bytes. Chunk 64, dk 128: K or Q 17,408; block_dv 64: V 9,216;
 * ten blocks of 512; gates 4 (7 x 64 + 16 + 1, to a multiple of 4) = 1,872. */
static void shared_memory_is_what_the_tiles_take(void **state) {
    (void)state;
    static const struct {
        const char *kernel;
        kkt_style_id style;
        const char *problem, *config;
        int64_t bytes;
    } rows[] = {
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "", "", 2 * (2 * 17408 + 9216 + 5120) + 5120 + 2 * 1872},
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "", "stages=1", 2 * 17408 + 9216 + 2 * 5120 + 2 * 1872},
        /* chunk 16: one block; tiles of 16 rows; gates 4 x 116 */
        {"gdn_fwd_t", KKT_STYLE_PIPELINED, "dk=64,dv=96",
         "chunk=16,block_dv=32,threads=64,stages=3",
         3 * (2 * 16 * 144 + 16 * 80 + 512) + 512 + 2 * 464},
        /* six blocks and four inverses in two parts; scratch of four warps; T */
        {"gdn_fwd", KKT_STYLE_PIPELINED, "", "solve=invert",
         2 * (2 * 17408 + 9216) + 5120 + 10 * 1024 + 4 * 576 + 5120 + 2 * 1872},
        {"gdn_fwd", KKT_STYLE_PIPELINED, "", "solve=substitute",
         2 * (2 * 17408 + 9216) + 5120 + 10 * 1024 + 4 * 576 + 2 * 1872},
        /* S: 128 rows of 144 bytes */
        {"gdn_fwd_t", KKT_STYLE_FRAGMENT, "", "", 2 * 17408 + 3 * 9216 + 128 * 144 + 1872},
        {"gdn_fwd", KKT_STYLE_FRAGMENT, "", "tables=shared,solve=invert",
         2 * 17408 + 3 * 9216 + 128 * 144 + 1872 + 10 * 1024 + 4 * 576 + 2 * 5120},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const point p = point_of(rows[i].kernel, rows[i].style, rows[i].problem, rows[i].config);
        const kkt_footprint footprint = footprint_of(&p);
        const int64_t bytes = kkt_footprint_smem_bytes(&footprint);
        if (bytes != rows[i].bytes)
            fail_msg("row %zu: %lld, not %lld", i, (long long)bytes, (long long)rows[i].bytes);
        kkt_plan plan;
        p.variant->plan(&p.problem, &p.config, kkt_arch_find("sm90"), &plan);
        assert_int_equal(plan.launch_count, 1);
        assert_int_equal(plan.launches[0].dynamic_smem_bytes, bytes);
        assert_int_equal(plan.launches[0].grid[0], footprint.blocks);
        assert_int_equal(plan.launches[0].block[0], footprint.threads);
    }
}

/* A row of T is read as far as its diagonal block goes: (16 + 32 + 48 + 64) / 4 of 64 elements, and
 * a tail of 20 rows 16 x 16 + 4 x 32. */
static void t_is_read_on_and_below_the_diagonal(void **state) {
    (void)state;
    static const struct {
        const char *problem;
        double t_bytes; /* of one value head */
    } rows[] = {
        {"tokens=128,heads_k=1,heads_v=1", 2.0 * 128 * 40},
        {"tokens=84,heads_k=1,heads_v=1", 2.0 * (64 * 40 + 16 * 16 + 4 * 32)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const point with = point_of("gdn_fwd_t", KKT_STYLE_PIPELINED, rows[i].problem, "");
        const point without = point_of("gdn_fwd", KKT_STYLE_PIPELINED, rows[i].problem, "");
        const kkt_footprint t = footprint_of(&with), fused = footprint_of(&without);
        assert_true(t.hbm_read_bytes - fused.hbm_read_bytes == rows[i].t_bytes);
        assert_true(t.hbm_write_bytes == fused.hbm_write_bytes);
    }
}

/* Three tables of a chunk in fragments are what an article holds against chunk 128 and 128
 * threads. */
static void tables_in_registers_spill_at_chunk_128(void **state) {
    (void)state;
    static const struct {
        const char *config;
        bool spills;
    } rows[] = {
        {"chunk=128,tables=registers", true},
        {"chunk=64,tables=registers", false},
        {"chunk=32,tables=registers", false},
    };
    const kkt_arch *arch = kkt_arch_find("sm90");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const point p = point_of("gdn_fwd", KKT_STYLE_FRAGMENT, "", rows[i].config);
        const kkt_footprint footprint = footprint_of(&p);
        kkt_prediction prediction;
        kkt_predict(&footprint, arch, kkt_device_first(arch), NULL, &prediction);
        assert_int_equal(prediction.infeasible, KKT_FEASIBLE);
        assert_int_equal(prediction.spills, rows[i].spills);
    }
}

/* Tables by the chunk have a row for each size that styles take. */
static void chunks_are_rows_of_tables(void **state) {
    (void)state;
    static const struct {
        int64_t chunk;
        int row;
    } chunks[] = {{1, 0}, {16, 0}, {17, 1}, {32, 1}, {48, 2}, {64, 2}, {65, 3}, {128, 3}, {256, 3}};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        assert_int_equal(kkt_gdn_chunk_index(chunks[i].chunk), chunks[i].row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_a_configuration_is_refused),
        cmocka_unit_test(shared_memory_is_what_the_tiles_take),
        cmocka_unit_test(t_is_read_on_and_below_the_diagonal),
        cmocka_unit_test(tables_in_registers_spill_at_chunk_128),
        cmocka_unit_test(chunks_are_rows_of_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
