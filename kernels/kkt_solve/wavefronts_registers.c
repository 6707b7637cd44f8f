/* Shared-memory wavefronts of couplings in registers: the accesses of register_path.cuh,
 * gate_factors.cuh and block_inverse.cuh. Most are 16 bytes a lane, side by side, and take the four
 * passes of their 512 bytes; ldmatrix and stmatrix of four matrices take as many. Copies by
 * cp.async and TMA are not counted. */
#include "kernels/kkt_solve/wavefronts.h"

#include "model/banks.h"

#define WARP 32
#define LINES 4  /* passes of 16 bytes a lane */
#define GROUPS 8 /* groups of heads at most */

typedef struct sizes {
    int64_t chunk, span, dk, warps, heads;
    bool gated, wgmma, neumann, by_registers;
    int64_t base, parts, store;
    int64_t strips, side, chunks; /* of 16 rows a span and a chunk; chunks a block */
    int64_t tiles;                /* of K K^T, a block */
} sizes;

static sizes sizes_of(const int64_t *p, const int64_t *c) {
    const bool neumann = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_NEUMANN;
    return (sizes){.chunk = c[KKT_SOLVE_CHUNK],
                   .span = kkt_solve_span(c),
                   .dk = p[KKT_SOLVE_DK],
                   .warps = c[KKT_SOLVE_THREADS] / WARP,
                   .heads = c[KKT_SOLVE_HEADS_PER_BLOCK],
                   .gated = p[KKT_SOLVE_GATED] != 0,
                   .wgmma = c[KKT_SOLVE_MMA] == KKT_MMA_WGMMA,
                   .neumann = neumann,
                   .by_registers = c[KKT_SOLVE_KLOAD] == KKT_KLOAD_LDG,
                   .base = neumann ? 16 : c[KKT_SOLVE_BASE],
                   .parts = c[KKT_SOLVE_COUPLE] == KKT_COUPLE_BF16X3 ? 2 : 1,
                   .store = c[KKT_SOLVE_STORE],
                   .strips = kkt_solve_span(c) / 16,
                   .side = c[KKT_SOLVE_CHUNK] / 16,
                   .chunks = c[KKT_SOLVE_CHUNKS_PER_BLOCK],
                   .tiles = kkt_solve_tiles(c)};
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Passes of a lane's two rows of a table (8 bytes, lanes of a row together), and of its four
 * columns (16 bytes, four different ones). */
#define ROW_PAIR 1
#define COLUMN_QUAD 4
/* Of the right half of a fragment of K K^T, of which a lane needs the second 8 of its 16 bytes. */
#define FRAGMENT_HALF 4

/* ---- steps 1 and 2 ---- */

/* Values of up to four neighbouring heads an item; items along rows, groups of heads first. */
static void count_load(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t heads = s->heads % 4 == 0 ? 4 : s->heads % 2 == 0 ? 2 : 1;
    const int64_t groups = s->heads / heads;
    const int64_t items = (s->gated ? 2 : 1) * s->span * groups;
    const int64_t table = (s->gated ? 5 : 1) * s->span; /* words a head */
    const int64_t rows = smaller(items, WARP) / groups;
    const uint32_t run = rows >= WARP ? UINT32_MAX : ((uint32_t)1 << rows) - 1;
    uint32_t sets[GROUPS];
    for (int64_t group = 0; group < groups; ++group)
        sets[group] = kkt_banks_turned(run, group * heads * table);
    if (s->by_registers)
        out->stores[KKT_PHASE_LOAD] += (double)(s->span * s->dk / 8 / WARP * LINES);
    out->stores[KKT_PHASE_LOAD] +=
        (double)((items + WARP - 1) / WARP * heads * kkt_bank_overlap(sets, groups));
}

/* Two neighbouring rows a lane, so a round has 64 rows. A strip is eight lanes; in pair order
 * (gate_factors.cuh) it has eight banks an access, and every second strip has the same; in quad
 * order lanes write two neighbouring words. */
static void count_scan(const sizes *s, kkt_solve_wavefronts *out) {
    const double rounds = (double)(s->heads * ((s->span + 63) / 64));
    const double passes = s->span < 64 ? 1 : 2; /* of either order, and of two words a lane */
    out->loads[KKT_PHASE_SCAN] += rounds * passes * (s->gated ? 2 : 1);
    out->stores[KKT_PHASE_SCAN] += rounds * passes * (s->gated ? 8 : 2);
}

/* Strips of K that all warps load in one step: those in which a warp's half blocks of K K^T lie. */
static int64_t strip_loads(const sizes *s) {
    const int64_t halves = 2 * s->tiles;
    int64_t loads = 0, n = 0, strip = 0, row = 0, column = 0;
    for (int64_t warp = 0; warp < s->warps; ++warp) {
        uint64_t needed = 0;
        for (; n < (warp + 1) * halves / s->warps; ++n) {
            needed |= (uint64_t)1 << (strip + row) | (uint64_t)1 << (strip + column);
            if (n % 2 == 0)
                continue;
            if (++column > row) {
                column = 0;
                ++row;
            }
            if (row == s->side) {
                row = 0;
                strip += s->side;
            }
        }
        for (; needed != 0; needed &= needed - 1)
            ++loads;
    }
    return loads;
}

/* wgmma reads its operands past the pipe that is counted, but costs it passes all the same: about
 * half of the lines that its two operands have, 64 rows of dk elements each. */
#define WGMMA_SHARE 0.5

static void count_product(const sizes *s, kkt_solve_wavefronts *out) {
    if (s->wgmma)
        out->loads[KKT_PHASE_PRODUCT] += WGMMA_SHARE * 2 * 64 * (double)s->dk * 2 / 128;
    else
        out->loads[KKT_PHASE_PRODUCT] += (double)(LINES * strip_loads(s) * s->dk / 16);
    out->stores[KKT_PHASE_PRODUCT] += (double)(2 * LINES * s->tiles);
}

/* ---- step 3 ---- */

/* Blocks of -L below the diagonal. The compiler keeps what a half of the chunk reads of the tables:
 * rows, columns and whole strips' decays once each; the coupling of the halves reads its own. */
static void count_lower(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t below = s->chunks * s->side * (s->side - 1) / 2;
    const int64_t half = s->side / 2;
    int64_t tables = 0, strips = 0;
    if (s->side > 1) {
        tables = 2 * (half - 1) + half;
        strips = (half > 2 ? 2 * (half - 2) : 0) + s->side - 2;
    }
    const double heads = (double)s->heads, chunks = (double)s->chunks;
    double loads = (double)(below * 2 * LINES) + chunks * (double)tables * ROW_PAIR;
    if (s->gated)
        loads += chunks * ((double)tables * COLUMN_QUAD + (double)strips);
    out->loads[KKT_PHASE_LOWER] += heads * loads;
}

/* Rows of N are broadcast to the eight lanes of a block, as many neighbouring words at once as
 * there are. The four blocks of a round begin in different banks, so 8 bytes a lane are a pass, and
 * 16 bytes one for each half of the warp. */
static double substitution_loads(const sizes *s) {
    double a_round = 0;
    for (int64_t i = 1; i < s->base; ++i)
        a_round += (double)(i / 4 * 2 + i % 4 / 2 + i % 2);
    return a_round * (double)((s->span / s->base + 3) / 4);
}

/* Diagonal blocks: K K^T of three quarters (of the upper right one nothing is used) and the tables;
 * to scratch, substitution, inverses to scratch as operands' matrices, and back. */
static void count_diagonal(const sizes *s, kkt_solve_wavefronts *out) {
    const double heads = (double)s->heads, blocks = heads * (double)s->strips;
    const double parts = (double)s->parts;
    out->loads[KKT_PHASE_DIAGONAL] += blocks * (LINES + FRAGMENT_HALF + ROW_PAIR);
    if (s->gated)
        out->loads[KKT_PHASE_DIAGONAL] += blocks * (COLUMN_QUAD + ROW_PAIR);
    if (s->neumann)
        return;
    const bool small = s->base == 8;
    const double put = small ? 2 : 4; /* rows of 16 words share banks two by two */
    const double round_lines =
        (double)(s->span / s->base); /* blocks: 128 bytes a column's matrix */
    out->stores[KKT_PHASE_DIAGONAL] += blocks * put * (small ? 2 : 3);
    out->loads[KKT_PHASE_DIAGONAL] += heads * substitution_loads(s);
    out->stores[KKT_PHASE_DIAGONAL] += heads * parts * round_lines * (small ? 1 : 4);
    /* Both forms of each: two of two matrices, or of four. The first block of a chunk is wanted in
     * one form only, and so is the last. */
    const double forms =
        small ? blocks : blocks * 2 - heads * (double)(s->chunks * (s->side > 1 ? 2 : 1));
    out->loads[KKT_PHASE_DIAGONAL] += forms * LINES * parts;
}

/* T to its tile, matrix by matrix, and out of it where registers carry it on. */
static void count_output(const sizes *s, kkt_solve_wavefronts *out) {
    const double blocks = (double)(s->heads * s->chunks * s->side * s->side);
    if (s->store == KKT_STORE_DIRECT)
        return;
    out->stores[KKT_PHASE_OUTPUT] += blocks * LINES;
    if (s->store == KKT_STORE_STAGED)
        out->loads[KKT_PHASE_OUTPUT] += blocks * LINES;
}

void kkt_solve_register_wavefronts(const int64_t *problem, const int64_t *config,
                                   kkt_solve_wavefronts *out) {
    const sizes s = sizes_of(problem, config);
    count_load(&s, out);
    count_scan(&s, out);
    count_product(&s, out);
    count_lower(&s, out);
    count_diagonal(&s, out);
    count_output(&s, out);
}
