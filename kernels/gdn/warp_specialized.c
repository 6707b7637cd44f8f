/* See warp_specialized.h. ws_block.cuh draws the roles and ws_layout.cuh the shared memory. */
#include "kernels/gdn/warp_specialized.h"

#include <math.h>
#include <stdio.h>

#define WARP 32
#define WARPGROUP 128
#define TILE_UNIT 1024 /* swizzled tiles begin at multiples of it */
#define REGISTERS 65536
#define MOST_REGISTERS 240 /* that a warpgroup can ask for, a thread */

enum {
    CHUNK = KKT_GDN_CHUNK,
    BLOCK_DV,
    OUTPUTS,
    STAGES,
    STATE_REGISTERS,
    SERVICE_REGISTERS,
    NARROW,
    UNITS_PER_BLOCK,
    SOLVE,
    PARAMS
};

_Static_assert((int)PARAMS == (int)KKT_GDN_WS_PARAMS,
               "solve comes last: gdn_fwd_t does without it");

enum { SUBSTITUTE, INVERT };

static const char *const solve_names[] = {"substitute", "invert"};

const kkt_param kkt_gdn_ws_params[KKT_GDN_WS_PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 4,
               .values = {16, 32, 64, 128},
               .fallback = 64},
    [BLOCK_DV] = {.name = "block_dv",
                  .macro = "KKT_BLOCK_DV",
                  .help =
                      "columns of the state a block holds, 64 a state warpgroup; fewer: one that "
                      "passes it on through shared memory",
                  .count = 4,
                  .values = {16, 32, 64, 128},
                  .fallback = 64},
    [OUTPUTS] = {.name = "outputs",
                 .macro = "KKT_OUTPUTS",
                 .help = "warpgroups that compute o in turns; 0: the state warpgroups do",
                 .count = 3,
                 .values = {0, 1, 2},
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
                         .count = 5,
                         .values = {240, 232, 208, 192, 176},
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
    [UNITS_PER_BLOCK] = {.name = "units_per_block",
                         .help = "heads of sequences that a block takes one after the other",
                         .count = 4,
                         .values = {1, 2, 4, 8},
                         .fallback = 1},
    [SOLVE] = {.name = "solve",
               .macro = "KKT_SOLVE",
               .help = "the chunk's triangular system: by substitution, or by its inverse",
               .count = 2,
               .values = {0, 1},
               .names = solve_names,
               .fallback = 0},
};

/* A configuration's derived sizes. */
typedef struct sizes {
    bool fused; /* gdn_fwd */
    bool substitute;
    int64_t chunk, dk, dv, block_dv, outputs, stages;
    int64_t group_dv;                 /* columns of a state warpgroup */
    int64_t groups, helpers, threads; /* state warpgroups; output or score, and solver */
    int64_t state_registers, helper_registers, service_registers;
    int64_t box_rows; /* of a load of k, q or t */
    int64_t units;    /* of work */
    int64_t grid;
} sizes;

static sizes sizes_of(const kkt_values *problem, const kkt_values *config, bool fused) {
    const int64_t *p = problem->v, *c = config->v;
    sizes s = {.fused = fused,
               .substitute = fused && c[SOLVE] == SUBSTITUTE,
               .chunk = c[CHUNK],
               .dk = p[KKT_GDN_DK],
               .dv = p[KKT_GDN_DV],
               .block_dv = c[BLOCK_DV],
               .outputs = c[OUTPUTS],
               .stages = c[STAGES],
               .group_dv = c[BLOCK_DV] < 64 ? c[BLOCK_DV] : 64,
               .helpers = (c[OUTPUTS] > 0 ? c[OUTPUTS] : 1) + (fused ? 1 : 0),
               .state_registers = c[STATE_REGISTERS],
               .service_registers = c[SERVICE_REGISTERS],
               .box_rows = c[NARROW] != 0 ? 16 : c[CHUNK]};
    s.groups = s.block_dv / s.group_dv;
    const int64_t warpgroups = s.groups + s.helpers + 1;
    s.threads = warpgroups * WARPGROUP;
    const int64_t launched = warpgroups * (REGISTERS / s.threads / 8 * 8);
    const int64_t left = launched - s.groups * s.state_registers - s.service_registers;
    s.helper_registers = left > 0 ? left / s.helpers / 8 * 8 : 0;
    if (s.helper_registers > MOST_REGISTERS)
        s.helper_registers = MOST_REGISTERS;
    s.units = p[KKT_GDN_BATCH] * p[KKT_GDN_SEQUENCES] * p[KKT_GDN_HEADS_V] * (s.dv / s.block_dv);
    s.grid = (s.units + c[UNITS_PER_BLOCK] - 1) / c[UNITS_PER_BLOCK];
    return s;
}

