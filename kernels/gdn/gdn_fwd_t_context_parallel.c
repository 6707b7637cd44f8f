/* The context-parallel style of gdn_fwd_t: sequences are cut in segments that run side by side. A
 * first launch computes the first segment and, of each other, what it does to the state; a second
 * one what the others start from, and the third is the warp-specialized kernel with those segments
 * for sequences. cp_work.cuh has the formulas and the workspace. For few heads and long sequences,
 * which alone leave most of a GPU idle; docs/gdn.md says what it costs. */
#include <stdio.h>

#include "base/integer.h"
#include "kernels/gdn/warp_specialized.h"

#define COLUMNS 64    /* of a state warpgroup */
#define PASS_GROUPS 2 /* of them in a block */
#define TILE_UNIT 1024

enum {
    CHUNK = KKT_GDN_CHUNK,
    OUTPUTS,
    STAGES,
    STATE_REGISTERS,
    SERVICE_REGISTERS,
    NARROW,
    SEGMENTS,
    FIRST_EIGHTHS,
    PASS_STAGES,
    PARAMS
};

static const kkt_param params[PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 3,
               .values = {16, 32, 64},
               .fallback = 64},
    [OUTPUTS] = {.name = "outputs",
                 .macro = "KKT_OUTPUTS",
                 .help = "warpgroups that compute o; 0: the state warpgroup does",
                 .count = 2,
                 .values = {0, 1},
                 .fallback = 0},
    [STAGES] = {.name = "stages",
                .macro = "KKT_STAGES",
                .help = "chunks of k, q, T and v in flight",
                .count = 3,
                .values = {3, 2, 4},
                .fallback = 3},
    [STATE_REGISTERS] = {.name = "state_registers",
                         .macro = "KKT_STATE_REGISTERS",
                         .help = "of a thread that keeps the state; helpers have what is left",
                         .count = 4,
                         .values = {240, 232, 208, 176},
                         .fallback = 232},
    [SERVICE_REGISTERS] = {.name = "service_registers",
                           .macro = "KKT_SERVICE_REGISTERS",
                           .help = "of a thread that moves tiles",
                           .count = 2,
                           .values = {40, 32},
                           .fallback = 40},
    [NARROW] = {.name = "narrow",
                .macro = "KKT_NARROW",
                .help = "1: products with T and P leave out what is 0 above the diagonal; k, q and "
                        "t are then loaded in boxes of 16 rows",
                .count = 2,
                .values = {0, 1},
                .fallback = 0},
    [SEGMENTS] = {.name = "segments",
                  .macro = "KKT_SEGMENTS",
                  .help = "that a sequence is cut in",
                  .count = 4,
                  .values = {9, 5, 3, 17},
                  .fallback = 9},
    [FIRST_EIGHTHS] = {.name = "first_eighths",
                       .macro = "KKT_FIRST_EIGHTHS",
                       .help = "length of the first segment, in eighths of another's",
                       .count = 3,
                       .values = {7, 8, 6},
                       .fallback = 7},
    [PASS_STAGES] = {.name = "pass_stages",
                     .macro = "KKT_PASS_STAGES",
                     .help =
                         "chunks of k, T and v in flight where no more than the state is wanted",
                     .count = 3,
                     .values = {4, 3, 2},
                     .fallback = 4},
};

/* Workspace, behind the family's tensors. */
enum { STARTS = KKT_FWD_T_TENSORS, STEPS, ALL_TENSORS };

/* Derived sizes. */
typedef struct sizes {
    int64_t sequences, heads, dk, dv, chunk;
    int64_t segments, inner; /* those that have an M: neither first nor last */
    int64_t chunks;          /* of a sequence, on the average and rounded up */
    int64_t eighths;         /* of a segment that a sequence has */
    int64_t groups;          /* state warpgroups that pass over a segment */
    int64_t pass_blocks;     /* in all */
} sizes;

