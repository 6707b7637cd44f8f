/* Predicted wavefronts of shared memory: tables against the bank rule, phases by hand, and the
 * whole against hardware counters: those that ship with the program, and those of couplings through
 * shared memory that an H200 counted for an earlier recording (tests/golden; with its own numbers
 * of provenance). Prints the tables of docs/model.md, section 9. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "kernels/kkt_solve/wavefronts.h"
#include "model/banks.h"

#define WARP 32

static void read_values(const char *problem, const char *config, kkt_values *p, kkt_values *c) {
    kkt_error err = {0};
    kkt_params_defaults(&kkt_solve_problem_table, p);
    kkt_params_defaults(&kkt_solve_param_table, c);
    if (kkt_params_parse(&kkt_solve_problem_table, problem, p, NULL, &err) != KKT_OK ||
        kkt_params_parse(&kkt_solve_param_table, config, c, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
}

static kkt_solve_wavefronts count(const char *problem, const char *config) {
    kkt_values p, c;
    kkt_solve_wavefronts wavefronts;
    read_values(problem, config, &p, &c);
    kkt_solve_count_wavefronts(p.v, c.v, &wavefronts);
    return wavefronts;
}

static int passes(int inner, int64_t outer_step, int64_t inner_step, int words, bool store) {
    const kkt_lane_grid grid = {inner, outer_step, inner_step, WARP};
    return kkt_grid_wavefronts(&grid, words, store);
}

/* ---- tables ---- */

static void check_stride(int64_t row) {
    const kkt_stride_passes *t = kkt_solve_stride_passes(row);
    const kkt_lane_grid rows = {1, row, 0, 8};
    if (row % 4 == 0) {
        assert_int_equal(t->store_rows, passes(4, row, 2, 2, true));
        assert_int_equal(t->left_quad, passes(4, row, 0, 4, false));
        assert_int_equal(t->right_quad, passes(4, 0, 2 * row, 4, false));
        assert_int_equal(t->rows_quad, kkt_grid_wavefronts(&rows, 4, false));
    } else {
        assert_int_equal(t->store_rows, 2 * passes(4, row, 2, 1, true));
        assert_int_equal(t->left_quad, 4 * passes(4, row, 0, 1, false));
        assert_int_equal(t->right_quad, 4 * passes(4, 0, 2 * row, 1, false));
        assert_int_equal(t->rows_quad, 0);
    }
    assert_int_equal(t->store_columns, 2 * passes(4, 1, 2 * row, 1, true));
    assert_int_equal(t->by_rows, passes(4, row, 1, 1, false));
    assert_int_equal(t->by_columns, passes(4, 1, row, 1, false));
}

/* Every stride that the parameters' values make. */
static void strides_follow_the_bank_rule(void **state) {
    (void)state;
    const kkt_param *strides = &kkt_solve_param_table.params[KKT_SOLVE_ROW_STRIDE];
    const kkt_param *tables[] = {&kkt_solve_param_table.params[KKT_SOLVE_BASE],
                                 &kkt_solve_param_table.params[KKT_SOLVE_CHUNK]};
    for (size_t t = 0; t < 2; ++t)
        for (size_t b = 0; b < tables[t]->count; ++b)
            for (size_t s = 0; s < strides->count; ++s)
                check_stride(tables[t]->values[b] + strides->values[s] - 16);
}

/* ---- phases by hand ---- */

/* Counts are whole numbers, or halves. */
static void same(double counted, double by_hand) {
    if (counted != by_hand)
        fail_msg("%.1f counted, %.1f by hand", counted, by_hand);
}

static void same_phase(const kkt_solve_wavefronts *w, kkt_solve_phase phase, double loads,
                       double stores) {
    if (w->loads[phase] != loads || w->stores[phase] != stores)
        fail_msg("%s: %.1f loads and %.1f stores counted, %.1f and %.1f by hand",
                 kkt_solve_phase_name(phase), w->loads[phase], w->stores[phase], loads, stores);
}

