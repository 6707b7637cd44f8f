/* The exported header's look-up against the kernel itself and against kkt_lookup_find, over a grid
 * of problems: whatever it gives out applies to the problem asked, and its launch is right. */
#include "kkttune_sm90.h"

#include <stdio.h>
#include <string.h>

#include "kernels/kkt_solve/kkt_solve.h"
#include "reports/lookup.h"

typedef kkttune_sm90_kkt_solve_entry row_type;

typedef struct sweep {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    const kkt_arch *arch;
    kkt_arena *arena;
    kkt_view view; /* the JSON export written beside the header */
    int64_t chunk;
    int found, missing, exact, compared, failures;
} sweep;

static int64_t at(const sweep *s, const kkt_values *problem, const char *key) {
    return kkt_params_get(&s->kernel->problem, problem, key);
}

static void fail(sweep *s, const kkt_values *problem, const char *what) {
    kkt_text text = {0};
    kkt_params_format(&s->kernel->problem, problem, &text);
    if (s->failures++ < 20)
        printf("%s, chunk %lld: %s\n", kkt_text_get(&text), (long long)s->chunk, what);
    kkt_text_free(&text);
}

static const row_type *find(const sweep *s, const kkt_values *p, int *exact) {
    return kkttune_sm90_kkt_solve_find(at(s, p, "batch"), at(s, p, "sequences"), at(s, p, "tokens"),
                                       at(s, p, "heads_k"), at(s, p, "heads_v"), at(s, p, "dk"),
                                       at(s, p, "dtype"), at(s, p, "gated"), at(s, p, "t_form"),
                                       (int)s->chunk, exact);
}

static kkt_values config_of(const row_type *row) {
    return (kkt_values){.v = {[KKT_SOLVE_CHUNK] = row->chunk,
                              [KKT_SOLVE_INVERSE] = row->inverse,
                              [KKT_SOLVE_BASE] = row->base,
                              [KKT_SOLVE_COUPLE] = row->couple,
                              [KKT_SOLVE_BLOCK_PAD] = row->block_pad,
                              [KKT_SOLVE_ROW_STRIDE] = row->row_stride,
                              [KKT_SOLVE_TRANSPOSE] = row->transpose,
                              [KKT_SOLVE_NEGATE_EARLY] = row->negate_early,
                              [KKT_SOLVE_ASSEMBLE_FUSED] = row->assemble_fused,
                              [KKT_SOLVE_MMA] = row->mma,
                              [KKT_SOLVE_STORE] = row->store,
                              [KKT_SOLVE_SHARE] = row->share,
                              [KKT_SOLVE_WARPS_PER_HEAD] = row->warps_per_head,
                              [KKT_SOLVE_CHUNKS_PER_BLOCK] = row->chunks_per_block,
                              [KKT_SOLVE_MIN_BLOCKS] = row->min_blocks,
                              [KKT_SOLVE_CARVEOUT] = row->carveout,
                              [KKT_SOLVE_PERSISTENT] = row->persistent,
                              [KKT_SOLVE_THREADS] = row->threads,
                              [KKT_SOLVE_HEADS_PER_BLOCK] = row->heads_per_block,
                              [KKT_SOLVE_KLOAD] = row->kload}};
}

static kkt_values problem_of(const row_type *row) {
    return (kkt_values){{row->problem_batch, row->problem_sequences, row->problem_tokens,
                         row->problem_heads_k, row->problem_heads_v, row->problem_dk,
                         row->problem_dtype, row->problem_gated, row->problem_t_form}};
}

/* The look-up over the export must choose the same row where its choice is one the header may give
 * out. */
static void compare(sweep *s, const kkt_values *problem, const row_type *row, int exact) {
    kkt_lookup found;
    kkt_values other, config;
    kkt_error error;
    if (row == NULL && at(s, problem, "dk") != 128)
        return; /* no row has another: a search less */
    kkt_params_defaults(&s->kernel->problem, &other);
    kkt_params_defaults(&s->variant->params, &config);
    if (kkt_lookup_find(&s->view, 1, s->kernel, problem, s->chunk, s->arch, s->view.device,
                        s->arena, &found, &error) != KKT_OK) {
        fail(s, problem, error.message);
        return;
    }
    if (found.tier != KKT_LOOKUP_EXACT && found.tier != KKT_LOOKUP_NEAREST)
        return;
    kkt_params_parse(&s->kernel->problem, found.entry.problem, &other, NULL, NULL);
    kkt_params_parse(&s->variant->params, found.entry.config, &config, NULL, NULL);
    if (at(s, problem, "dk") != at(s, &other, "dk") ||
        at(s, problem, "gated") != at(s, &other, "gated") ||
        at(s, problem, "heads_v") * at(s, &other, "heads_k") !=
            at(s, &other, "heads_v") * at(s, problem, "heads_k"))
        return;
    s->compared++;
    if (row == NULL) {
        fail(s, problem, "the look-up finds a row that the header does not");
        return;
    }
    kkt_values row_problem = problem_of(row), row_config = config_of(row);
    if (exact != (found.tier == KKT_LOOKUP_EXACT) ||
        !kkt_values_equal(&s->kernel->problem, &row_problem, &other) ||
        !kkt_values_equal(&s->variant->params, &row_config, &config) ||
        row->launch_registers != found.entry.registers)
        fail(s, problem, "the look-up and the header choose differently");
}