/* ---- constraints ---- */

static bool shape_fits(const kkt_values *problem, const sizes *s, char *reason, size_t size) {
    if (s->dk != 64 && s->dk != 128) {
        kkt_reason(
            reason, size,
            "dk %lld: keys come in tiles of 64 columns, and at most 128 columns of the state "
            "fit a warpgroup's registers",
            (long long)s->dk);
        return false;
    }
    if (s->dv % s->group_dv != 0) {
        kkt_reason(reason, size, "dv %lld is no multiple of the %lld columns of a warpgroup",
                   (long long)s->dv, (long long)s->group_dv);
        return false;
    }
    return kkt_gdn_block_dv_fits(problem, s->block_dv, reason, size);
}

/* Tables, and what the compiler takes beside them. Of a state thread: the state, rounded too, A or
 * V', three operands of a chunk and its factors, or two and o; with fewer columns the state, A
 * and three rounded tables. */
static int64_t state_registers(const sizes *s) {
    const int64_t c = s->chunk, columns = s->group_dv, whole = s->dk * columns / WARPGROUP;
    if (columns < 64)
        return whole + (c > 64 ? c : 64) * columns / WARPGROUP + 3 * columns / 4 + 32;
    return whole + whole / 2 + (s->outputs > 0 ? c / 2 : c) + 3 * c / 4;
}

/* Of a helper: 64 rows of scores, or more where a chunk has more, and to form o their operand, Q
 * and o; the solver's K K^T, a column of T and operands. */
static int64_t helper_registers(const sizes *s) {
    const int64_t c = s->chunk, rows = c > 64 ? c / 64 : 1, scores = rows * c / 2;
    const int64_t output = rows * (c / 4 + s->dk / 4 + s->block_dv / 2);
    const int64_t least = s->outputs > 0 ? scores + output + 16 : scores + 32;
    return s->fused && least < scores + 64 ? scores + 64 : least;
}

static bool registers_fit(const sizes *s, char *reason, size_t size) {
    const long long state = state_registers(s), helper = helper_registers(s);
    if (s->chunk > 64) {
        /* Whatever else is chosen: one role or the other is above. */
        kkt_reason(
            reason, size,
            "chunk %lld: a thread of the state holds %lld registers, one of the scores %lld, "
            "and %d is the most that one can have",
            (long long)s->chunk, state, helper, MOST_REGISTERS);
        return false;
    }
    if (s->helper_registers >= helper && s->state_registers >= state)
        return true;
    kkt_reason(
        reason, size,
        "state_registers %lld and what is left for helpers, %lld, are too few: they hold %lld "
        "and %lld",
        (long long)s->state_registers, (long long)s->helper_registers, state, helper);
    return false;
}

/* What the state of fewer columns, in shared memory from chunk to chunk, goes together with. */
static bool columns_fit(const kkt_values *config, const sizes *s, char *reason, size_t size) {
    const char *why = NULL;
    if (s->outputs == 0)
        why = "outputs=0: S and V' are in shared memory, where output warpgroups read them";
    else if (config->v[NARROW] != 0)
        why = "narrow=1: T is a left operand, and those have 64 rows";
    else if (s->substitute)
        why = "solve=substitute: V' is no result of its own right operand's columns";
    else if (s->chunk * s->block_dv * 2 < TILE_UNIT)
        why = "chunk 16: tiles begin at multiples of 1,024 bytes, and these have 512";
    if (s->group_dv == 64 || !why)
        return true;
    kkt_reason(reason, size, "block_dv %lld with %s", (long long)s->block_dv, why);
    return false;
}