static void one_warp_and_head_through_shared_memory(void **state) {
    (void)state;
    /* One 16 x 16 tile: two diagonal blocks of 8 x 8 rows of 8 words and the one below. */
    const kkt_solve_wavefronts w =
        count("dk=128,gated=1", "chunk=16,base=8,couple=tf32,threads=32,heads_per_block=1,"
                                "block_pad=0,row_stride=16,kload=ldg");
    same_phase(&w, KKT_PHASE_LOAD, 0, 8 * 4 + 2); /* K, 16 rows of 256 bytes; beta and g */
    same_phase(&w, KKT_PHASE_SCAN, 2, 3);
    same_phase(&w, KKT_PHASE_PRODUCT, 8 * 4, 0);
    same_phase(&w, KKT_PHASE_LOWER, 3 + 5 + 2 * 2, 3 * 2);
    /* Rows 1 to 7 as 1, 2, 4 (for 3), 4, 4 + 1, 4 + 2, 4 + 4 words. Both blocks have the same
     * banks: two passes a word or pair; of four words two for the half warp that has both blocks,
     * and one for the half that has none. */
    same_phase(&w, KKT_PHASE_DIAGONAL, 2 * 2 + 2 * 2 + 6 * 3, 8 * 2);
    assert_true(kkt_solve_total_wavefronts(&w) > 0);
}

static void padding_parts_the_blocks_of_a_broadcast(void **state) {
    (void)state;
    const kkt_solve_wavefronts without =
        count("", "chunk=64,couple=tf32,threads=128,heads_per_block=4,block_pad=0");
    const kkt_solve_wavefronts with =
        count("", "chunk=64,couple=tf32,threads=128,heads_per_block=4,block_pad=1");
    /* Rows of 1, 2 and (two accesses) 3 words past the last four: 16 in 16 rows, each a pass more
     * in the two groups of each head; whole fours go by half warps and never collide. */
    same(without.loads[KKT_PHASE_DIAGONAL] - with.loads[KKT_PHASE_DIAGONAL], 4 * 2 * 16);
    same(without.stores[KKT_PHASE_DIAGONAL] - with.stores[KKT_PHASE_DIAGONAL], 4 * 2 * 16);
    same(without.loads[KKT_PHASE_COUPLING], with.loads[KKT_PHASE_COUPLING]);
}

static void a_chunk_of_fragments(void **state) {
    (void)state;
    const kkt_solve_wavefronts w =
        count("dk=128,gated=1", "chunk=64,base=8,couple=fp16,threads=128,heads_per_block=4,"
                                "store=tma,kload=cp_async");
    same_phase(&w, KKT_PHASE_LOAD, 0, 4 * 4); /* four heads' values, 2 x 64 rows over 32 lanes */
    /* Two words a lane side by side take two passes. Pair order: strips two apart share banks. */
    kkt_access pair = {.words = 1, .store = true, .active = UINT32_MAX};
    kkt_access quad = {.words = 2, .store = true, .active = UINT32_MAX};
    for (int lane = 0; lane < WARP; ++lane) {
        const int row = 2 * lane;
        pair.first[lane] = row / 16 * 16 + row % 8 * 2 + row / 8 % 2;
        quad.first[lane] = row / 16 * 16 + row % 8 / 2 * 4 + row / 8 % 2 * 2;
    }
    same_phase(&w, KKT_PHASE_SCAN, 4 * 2 * passes(WARP, 0, 2, 2, false),
               4 * (6 * kkt_access_wavefronts(&pair) + 2 * kkt_access_wavefronts(&quad)));
    /* Ten tiles, five halves of them a warp, in 2, 3, 4 and 3 strips of K, in eight steps; K K^T
     * leaves as 20 halves of 512 bytes. */
    same_phase(&w, KKT_PHASE_PRODUCT, (2 + 3 + 4 + 3) * 8 * 4, 20 * 4);
    const double row_pair = passes(4, 2, 0, 2, false), quads = passes(4, 0, 4, 4, false);
    const double half = passes(1, 4, 0, 2, false);
    /* Six blocks below the diagonal; rows, columns and decays once in each half and between. */
    same(w.loads[KKT_PHASE_LOWER], 4 * (6 * 8 + 4 * (row_pair + quads) + 2));
    /* Four blocks of 16; rows 1 to 7 of eight blocks of 8 in two rounds: 1 1 2 2 3 3 4 passes; the
     * inverses in both forms, but one matrix of the first and the last block's other form. */
    same(w.loads[KKT_PHASE_DIAGONAL],
         4 * (4 * (4 + half + 2 * row_pair + quads) + 2 * 16 + 6 * 4 + 2 * 1));
    same(w.stores[KKT_PHASE_DIAGONAL], 4 * (4 * 2 * passes(4, 8, 2, 2, true) + 2 * 4 + 1));
    same_phase(&w, KKT_PHASE_COUPLING, 0, 0);
    same_phase(&w, KKT_PHASE_OUTPUT, 0, 4 * 16 * 4);
}