static sizes sizes_of(const kkt_values *problem, const kkt_values *config) {
    const int64_t *p = problem->v, *c = config->v;
    const kkt_attention a = kkt_gdn_attention(problem);
    sizes s = {.sequences = a.sequences,
               .heads = a.heads_v,
               .dk = a.dk,
               .dv = a.dv,
               .chunk = c[CHUNK],
               .segments = c[SEGMENTS],
               .inner = c[SEGMENTS] - 2,
               .chunks = kkt_divide_up(kkt_attention_chunks(&a, c[CHUNK]), a.sequences),
               .eighths = c[FIRST_EIGHTHS] + 8 * (c[SEGMENTS] - 1),
               .groups = (p[KKT_GDN_DK] + p[KKT_GDN_DV]) / COLUMNS};
    s.pass_blocks = s.sequences * s.heads * s.inner * kkt_divide_up(s.groups, PASS_GROUPS);
    return s;
}

/* What a launch is to the warp-specialized style: its segments are sequences, and a block has 64
 * columns of one unit of work. */
typedef struct ws_launch {
    kkt_values problem, config;
} ws_launch;

static ws_launch ws_launch_of(const kkt_values *problem, const kkt_values *config,
                              int64_t segments) {
    const int64_t *c = config->v;
    ws_launch launch = {.problem = *problem,
                        .config = {.v = {c[CHUNK], COLUMNS, c[OUTPUTS], c[STAGES],
                                         c[STATE_REGISTERS], c[SERVICE_REGISTERS], c[NARROW], 1}}};
    launch.problem.v[KKT_GDN_SEQUENCES] *= segments;
    return launch;
}

static ws_launch rest_of(const kkt_values *problem, const kkt_values *config) {
    return ws_launch_of(problem, config, config->v[SEGMENTS] - 1);
}

/* ---- shared memory beside that of the warp-specialized style ---- */

static void pass_memory(const sizes *s, const kkt_values *config, kkt_footprint *fp) {
    const int64_t c = s->chunk, stages = config->v[PASS_STAGES], table = c + 16;
    *fp = (kkt_footprint){.launches = 1};
    kkt_gdn_shared_tile(fp, "k", c, s->dk, 2, stages);
    kkt_gdn_shared_tile(fp, "t", c, c * c * 2 < TILE_UNIT ? TILE_UNIT / 2 / c : c, 2, stages);
    kkt_gdn_shared_tile(fp, "v", c, PASS_GROUPS * COLUMNS, 2, stages);
    kkt_gdn_shared_tile(fp, "gates", 1, 5 * table + c + 4, 4, stages);
    kkt_gdn_shared_tile(fp, "barriers", 1, 2 * stages, 8, 1);
}

enum { START_COLUMNS = 16, START_SLOTS = 3, START_PAD = 8 };

static void starts_memory(const sizes *s, kkt_footprint *fp) {
    const int64_t row = s->dk + START_PAD;
    *fp = (kkt_footprint){.launches = 1};
    kkt_gdn_shared_tile(fp, "m", s->dk, row, 4, START_SLOTS);
    /* two parts of two states */
    kkt_gdn_shared_tile(fp, "s", START_COLUMNS, row, 2, 2 * 2);
}

static int64_t pass_bytes(const sizes *s, const kkt_values *config) {
    kkt_footprint fp;
    pass_memory(s, config, &fp);
    return kkt_footprint_smem_bytes(&fp);
}

static int64_t starts_bytes(const sizes *s) {
    kkt_footprint fp;
    starts_memory(s, &fp);
    return kkt_footprint_smem_bytes(&fp);
}

/* Of the launches beside the one that the footprint describes. */
static int64_t most_bytes(const sizes *s, const kkt_values *config) {
    const int64_t pass = pass_bytes(s, config), starts = starts_bytes(s);
    return pass > starts ? pass : starts;
}

/* ---- constraints ---- */

/* The same for the exported header. */
static const char *const row_needs[] = {
    "tokens / (batch * sequences) >= kkt_row->chunk * kkt_row->segments", NULL};