static void check(sweep *s, const kkt_values *problem) {
    char reason[320];
    kkt_plan plan;
    int exact = -1;
    if (!kkt_kernel_problem_valid(s->kernel, problem, reason, sizeof reason))
        return;
    const row_type *row = find(s, problem, &exact);
    compare(s, problem, row, exact);
    s->missing += row == NULL;
    if (row == NULL)
        return;
    s->found++;
    s->exact += exact;
    kkt_values config = config_of(row);
    if (!s->variant->applicable(problem, &config, s->arch, reason, sizeof reason)) {
        fail(s, problem, reason);
        return;
    }
    s->variant->plan(problem, &config, s->arch, &plan);
    /* What the fixture made up is not the plan's; its rows are the measured ones. */
    if (row->time_us <= 0.0 && (plan.launches[0].dynamic_smem_bytes != row->launch_smem_bytes ||
                                plan.launches[0].block[0] != (uint32_t)row->launch_threads))
        fail(s, problem, "the launch is another one");
}

static void sweep_sizes(sweep *s, kkt_values *problem) {
    static const int64_t tokens[] = {100, 8192, 9000, 32768, 1 << 22};
    static const int64_t batches[] = {1, 4};
    static const int64_t sequences[] = {1, 8};
    int t = kkt_params_find(&s->kernel->problem, "tokens");
    int b = kkt_params_find(&s->kernel->problem, "batch");
    int q = kkt_params_find(&s->kernel->problem, "sequences");
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        for (size_t j = 0; j < 2; j++)
            for (size_t k = 0; k < 2; k++) {
                problem->v[t] = tokens[i];
                problem->v[b] = batches[j];
                problem->v[q] = sequences[k];
                check(s, problem);
            }
}

static void sweep_kinds(sweep *s, kkt_values *problem) {
    static const int64_t dims[] = {64, 128, 256};
    int dk = kkt_params_find(&s->kernel->problem, "dk");
    int dtype = kkt_params_find(&s->kernel->problem, "dtype");
    int gated = kkt_params_find(&s->kernel->problem, "gated");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int64_t kind = 0; kind < 4; kind++) {
            problem->v[dk] = dims[i];
            problem->v[dtype] = kind & 1;
            problem->v[gated] = kind >> 1;
            sweep_sizes(s, problem);
        }
}

int main(int argc, char **argv) {
    static const int64_t heads[] = {1, 16, 24, 32, 48, 64};
    static const int64_t chunks[] = {16, 32, 64, 128};
    sweep s = {.arena = kkt_arena_open()};
    kkt_error error;
    if (argc != 2 || kkt_kernel_parse("kkt_solve", &s.kernel, &error) != KKT_OK ||
        kkt_view_read(argv[1], s.arena, &s.view, &error) != KKT_OK) {
        printf("sweep_header EXPORT.json: %s\n", argc == 2 ? error.message : "one argument");
        return 2;
    }
    s.variant = s.kernel->variants[0];
    s.arch = s.view.arch;
    size_t count = sizeof heads / sizeof *heads;
    int hk = kkt_params_find(&s.kernel->problem, "heads_k");
    int hv = kkt_params_find(&s.kernel->problem, "heads_v");
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < count; j++) {
                kkt_values problem;
                kkt_params_defaults(&s.kernel->problem, &problem);
                s.chunk = chunks[c];
                problem.v[hk] = heads[i];
                problem.v[hv] = heads[j];
                sweep_kinds(&s, &problem);
            }
    kkt_arena_close(s.arena);
    printf("%d rows found (%d exactly), %d none, %d as the look-up, %d wrong\n", s.found, s.exact,
           s.missing, s.compared, s.failures);
    return s.failures > 0 || s.found < 300 || s.exact < 10 || s.missing < 1000 || s.compared < 50;
}