/* The same as grid_fits, for the exported header. */
const char *const kkt_gdn_ws_row_needs[] = {
    "batch * sequences * heads_v * (dv / kkt_row->block_dv) >= kkt_row->units_per_block", NULL};

static bool grid_fits(const kkt_values *config, const sizes *s, char *reason, size_t size) {
    const int64_t each = config->v[UNITS_PER_BLOCK];
    if (each == 1 || s->units >= each)
        return true;
    kkt_reason(reason, size, "units_per_block %lld is more than there are: %lld", (long long)each,
               (long long)s->units);
    return false;
}

bool kkt_gdn_ws_applicable(const kkt_values *problem, const kkt_values *config,
                           const kkt_arch *arch, bool fused, char *reason, size_t size) {
    const sizes s = sizes_of(problem, config, fused);
    const int64_t others = s.groups + s.helpers;
    if (!arch->has_wgmma || !arch->has_tma) {
        kkt_reason(reason, size, "%s has no wgmma; this style is written for sm_90a", arch->name);
        return false;
    }
    if (others > 3) {
        kkt_reason(
            reason, size,
            "block_dv %lld with outputs %lld: %lld threads have %lld registers each, and what "
            "the state leaves is %lld for a helper that holds %lld",
            (long long)s.block_dv, (long long)s.outputs, (long long)s.threads,
            (long long)(REGISTERS / s.threads / 8 * 8), (long long)s.helper_registers,
            (long long)helper_registers(&s));
        return false;
    }
    if (config->v[NARROW] != 0 && (s.chunk == 16 || fused)) {
        kkt_reason(reason, size, "narrow=1 %s",
                   fused
                       ? "needs T's rows in reversed order, and the solver keeps them as they come"
                       : "changes nothing where chunk is 16");
        return false;
    }
    return shape_fits(problem, &s, reason, size) && columns_fit(config, &s, reason, size) &&
           registers_fit(&s, reason, size) && grid_fits(config, &s, reason, size);
}

/* ---- footprint ---- */

/* A tile of T or P: of 16 x 16 it is half a unit. */
static int64_t square_columns(int64_t chunk) {
    return chunk * chunk * 2 < TILE_UNIT ? TILE_UNIT / 2 / chunk : chunk;
}

static void shared_memory(const sizes *s, kkt_footprint *fp) {
    const int64_t c = s->chunk, table = c + 16; /* a column table of the gates, padded */
    const int64_t barriers = (s->fused ? 4 : 3) * s->stages + 4 + 2 + 8;
    /* of the solver: diagonal blocks, and T */
    const int64_t blocks = c / 16 * 16 * 20 * 4 + (s->substitute ? 0 : c * c * 2);
    kkt_gdn_shared_tile(fp, "k", c, s->dk, 2, s->stages);
    kkt_gdn_shared_tile(fp, "q", c, s->dk, 2, s->stages);
    kkt_gdn_shared_tile(fp, "t", c, square_columns(c), 2, s->stages);
    kkt_gdn_shared_tile(fp, "v", c, s->block_dv, 2, s->stages);
    if (s->outputs == 0) {
        kkt_gdn_shared_tile(fp, "scores", c, square_columns(c), 2, 2);
        kkt_gdn_shared_tile(fp, "o", c, s->block_dv, 2, 2);
    } else {
        kkt_gdn_shared_tile(fp, "s", s->block_dv, s->dk, 2, 2);
        kkt_gdn_shared_tile(fp, "value", s->block_dv, c, 2, 2);
    }
    if (s->group_dv < 64) {
        kkt_gdn_shared_tile(fp, "x", s->block_dv, c, 2, 1);
        kkt_gdn_shared_tile(fp, "scaled", s->block_dv, c, 2, 1);
    }
    if (s->fused)
        kkt_gdn_shared_tile(fp, "solver", 1, (blocks + TILE_UNIT - 1) / TILE_UNIT * TILE_UNIT, 1,
                            1);
    kkt_gdn_shared_tile(fp, "gates", 1, 5 * table + c + 4 + (s->fused ? c : 0), 4, s->stages);
    kkt_gdn_shared_tile(fp, "barriers", 1, (barriers + 1) / 2 * 2, 8, 1);
}

