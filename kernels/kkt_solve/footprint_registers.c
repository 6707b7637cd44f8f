/* One configuration of kkt_solve with couplings in registers as the model sees it. The buffers in
 * shared memory are those of the plan at the top of register_path.cuh; the kernel asserts that
 * their total is the same. */
#include "kernels/kkt_solve/space.h"

#include "model/ledger.h"

#define WARP 32
/* Inverses of a strip as 8 x 8 matrices of 2-byte elements: two and a row of zeros, or four. */
#define STRIP_BYTES_8 (2 * 128 + 16)
#define STRIP_BYTES_16 (4 * 128)
#define REGION_UNIT 1024 /* swizzled tiles begin at multiples of it */

/* A configuration's derived sizes. */
typedef struct sizes {
    int64_t chunk, span, dk, threads, warps, heads;
    bool gated, wgmma, neumann, persistent;
    int64_t base, parts; /* rows of a substituted block; 2-byte words of an operand's element */
    int64_t kload, store;
    int64_t strips;  /* of 16 rows, a span */
    int64_t side;    /* strips a chunk */
    int64_t chunks;  /* a block */
    int64_t tiles;   /* of K K^T, an area */
    int64_t areas;   /* of a block: its warps that have a K K^T of their own, or one */
    int64_t team;    /* warps that take a head */
    int64_t teams;   /* of a block */
    int64_t solved;  /* strips that one warp inverts */
    int64_t regions; /* an area: warps or teams that take heads */
} sizes;

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static sizes sizes_of(const int64_t *p, const int64_t *c) {
    sizes s = {.chunk = c[KKT_SOLVE_CHUNK],
               .span = kkt_solve_span(c),
               .dk = p[KKT_SOLVE_DK],
               .threads = c[KKT_SOLVE_THREADS],
               .heads = c[KKT_SOLVE_HEADS_PER_BLOCK],
               .gated = p[KKT_SOLVE_GATED] != 0,
               .wgmma = c[KKT_SOLVE_MMA] == KKT_MMA_WGMMA,
               .neumann = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_NEUMANN,
               .persistent = c[KKT_SOLVE_PERSISTENT] != 0,
               .base = c[KKT_SOLVE_BASE],
               .parts = c[KKT_SOLVE_COUPLE] == KKT_COUPLE_BF16X3 ? 2 : 1,
               .kload = c[KKT_SOLVE_KLOAD],
               .store = c[KKT_SOLVE_STORE],
               .chunks = c[KKT_SOLVE_CHUNKS_PER_BLOCK],
               .tiles = kkt_solve_tiles(c)};
    s.warps = s.threads / WARP;
    s.strips = s.span / 16;
    s.side = s.chunk / 16;
    s.areas = s.warps / kkt_solve_area_warps(c);
    s.team = c[KKT_SOLVE_WARPS_PER_HEAD];
    s.solved = s.strips / s.team;
    s.teams = larger(s.warps / s.team, 1);
    const int64_t teams = larger(s.teams / s.areas, 1), heads = larger(s.heads / s.areas, 1);
    s.regions = teams < heads ? teams : heads;
    return s;
}

/* ---- buffers ---- */

static int64_t scratch_bytes(const sizes *s) {
    const int64_t blocks = s->solved * 16 / s->base;
    const int64_t words = blocks * (s->base * s->base + 8) * 4;
    const int64_t matrices = s->parts * s->solved * (s->base == 8 ? STRIP_BYTES_8 : STRIP_BYTES_16);
    if (s->neumann)
        return 0;
    return s->solved <= 4 ? larger(words, matrices) : words + matrices;
}

static int64_t rounded(int64_t bytes) {
    return (bytes + REGION_UNIT - 1) / REGION_UNIT * REGION_UNIT;
}

/* The parts of one area, bytes. */
typedef struct area {
    int64_t regions, region;
    int64_t scratch, out, exchange; /* of a region */
    int64_t zeros;
    int64_t work; /* all of it, but for what is left of K */
} area;