static bool segments_fit(const kkt_values *problem, const sizes *s, char *reason, size_t size) {
    const int64_t tokens = problem->v[KKT_GDN_TOKENS] / s->sequences;
    if (tokens >= s->chunk * s->segments)
        return true;
    kkt_reason(reason, size, "segments %lld of %lld tokens: a sequence has %lld on the average",
               (long long)s->segments, (long long)s->chunk, (long long)tokens);
    return false;
}

static bool applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                       char *reason, size_t size) {
    const sizes s = sizes_of(problem, config);
    const ws_launch rest = rest_of(problem, config);
    return kkt_gdn_ws_applicable(&rest.problem, &rest.config, arch, false, reason, size) &&
           segments_fit(problem, &s, reason, size);
}

/* ---- footprint ---- */

/* A chunk of 64 columns, as the warp-specialized style counts its own: the products A, V' and the
 * update; V once where there is one; two or three factors of each column. */
static void count_group(const sizes *s, bool t_beta, bool narrow, double chunks, double values,
                        kkt_footprint *out) {
    const double c = (double)s->chunk, dk = (double)s->dk, key = c * dk * 2 / 128;
    const double square = c * c * 2 / 128 * (narrow ? (1 + 16 / c) / 2 : 1);
    const double factors = c / 4 * (t_beta ? 2 : 3);
    out->tensor_flop += chunks * 2 * 64 * (2 * c * dk + c * c);
    out->wgmma_wavefronts += chunks * (2 * key + square);
    out->smem_wavefronts += chunks * 1.6 * (values * c + 4 * factors);
    out->instructions += chunks * 4 * (110 + dk * 0.9 + c * (t_beta ? 2.0 : 2.5));
}

/* Returns the instructions of a block for a chunk. */
static double count_pass(const kkt_values *problem, const sizes *s, bool narrow,
                         kkt_footprint *out) {
    const int64_t *p = problem->v;
    const bool t_beta = p[KKT_GDN_T_FORM] == KKT_GDN_T_BETA;
    const double chunks =
        (double)(s->chunks * s->sequences * s->heads) * (double)(8 * s->inner) / (double)s->eighths;
    const double c = (double)s->chunk, dk = (double)s->dk, dv = (double)s->dv;
    const double before = out->instructions;
    count_group(s, t_beta, narrow, chunks * dv / COLUMNS, 1, out);
    count_group(s, t_beta, narrow, chunks * dk / COLUMNS, 0, out);
    const double blocks = chunks * (double)kkt_divide_up(s->groups, PASS_GROUPS);
    out->instructions += blocks * 150;
    const double scalars = (p[KKT_GDN_GATED] ? 4 : 0) + (t_beta ? 0 : 4);
    out->l2_read_bytes += blocks * c * (2 * (dk + c) + scalars) + chunks * c * dv * 2;
    const double ratio = (double)p[KKT_GDN_HEADS_K] / (double)p[KKT_GDN_HEADS_V];
    const double again = chunks * c * (2 * (dk * ratio + c + dv) + scalars);
    out->hbm_read_bytes += again;
    out->hbm_again_bytes += again;
    return (out->instructions - before) / blocks;
}

/* Of a step from one segment's state to the next one's. What all launches take together, less what
 * the first and the last take alone, is 10.2 us on an H200 with seven such steps, 5.6 with three
 * and 3.9 with one. */
#define START_CYCLES 2000.0

/* Of the first and the last launch each, besides their chunks: rings and tables are empty at first,
 * and the last chunk's o has nothing beside it. How much is due to what is not known; fitted to the
 * times of 59 configurations of six problems on an H200. */
#define FILL_CYCLES 14000.0

static double state_bytes(const sizes *s, int64_t states) {
    return 4.0 * (double)(states * s->sequences * s->heads) * (double)(s->dk * s->dv);
}

static double step_bytes(const sizes *s) {
    return 4.0 * (double)(s->inner * s->sequences * s->heads) * (double)(s->dk * s->dk);
}