/* ---- against counters ---- */

enum { ROWS_MAX = 4096, WAYS = 2 };

typedef struct counted {
    kkt_values problem, config;
    int provenance;
    double found, predicted; /* wavefronts a launch */
} counted;

typedef struct recording {
    counted rows[ROWS_MAX];
    int count;
} recording;

static double counter(const kkt_json *run, const char *name) {
    double value = NAN;
    for (const kkt_json *c = kkt_json_first(kkt_json_get(run, "counters")); c; c = kkt_json_next(c))
        if (strcmp(kkt_json_string(c, "name"), name) == 0)
            kkt_json_real(c, "value", &value);
    return value;
}

static void add_line(recording *r, const kkt_json *line) {
    const kkt_json *run = kkt_json_get(line, "run");
    const char *kernel = kkt_json_string(line, "kernel");
    double provenance = 0;
    if (!run || !kernel || strcmp(kernel, "kkt_solve") != 0)
        return;
    const double found =
        counter(run, "smem_load_wavefronts") + counter(run, "smem_store_wavefronts");
    if (!isfinite(found))
        return;
    assert_true(r->count < ROWS_MAX);
    counted *row = &r->rows[r->count++];
    read_values(kkt_json_string(line, "problem"), kkt_json_string(line, "config"), &row->problem,
                &row->config);
    assert_true(kkt_json_real(line, "p", &provenance));
    row->provenance = (int)provenance;
    row->found = found;
    kkt_footprint footprint = {0};
    kkt_solve_footprint(&row->problem, &row->config, kkt_arch_find("sm90"), &footprint);
    row->predicted = footprint.smem_wavefronts;
    if (row->problem.v[KKT_SOLVE_SEQUENCES] > 1)
        r->count--; /* surplus blocks of the grid leave at once */
}