static void add_role(kkt_footprint *fp, const char *name, int64_t warpgroups, int64_t declared,
                     double least) {
    kkt_role *role = kkt_footprint_role(fp, name, (int)(warpgroups * WARPGROUP));
    role->declared_registers = (int)declared;
    role->least_registers = least;
}

/* Two tokens a lane, with their beta, are what the gate warp spills with 32 registers. */
static double service_registers(const sizes *s, bool beta) {
    return s->chunk == 64 && beta ? 34 : 32;
}

static void roles(const sizes *s, bool beta, kkt_footprint *fp) {
    const int64_t c = s->chunk;
    const int64_t scorers = s->fused ? s->helpers - 1 : s->helpers;
    const double helper = (double)helper_registers(s);
    add_role(fp, "state", s->groups, s->state_registers, (double)state_registers(s));
    add_role(fp, s->outputs > 0 ? "output" : "scores", scorers, s->helper_registers, helper);
    add_role(fp, "service", 1, s->service_registers, service_registers(s, beta));
    if (s->fused) {
        add_role(fp, "solver", 1, s->helper_registers, helper);
        kkt_gdn_register_table(fp, "k_kt", 64, c, 3);
    }
    kkt_gdn_register_table(fp, "state", s->block_dv, s->dk, 0);
    kkt_gdn_register_table(fp, "a", s->block_dv, c, 0);
    if (s->outputs == 0)
        kkt_gdn_register_table(fp, "o", s->block_dv, c, 0);
    kkt_gdn_register_table(fp, "scores", scorers * 64, c, 1);
    if (s->outputs > 0)
        kkt_gdn_register_table(fp, "o", s->outputs * 64, s->block_dv, 1);
}

/* A tile of T or P, as far as it is read. */
static double triangle_lines(const sizes *s) {
    const double square = (double)(s->chunk * s->chunk) * 2 / 128;
    return s->box_rows < s->chunk ? square * (1 + 16.0 / (double)s->chunk) / 2 : square;
}

/* Lines of 128 bytes that wgmma reads of a chunk: its right operand for every 64 rows of the left
 * one. TMA writes by a way of its own. */
static double wgmma_passes(const sizes *s) {
    const double key = (double)(s->chunk * s->dk) * 2 / 128, triangle = triangle_lines(s);
    const double value = (double)(s->chunk * s->block_dv) * 2 / 128;
    const double state = (double)(s->block_dv * s->dk) * 2 / 128;
    const double groups = (double)s->groups;
    /* fewer than 64 columns: S, X and V' are right operands themselves */
    const double chain = s->group_dv < 64 ? 2 * key + triangle + state + (double)s->dk / 64 * value
                                          : groups * (2 * key + triangle);
    const double output = s->outputs > 0 ? state + value : groups * (key + triangle);
    return (s->fused ? 2 * key : 0) + chain + 2 * key + output;
}

/* What its warps ask for. A thread's factor of an accumulator's column costs its warp a pass,
 * whatever the width of the load, since lanes side by side want different ones. An H200 counts 1.6
 * times what tiles and factors come to (chunks 16, 32 and 64), and 12.5 a row for the solver. */