static area area_of_team(const sizes *s, int64_t k_kt) {
    const int64_t half = s->chunk / 2, quarter = half * half * 2, blocks = s->side / 2;
    area a = {.regions = s->regions, .scratch = 2 * scratch_bytes(s), .out = 2 * quarter};
    a.exchange = (blocks * (blocks + 1) + 2 * blocks) * s->parts * WARP * 16;
    a.zeros = s->store == KKT_STORE_TMA_HALVES ? quarter : 0;
    a.region = rounded(2 * rounded(larger(a.scratch / 2, quarter)) + a.exchange);
    a.work = a.regions * a.region + k_kt + a.zeros;
    return a;
}

static area area_of(const sizes *s, int64_t k_kt) {
    if (s->team == 2)
        return area_of_team(s, k_kt);
    const bool halves = s->store == KKT_STORE_TMA_HALVES;
    const bool alone = s->chunks == 1 && (s->areas > 1 || s->heads == 1);
    /* Halves of a large chunk, and those of persistent blocks, take turns in one place. */
    const bool in_turn = halves && (s->chunk > 64 || s->persistent);
    const int64_t out_rows = s->store == KKT_STORE_DIRECT ? 0 : s->span / (in_turn ? 2 : 1);
    area a = {.regions = s->regions, .scratch = scratch_bytes(s), .out = out_rows * s->chunk * 2};
    const int64_t scratch_at = alone ? k_kt : s->chunks > 1 ? a.out : 0;
    const int64_t first_half_end = halves ? (alone ? k_kt : 0) + s->span * s->chunk : 0;
    a.region = rounded(larger(scratch_at + a.scratch, larger(a.out, first_half_end)));
    a.work = alone ? a.region : a.regions * a.region + k_kt;
    return a;
}

/* The tile is dead when the regions and K K^T are written; whichever is larger owns the space, and
 * the rest lies over it. Persistent blocks have both, for the next K arrives meanwhile. */
static void shared_memory(const sizes *s, kkt_footprint *fp) {
    const int64_t tile = s->span * s->dk * 2;
    const int64_t k_kt = rounded(s->tiles * 1024 - s->strips * 256);
    const area a = area_of(s, k_kt);
    const int64_t regions = s->areas * a.regions;
    const bool over = a.work > tile && !s->persistent; /* the tile lies over the work */
    if (s->persistent)
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "tile", s->areas * s->span, s->dk, 2);
    if (over || s->persistent)
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "work", s->areas, a.work, 1);
    else
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "tile", s->areas * s->span, s->dk, 2);
    const int owner = fp->buffer_count;
    const struct {
        const char *name;
        int64_t count, bytes;
    } parts[] = {{"tile", s->areas, over ? tile : 0}, {"k_kt", s->areas, k_kt},
                 {"scratch", regions, a.scratch},     {"out", regions, a.out},
                 {"exchange", regions, a.exchange},   {"zeros", s->areas, a.zeros}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i)
        if (parts[i].bytes > 0)
            kkt_footprint_buffer(fp, KKT_PLACE_SHARED, parts[i].name, parts[i].count,
                                 parts[i].bytes, 1)
                ->overlays = owner;
    kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "factors", s->heads * (s->gated ? 4 : 1), s->span,
                         4);
    if (s->kload == KKT_KLOAD_TMA) /* 8 bytes an area, in 16-byte units */
        kkt_footprint_buffer(fp, KKT_PLACE_SHARED, "barriers", (s->areas + 1) / 2, 16, 1);
}

/* What the compiler takes beyond need where it is free to: addresses of the next K and state of the
 * turn in persistent blocks, more than a strip at once where a warp has several, and all of a row
 * of blocks at chunk 128. Medians of 400 compiled variants. */