/* The workspace is small and soon read again: what is written stays in L2 until then. */
static void count_starts(const sizes *s, kkt_footprint *out) {
    const int64_t splits = s->dv / START_COLUMNS, strips = s->dk / 16;
    out->hbm_write_bytes += state_bytes(s, s->segments - 1) + step_bytes(s);
    out->l2_read_bytes += step_bytes(s) * (double)splits + state_bytes(s, s->segments - 1);
    out->mma_sync_flop += step_bytes(s) / 4 * 3 * 2 * (double)s->dv;
    out->smem_wavefronts += step_bytes(s) * (double)splits / 128 * 2;
    out->instructions +=
        (double)(s->inner * s->sequences * s->heads * splits * strips * strips) * 60;
}

/* What the first launch takes, in the time of the last one: its first segment is shorter but has o
 * like those, the pass has no o; the longer of both counts. */
static double first_over_last(const kkt_values *config, double pass_over_last) {
    const double first = (double)config->v[FIRST_EIGHTHS] / 8;
    return first > pass_over_last ? first : pass_over_last;
}

/* The path through a block of the first launch and one of the last, which walk about as many
 * chunks: by dependent products, three without o, and by instructions, of which `with_o` and `pass`
 * are what a block issues a chunk. */
static void count_path(const sizes *s, const kkt_values *config, double with_o, double pass,
                       kkt_footprint *out) {
    const double products = config->v[OUTPUTS] > 0 ? 3 : 4;
    kkt_footprint_step(out, KKT_STEP_PRODUCT, products * first_over_last(config, 3 / products),
                       (double)s->dk);
    out->block_instructions =
        (double)out->chunks_per_block * with_o * (1 + first_over_last(config, pass / with_o));
    out->chain_wait_cycles *= 2;
    out->wait_cycles = 2 * out->wait_cycles + (2 * FILL_CYCLES + START_CYCLES * (double)s->inner) /
                                                  (double)out->chunks_per_block;
}

/* A block of the last launch, which walks as many chunks as those of the first, and the work of all
 * three launches. */
static void footprint(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                      kkt_footprint *out) {
    const sizes s = sizes_of(problem, config);
    const ws_launch rest = rest_of(problem, config);
    (void)arch;
    kkt_gdn_ws_footprint(&rest.problem, &rest.config, false, out);
    const double all_chunks = (double)(s.chunks * s.sequences * s.heads);
    const int64_t splits = s.dv / COLUMNS;
    const double with_o = out->instructions / (all_chunks * (double)splits);
    out->style = KKT_STYLE_CONTEXT_PARALLEL;
    out->launches = 3;
    out->launch = 2;
    out->most_smem_bytes = most_bytes(&s, config);
    out->chunks_per_block = kkt_divide_up(s.chunks * 8, s.eighths);
    /* h0 and ht are of sequences; what segments start from is counted below. */
    out->hbm_read_bytes -= state_bytes(&s, s.inner);
    out->hbm_write_bytes -= state_bytes(&s, s.inner);
    const double pass = count_pass(problem, &s, config->v[NARROW] != 0, out);
    count_path(&s, config, with_o, pass, out);
    count_starts(&s, out);
}

/* ---- compiling and launching ---- */

static void defines(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                    kkt_text *out) {
    const sizes s = sizes_of(problem, config);
    const ws_launch rest = rest_of(problem, config);
    (void)arch;
    kkt_gdn_ws_defines(&rest.problem, &rest.config, false, out);
    kkt_text_printf(out, "KKT_BLOCK_DV=%d\n", COLUMNS);
    kkt_text_printf(out, "KKT_PASS_BYTES=%lld\n", (long long)pass_bytes(&s, config));
    kkt_text_printf(out, "KKT_STARTS_BYTES=%lld\n", (long long)starts_bytes(&s));
}