#define ASKED_AGAIN 1.6
#define SOLVER_PASSES 12.5
static double asked_passes(const sizes *s, bool t_beta) {
    const double square = (double)(s->chunk * s->chunk) * 2 / 128;
    const double value = (double)(s->chunk * s->block_dv) * 2 / 128;
    const double factors = (double)s->chunk / 4, tables = t_beta ? 2 : 3;
    const double state = (double)(s->block_dv * s->dk) * 2 / 128, warps = 4 * (double)s->groups;
    const double chain = s->group_dv < 64 ? 4 * value : value + warps * tables * factors;
    const double output = s->outputs > 0 ? state + 3 * value : square + warps * factors + 2 * value;
    return ASKED_AGAIN * (chain + 4 * factors + output) +
           (s->fused ? SOLVER_PASSES * (double)s->chunk : 0);
}

/* A warp's instructions a chunk, scaled by what they go over: elements of accumulators, mostly.
 * Fitted to an H200's counters: chunks 16 and 32 of gdn_fwd_t and 16 to 64 of gdn_fwd, within 3 %.
 */
static double instructions(const sizes *s, bool t_beta) {
    const double c = (double)s->chunk, dk = (double)s->dk;
    const double part = (double)s->group_dv / 64;
    const double state =
        110 + part * (dk * 0.9 + c * (t_beta ? 2.0 : 2.5)) + (s->outputs > 0 ? 30 : c * 1.3);
    const double helper = 110 + c * 3.05 + (s->outputs > 0 ? (double)s->block_dv + dk / 2 : 0);
    const double solver = !s->fused ? 0 : 50 + c * (s->substitute ? 10 : 11.7);
    return 4 * ((double)s->groups * state + helper + solver) + 300;
}

/* A ring of two stages is refilled too late to be there when it is wanted. Per token of a chunk,
 * from gdn_fwd_t on an H200 with two stages and with three: 45 us more at C = 64, 50 at 32 and 44
 * at 16, of 8192 tokens. With a solver before it the chain waits for the solver rather than for
 * loads: 16 us more of gdn_fwd at C = 64. */
#define REFILL_CYCLES 11.0
#define FUSED_REFILL_CYCLES 4.0
static double refill_cycles(const sizes *s) {
    const double each = s->fused ? FUSED_REFILL_CYCLES : REFILL_CYCLES;
    return s->stages == 2 ? each * (double)s->chunk : 0;
}

/* Of T without beta the columns' factors are read from their table, a few in each lane, and V'
 * waits for that. Of gdn_fwd_t on an H200, 200, 390 and 450 cycles a chunk of 16, 32 and 64. */
static double beta_cycles(const sizes *s) {
    return 100 + 6.0 * (double)s->chunk;
}

/* What the gate warp spills it waits for before the tables are there: some per cent at most. */
#define SERVICE_SPILL_CYCLES 60.0

static void add_waits(const sizes *s, bool t_beta, kkt_footprint *out) {
    const bool beta = s->fused || !t_beta;
    const bool spills = (double)s->service_registers < service_registers(s, beta);
    out->chain_wait_cycles =
        (!s->fused && beta ? beta_cycles(s) : 0) + (spills ? SERVICE_SPILL_CYCLES : 0);
    out->wait_cycles = out->chain_wait_cycles + refill_cycles(s);
}

void kkt_gdn_ws_footprint(const kkt_values *problem, const kkt_values *config, bool fused,
                          kkt_footprint *out) {
    const sizes s = sizes_of(problem, config, fused);
    const bool t_beta = fused || problem->v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA;
    const kkt_gdn_style style = {.style = KKT_STYLE_WARP_SPECIALIZED,
                                 .given_t = !fused,
                                 .block_dv = s.block_dv,
                                 .threads = s.threads,
                                 .products = s.outputs > 0 ? 3 : 4};
    kkt_gdn_fused_footprint(problem, s.chunk, &style, out);
    const double chunks = (double)(out->blocks * out->chunks_per_block);
    out->chunks_per_block = out->chunks_per_block * s.units / s.grid;
    out->blocks = s.grid;
    out->barriers = 1 + (int)s.outputs + (fused ? 1 : 0);
    roles(&s, fused || !t_beta, out);
    shared_memory(&s, out);
    out->smem_wavefronts = chunks * asked_passes(&s, t_beta);
    out->wgmma_wavefronts = chunks * wgmma_passes(&s);
    out->instructions = chunks * instructions(&s, t_beta);
    add_waits(&s, t_beta, out);
}