static double unforced(const sizes *s) {
    if (s->side == 8)
        return s->team == 2 ? -28 : 44;
    if (s->persistent)
        return 38;
    return s->side < 4 && s->solved > 2 ? 20 : s->side == 1 ? -8 : 0;
}

/* The larger of the two tables that live at different times: the tiles of K K^T, and the two
 * inverted halves with what couples them. */
static void registers(const sizes *s, int64_t tiles_per_warp, kkt_footprint *fp) {
    const int64_t half = s->side / 2;
    /* A team's warp has its half, or a column of the other's and one of M beside it. */
    const int64_t blocks = s->side == 1   ? s->strips
                           : s->team == 2 ? larger(half * (half + 1) / 2 + half, 2 * half)
                                          : half * (half + 1) + half * half;
    const int64_t operands = blocks * 4 * s->parts;
    const int64_t tiles = s->wgmma ? (s->span == 128 ? 96 : 32) : 8 * tiles_per_warp;
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, tiles >= operands ? "k_kt" : "operands",
                         s->threads, larger(tiles, operands), 4);
    kkt_role *role = kkt_footprint_role(fp, "all", (int)s->threads);
    /* Accumulators and a row of -L in flight, as sm_90a's compiler takes them: fewer where operands
     * have two parts. It can do with eight less. */
    const double flight = s->side == 1 ? 24 : s->parts == 2 ? 20 : 32;
    role->extra_registers = flight + unforced(s);
    role->least_registers =
        (double)larger(tiles, operands) + flight + kkt_style_get(fp->style)->register_overhead - 8;
}

/* ---- work ---- */

/* Block products of one chunk's couplings. */
static double coupling_products(int64_t side) {
    double products = 0;
    for (int64_t half = side / 2, pairs = 1; half >= 1; half /= 2, pairs *= 2) /* two triangles */
        products += (double)(pairs * half * half * (half + 1));
    return products;
}

/* Warp instructions below were fitted to an H200's counters: of 14 configurations (chunks 16 to
 * 128, one to four heads, both precisions) within 10 %, and where the code has become shorter since
 * again to seven of chunk 64, within 5 %. */

/* K and K K^T, a block. */
static double block_instructions(const sizes *s) {
    const int64_t area_warps = s->warps / s->areas;
    const double areas = (double)s->areas, warps = (double)area_warps;
    const double k_units = (double)(s->span * s->dk) / 8 / WARP;
    const double depth = (double)s->dk / 16, tiles = (double)s->tiles;
    double n = 100.0 * warps + 4 * tiles;
    n += s->kload == KKT_KLOAD_TMA ? 30 : k_units * 11;
    if (s->wgmma)
        return (n + warps * depth * (s->span == 128 ? 12 : 4)) * areas;
    const double loads = warps < 2 ? (double)s->strips : 0.75 * (double)s->strips * warps;
    return (n + depth * (2 * tiles + 3 * loads) + 8 * tiles) * areas;
}

/* Diagonal blocks of one head. */
static double diagonal_instructions(const sizes *s) {
    const double strips = (double)s->strips, parts = (double)s->parts;
    const double chains = (double)larger(s->span / WARP, 1);
    const double terms = s->parts == 2 ? 3 : 1;
    const double n = strips * (s->gated ? 46 : 22);
    if (s->neumann)
        return n + strips * (40 + 3 * (4 * terms + 30 * parts));
    if (s->base == 8)
        return n + strips * 6 + chains * (46 + 20 * parts) + strips * (3 * terms + 16 * parts + 10);
    return n + strips * 8 + chains * (110 + 20 * parts) + strips * 6 * parts;
}