static int workspace(const kkt_values *problem, const kkt_values *config, kkt_tensor *out) {
    const sizes s = sizes_of(problem, config);
    out[STARTS - KKT_FWD_T_TENSORS] =
        (kkt_tensor){.name = "segment_starts",
                     .role = KKT_TENSOR_WORKSPACE,
                     .dtype = KKT_FP32,
                     .rank = 4,
                     .dims = {s.sequences * (s.segments - 1), s.heads, s.dk, s.dv}};
    out[STEPS - KKT_FWD_T_TENSORS] =
        (kkt_tensor){.name = "segment_steps",
                     .role = KKT_TENSOR_WORKSPACE,
                     .dtype = KKT_FP32,
                     .rank = 4,
                     .dims = {s.sequences * s.inner, s.heads, s.dk, s.dk}};
    return ALL_TENSORS - KKT_FWD_T_TENSORS;
}

/* A launch that computes o of `segments` of each sequence. */
static void plan_outputs(const kkt_values *problem, const kkt_values *config, int64_t segments,
                         const char *entry, kkt_launch *launch) {
    kkt_gdn_ws_tensors tensors = kkt_gdn_fwd_t_ws_tensors;
    tensors.entry = entry;
    const ws_launch of = ws_launch_of(problem, config, segments);
    kkt_plan plan;
    kkt_gdn_ws_plan(&of.problem, &of.config, &tensors, &plan);
    *launch = plan.launches[0];
    kkt_gdn_add_tensor(launch, STARTS);
}

static void plan_starts(const sizes *s, kkt_launch *launch) {
    *launch =
        (kkt_launch){.entry = "gdn_fwd_t_starts",
                     .grid = {(uint32_t)(s->sequences * s->heads * (s->dv / START_COLUMNS)), 1, 1},
                     .block = {(uint32_t)(s->dk / 16 * 32), 1, 1},
                     .dynamic_smem_bytes = starts_bytes(s),
                     .carveout_percent = -1,
                     .waits = true};
    kkt_gdn_add_tensor(launch, STARTS);
    kkt_gdn_add_tensor(launch, STEPS);
    kkt_gdn_add_i32(launch, s->heads);
}

/* What the three rely on: neither `first` nor `rest` lets the next launch begin early. `first`
 * waits for the kernel before it in its loading thread alone, and writes what a segment of no
 * chunks adds without waiting; that kernel began when the last reader of the workspace, an earlier
 * `rest`, had ended. `starts` waits for `first` before it lets `rest` begin, and `rest` waits for
 * `starts` before it reads the states, by ld.global.nc: nobody writes them from then on. */
static void plan(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                 kkt_plan *out) {
    const sizes s = sizes_of(problem, config);
    const int64_t pass = pass_bytes(&s, config);
    (void)arch;
    *out = (kkt_plan){.launch_count = 3};
    kkt_launch *first = &out->launches[0];
    plan_outputs(problem, config, 1, "gdn_fwd_t_first", first);
    kkt_gdn_add_tensor(first, STEPS);
    first->grid[0] += (uint32_t)s.pass_blocks;
    if (first->dynamic_smem_bytes < pass)
        first->dynamic_smem_bytes = pass;
    plan_starts(&s, &out->launches[1]);
    plan_outputs(problem, config, s.segments - 1, "gdn_fwd_t_rest", &out->launches[2]);
}

static const char *const sources[] = {"gdn/gdn_fwd_t_context_parallel.cu",
                                      "device/async_copy.cuh",
                                      "device/copy_groups.cuh",
                                      "gdn/cp_pass.cuh",
                                      "gdn/cp_starts.cuh",
                                      "gdn/cp_work.cuh",
                                      KKT_GDN_WS_HEADERS,
                                      NULL};

const kkt_variant kkt_gdn_fwd_t_context_parallel = {
    .style = KKT_STYLE_CONTEXT_PARALLEL,
    .params = {"parameter", params, PARAMS},
    .source = "gdn/gdn_fwd_t_context_parallel.cu",
    .sources = sources,
    .applicable = applicable,
    .row_needs = row_needs,
    .footprint = footprint,
    .defines = defines,
    .plan = plan,
    .workspace = workspace,
    .tolerance = kkt_gdn_tolerance,
};