static void read_recording(recording *r) {
    static char text[1 << 16];
    glob_t found;
    assert_int_equal(glob(KKT_TEST_DATA "/../db/reference/sm90_*.jsonl", 0, NULL, &found), 0);
    assert_int_equal(
        glob(KKT_TEST_DATA "/golden/wavefronts_sm90_*.jsonl", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        assert_non_null(file);
        while (fgets(text, sizeof text, file)) {
            kkt_error err;
            kkt_json *line = NULL;
            assert_int_equal(kkt_json_parse(text, strlen(text), "recording", &line, &err), KKT_OK);
            add_line(r, line);
            kkt_json_close(line);
        }
        assert_int_equal(fclose(file), 0);
    }
    globfree(&found);
    assert_true(r->count >= 50);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int way_of(const counted *row) {
    return kkt_solve_in_registers(row->config.v);
}

/* One row of the table; returns the median of the errors' sizes, infinite without rows. */
static double print_errors(const recording *r, int way, int64_t chunk) {
    static double size[ROWS_MAX];
    double least = INFINITY, most = -INFINITY;
    int n = 0;
    for (int i = 0; i < r->count; i++) {
        const counted *row = &r->rows[i];
        if (way_of(row) != way || (chunk != 0 && row->config.v[KKT_SOLVE_CHUNK] != chunk))
            continue;
        const double error = row->predicted / row->found - 1;
        least = fmin(least, error);
        most = fmax(most, error);
        size[n++] = fabs(error);
    }
    if (n == 0)
        return INFINITY;
    qsort(size, (size_t)n, sizeof *size, by_value);
    char name[24] = "all";
    if (chunk != 0)
        snprintf(name, sizeof name, "%lld", (long long)chunk);
    print_message("| %s | %s | %d | %.1f %% | %.1f %% | %+.1f %% | %+.1f %% |\n",
                  way ? "registers" : "shared memory", name, n, 100 * size[n / 2],
                  100 * size[n * 9 / 10], 100 * least, 100 * most);
    return size[n / 2];
}

static void wavefronts_are_near_the_counted_ones(void **state) {
    static recording r;
    (void)state;
    read_recording(&r);
    print_message("| couplings | C | counted | median error | nine in ten below | least | most |\n"
                  "|---|---:|---:|---:|---:|---:|---:|\n");
    for (int way = 0; way < WAYS; way++)
        for (int64_t chunk = 16; chunk <= 128; chunk *= 2)
            print_errors(&r, way, chunk);
    assert_true(print_errors(&r, 0, 0) < 0.03);
    assert_true(print_errors(&r, 1, 0) < 0.08);
}

/* Whether two counted rows differ in parameter `index` alone. */
static bool differ_in(const counted *a, const counted *b, int index) {
    if (a->provenance != b->provenance ||
        memcmp(a->problem.v, b->problem.v, sizeof *a->problem.v * KKT_SOLVE_PROBLEM_KEYS) != 0)
        return false;
    for (int i = 0; i < KKT_SOLVE_PARAMS; i++)
        if ((a->config.v[i] != b->config.v[i]) != (i == index))
            return false;
    return true;
}

/* How far a predicted change may be from the counted one: 5 % of it, or half a percent of the
 * count, by which counts of one configuration differ from run to run. That holds at chunk 64; at
 * others the model is coarser, and a change is known to 15 %, or one percent of the count. */
static double change_bound(const counted *row, double found) {
    const bool usual = row->config.v[KKT_SOLVE_CHUNK] == 64;
    return fmax((usual ? 0.05 : 0.15) * fabs(found), usual ? 0.005 : 0.01);
}

/* The change of wavefronts when one parameter moves. */
static void changes_are_the_counted_ones(void **state) {
    static const int moved[] = {KKT_SOLVE_BLOCK_PAD, KKT_SOLVE_ROW_STRIDE, KKT_SOLVE_TRANSPOSE};
    static recording r;
    (void)state;
    read_recording(&r);
    print_message("| parameter | changes | largest difference from the counted change |\n"
                  "|---|---:|---:|\n");
    for (size_t m = 0; m < sizeof moved / sizeof *moved; m++) {
        double worst = 0;
        int pairs = 0, missed = 0;
        for (int i = 0; i < r.count; i++)
            for (int j = 0; j < r.count; j++) {
                const counted *a = &r.rows[i], *b = &r.rows[j];
                if (i == j || !differ_in(a, b, moved[m]) ||
                    a->config.v[moved[m]] > b->config.v[moved[m]])
                    continue;
                const double found = b->found / a->found - 1;
                const double difference = fabs(b->predicted / a->predicted - 1 - found);
                pairs++;
                worst = fmax(worst, difference);
                missed += difference > change_bound(a, found);
            }
        print_message("| `%s` | %d | %.1f %% of the count |\n",
                      kkt_solve_param_table.params[moved[m]].name, pairs, 100 * worst);
        /* Sources that a recording is older than may have moved an access or two. */
        assert_true(pairs > 0 && missed <= pairs / 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_follow_the_bank_rule),
        cmocka_unit_test(one_warp_and_head_through_shared_memory),
        cmocka_unit_test(padding_parts_the_blocks_of_a_broadcast),
        cmocka_unit_test(a_chunk_of_fragments),
        cmocka_unit_test(wavefronts_are_near_the_counted_ones),
        cmocka_unit_test(changes_are_the_counted_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