/* ---- compiling and launching ---- */

void kkt_gdn_ws_defines(const kkt_values *problem, const kkt_values *config, bool fused,
                        kkt_text *out) {
    kkt_footprint fp;
    kkt_gdn_ws_footprint(problem, config, fused, &fp);
    kkt_gdn_defines(problem, &fp, out);
    kkt_text_printf(out, "KKT_FUSED=%d\n", fused);
    if (!fused)
        kkt_text_printf(out, "KKT_SOLVE=%d\n", INVERT);
    kkt_text_printf(out, "KKT_T_BETA=%d\n", !fused && problem->v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA);
}

/* A tensor as a matrix of all heads' columns, a row a token; boxes of `box_rows` x `box_columns`.
 */
static void add_map(kkt_launch *launch, int tensor, const kkt_values *problem, int64_t columns,
                    int64_t box_columns, int64_t box_rows) {
    launch->args[launch->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_TENSOR_MAP,
                  .tensor = tensor,
                  .map = {.rank = 2,
                          .dims = {columns, problem->v[KKT_GDN_TOKENS]},
                          .strides_bytes = {0, columns * 2},
                          .box = {(int)box_columns, (int)box_rows},
                          .swizzle_bytes = (int)box_columns * 2}};
}

void kkt_gdn_ws_plan(const kkt_values *problem, const kkt_values *config,
                     const kkt_gdn_ws_tensors *tensors, kkt_plan *out) {
    const int64_t *p = problem->v;
    const bool fused = tensors->t < 0;
    const sizes s = sizes_of(problem, config, fused);
    const int64_t key = p[KKT_GDN_HEADS_K] * s.dk, value = p[KKT_GDN_HEADS_V] * s.dv;
    kkt_footprint fp;
    kkt_gdn_ws_footprint(problem, config, fused, &fp);
    *out = (kkt_plan){.launch_count = 1};
    kkt_launch *launch = &out->launches[0];
    *launch = (kkt_launch){.entry = tensors->entry,
                           .grid = {(uint32_t)s.grid, 1, 1},
                           .block = {(uint32_t)s.threads, 1, 1},
                           .dynamic_smem_bytes = kkt_footprint_smem_bytes(&fp),
                           .carveout_percent = -1,
                           .waits = !fused};
    add_map(launch, tensors->q, problem, key, 64, s.box_rows);
    add_map(launch, tensors->k, problem, key, 64, s.box_rows);
    add_map(launch, tensors->v, problem, value, s.group_dv, s.chunk);
    if (!fused)
        add_map(launch, tensors->t, problem, p[KKT_GDN_HEADS_V] * s.chunk, s.chunk, s.box_rows);
    add_map(launch, tensors->o, problem, value, s.group_dv, s.chunk);
    const int pointers[] = {tensors->g,  tensors->beta, tensors->h0,
                            tensors->ht, tensors->o,    tensors->cu_seqlens};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        kkt_gdn_add_tensor(launch, pointers[i]);
    kkt_gdn_add_i64(launch, p[KKT_GDN_TOKENS] / p[KKT_GDN_BATCH]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_K]);
    kkt_gdn_add_i32(launch, p[KKT_GDN_HEADS_V]);
    kkt_gdn_add_i32(launch, 0); /* cu_seqlens holds 32-bit integers */
    kkt_gdn_add_i32(launch, s.units);
    launch->args[launch->arg_count++] =
        (kkt_arg){.kind = KKT_ARG_F32, .real = 1.0 / sqrt((double)s.dk)};
}