/* Gate, couplings and output of one head. */
static double coupling_instructions(const sizes *s) {
    const double chunks = (double)s->chunks, side = (double)s->side, parts = (double)s->parts;
    const double below = chunks * side * (side - 1) / 2, blocks = chunks * side * side;
    const double terms = s->parts == 2 ? 3 : 1;
    const double products = chunks * coupling_products(s->side);
    double n = (s->gated ? 70.0 : 30.0) * (double)larger(s->span / 64, 1);
    n += below * (14 + 20 * parts) + products * (2 * terms + 10 * parts - 6);
    if (s->team == 2) {
        /* Each column of the square asks for its blocks of L; halves change hands. */
        const double half = side / 2, square = half * half;
        const double again = square * (half + 1) / 2 - square;
        const double moved = half * (half + 1) + square * (half + 1);
        n += again * (14 + 20 * parts) + moved * parts * 2;
    }
    n += blocks * (s->store == KKT_STORE_DIRECT ? 16 : 9);
    return s->store == KKT_STORE_STAGED ? n + blocks * 14 : n;
}

static void work(const sizes *s, kkt_footprint *fp) {
    const double blocks = (double)fp->blocks, heads = (double)s->heads;
    const double strips = (double)s->strips;
    const double terms = s->parts == 2 ? 3 : 1;
    const double products =
        (double)s->chunks * coupling_products(s->side) + (s->neumann     ? 6 * strips
                                                          : s->base == 8 ? strips
                                                                         : 0);
    const double areas = (double)s->areas;
    const double multiplied =
        s->wgmma ? 4096.0 * (s->span == 128 ? 3 : 1) : 256.0 * (double)s->tiles * areas;
    const double pairs = (double)(s->span * s->base * (s->base - 1)) / 2;
    fp->tensor_flop =
        blocks * (2 * multiplied * (double)s->dk + heads * products * terms * 2 * 4096);
    fp->fp32_flop = blocks * heads * 2 * (pairs + 256.0 * (double)s->tiles);
    fp->instructions = blocks * (block_instructions(s) +
                                 heads * (diagonal_instructions(s) + coupling_instructions(s)));
}

static void chain(const sizes *s, kkt_footprint *fp) {
    const double levels = (double)kkt_inverse_levels(s->chunk, s->neumann ? 16 : s->base);
    const int64_t heads_a_team = (s->heads + s->teams - 1) / s->teams;
    const double turns = (double)heads_a_team;
    kkt_footprint_step(fp, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(fp, KKT_STEP_BARRIER, s->team == 2 ? 3 + 3 * turns : 3, 0);
    kkt_footprint_step(fp, KKT_STEP_PRODUCT, (double)s->dk / 64, 0);
    if (!s->neumann)
        kkt_footprint_step(fp, KKT_STEP_SUBSTITUTION, turns * (double)(s->base - 1),
                           (double)s->base / 2);
    kkt_footprint_step(fp, KKT_STEP_MMA, turns * (2 * levels + (s->neumann ? 6 : 0)), 0);
    kkt_footprint_step(fp, KKT_STEP_STORE, turns, 0);
    /* Halves of persistent blocks take turns in one place: the second waits until TMA has read the
     * first. As a pair of persistent and other blocks differ on an H200 at chunk 64. */
    fp->wait_cycles = s->persistent && s->store == KKT_STORE_TMA_HALVES ? 1600 * turns : 0;
}

void kkt_solve_footprint_registers(const int64_t *problem, const int64_t *config,
                                   kkt_footprint *out) {
    const sizes s = sizes_of(problem, config);
    out->min_blocks = (int)config[KKT_SOLVE_MIN_BLOCKS];
    /* Barrier 0, and a named one a team where the block has several. */
    out->barriers = 1 + (s.team == 2 && s.warps > 2 ? (int)(s.warps / 2) : 0);
    /* One more where warps come from products of their own to the end of K. */
    const area a = area_of(&s, 0);
    out->barriers += !s.persistent && !s.wgmma && s.areas == 1 && s.warps > 1 &&
                     s.regions * a.region < s.span * s.dk * 2;
    shared_memory(&s, out);
    registers(&s, kkt_solve_tiles_per_warp(config), out);
    work(&s, out);
    chain(&s, out);
}
