/* Shared-memory wavefronts of couplings in registers: the accesses of register_*.cuh,
 * gate_factors.cuh and block_inverse.cuh. Most are 16 bytes a lane, side by side, and take the four
 * passes of their 512 bytes; ldmatrix and stmatrix of four matrices take as many. Copies by
 * cp.async and TMA are not counted. */
#include "kernels/kkt_solve/wavefronts.h"

#include "model/banks.h"

#define WARP 32
#define LINES 4  /* passes of 16 bytes a lane */
#define GROUPS 8 /* of heads that are loaded together, at most */
/* Passes of a lane's two rows of a table (8 bytes, lanes of a row together), and of its four
 * columns (16 bytes, four different ones). */
#define ROW_PAIR 1
#define COLUMN_QUAD 4
/* Of the right half of a fragment of K K^T, of which a lane needs the second 8 of its 16 bytes. */
#define FRAGMENT_HALF 4

typedef struct sizes {
    int64_t chunk, span, dk, warps, heads;
    bool gated, wgmma, neumann, by_registers, times_beta, staged, direct, zeros;
    int64_t base, parts;
    int64_t strips, side, chunks; /* of 16 rows a span and a chunk; chunks a block */
    int64_t tiles, areas;         /* of K K^T an area; areas a block */
    int64_t team;                 /* warps that take a head */
} sizes;

static sizes sizes_of(const int64_t *p, const int64_t *c) {
    const bool neumann = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_NEUMANN;
    const int64_t store = c[KKT_SOLVE_STORE], warps = c[KKT_SOLVE_THREADS] / WARP;
    return (sizes){.chunk = c[KKT_SOLVE_CHUNK],
                   .span = kkt_solve_span(c),
                   .dk = p[KKT_SOLVE_DK],
                   .warps = warps,
                   .heads = c[KKT_SOLVE_HEADS_PER_BLOCK],
                   .gated = p[KKT_SOLVE_GATED] != 0,
                   .wgmma = c[KKT_SOLVE_MMA] == KKT_MMA_WGMMA,
                   .neumann = neumann,
                   .by_registers = c[KKT_SOLVE_KLOAD] == KKT_KLOAD_LDG,
                   .times_beta = p[KKT_SOLVE_T_FORM] == KKT_T_BETA,
                   .staged = store == KKT_STORE_STAGED,
                   .direct = store == KKT_STORE_DIRECT,
                   .zeros = store == KKT_STORE_TMA_HALVES && c[KKT_SOLVE_WARPS_PER_HEAD] == 2,
                   .base = neumann ? 16 : c[KKT_SOLVE_BASE],
                   .parts = c[KKT_SOLVE_COUPLE] == KKT_COUPLE_BF16X3 ? 2 : 1,
                   .strips = kkt_solve_span(c) / 16,
                   .side = c[KKT_SOLVE_CHUNK] / 16,
                   .chunks = c[KKT_SOLVE_CHUNKS_PER_BLOCK],
                   .tiles = kkt_solve_tiles(c),
                   .areas = warps / kkt_solve_area_warps(c),
                   .team = c[KKT_SOLVE_WARPS_PER_HEAD]};
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void add(double *to, int64_t passes) {
    *to += (double)passes;
}

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
        add(&out->stores[KKT_PHASE_LOAD], s->areas * (s->span * s->dk / 8 / WARP) * LINES);
    add(&out->stores[KKT_PHASE_LOAD],
        (items + WARP - 1) / WARP * heads * kkt_bank_overlap(sets, groups));
}

/* Two neighbouring rows a lane, so a round has 64 rows. A strip is eight lanes; in pair order
 * (gate_factors.cuh) it has eight banks an access, and every second strip has the same; in quad
 * order lanes write two neighbouring words. */
static void count_scan(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t rounds = s->heads * ((s->span + 63) / 64);
    const int64_t passes = s->span < 64 ? 1 : 2; /* of either order, and of two words a lane */
    add(&out->loads[KKT_PHASE_SCAN], rounds * passes * (s->gated ? 2 : 1));
    add(&out->stores[KKT_PHASE_SCAN], rounds * passes * (s->gated ? 8 : 2));
}

/* Strips of K that the warps of an area load in one step: those in which a warp's half blocks of
 * K K^T lie. */
static int64_t strip_loads(const sizes *s) {
    const int64_t halves = 2 * s->tiles, warps = s->warps / s->areas;
    int64_t loads = 0, n = 0, strip = 0, row = 0, column = 0;
    for (int64_t warp = 0; warp < warps; ++warp) {
        uint64_t needed = 0;
        for (; n < (warp + 1) * halves / warps; ++n) {
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
 * half of the lines that its two operands have, 64 rows of dk elements each, a product. */
static int64_t wgmma_passes(const sizes *s) {
    const int64_t products = s->span == 128 ? 3 : 1;
    return products * 2 * 64 * s->dk * 2 / 128 / 2;
}

static void count_product(const sizes *s, kkt_solve_wavefronts *out) {
    add(&out->loads[KKT_PHASE_PRODUCT],
        s->wgmma ? wgmma_passes(s) : s->areas * strip_loads(s) * (s->dk / 16) * LINES);
    add(&out->stores[KKT_PHASE_PRODUCT], s->areas * 2 * LINES * s->tiles);
    if (s->zeros) /* a quarter of T, for all teams */
        add(&out->stores[KKT_PHASE_PRODUCT], s->span / 2 * (s->chunk / 2) * 2 / 128);
}

/* ---- step 3 ---- */

/* Rows, columns and whole strips' decays of the tables. */
static int64_t table_loads(const sizes *s, int64_t rows, int64_t columns, int64_t strips) {
    return rows * ROW_PAIR + (s->gated ? columns * COLUMN_QUAD + strips : 0);
}

/* Blocks of -L below the diagonal of a triangle of `side` strips that one warp inverts. The
 * compiler keeps what such a triangle reads of the tables. */
static int64_t triangle_loads(const sizes *s, int64_t side) {
    const int64_t strips = side > 2 ? side - 2 : 0;
    return side * (side - 1) / 2 * 2 * LINES + table_loads(s, side - 1, side - 1, strips);
}

/* Those between the halves of a chunk that one warp couples. */
static int64_t square_loads(const sizes *s) {
    const int64_t half = s->side / 2;
    return half * half * 2 * LINES + table_loads(s, half, half, s->side - 2);
}

/* The same where two warps do, a column of M^T at a time: for each row a column needs the blocks
 * from its own on, and the decays that a warp keeps. */
static int64_t team_square_loads(const sizes *s) {
    const int64_t half = s->side / 2, blocks = half * half * (half + 1) / 2;
    return blocks * 2 * LINES + table_loads(s, half * half, blocks, half * half) +
           (s->gated ? 2 * (half - 1) : 0);
}

static void count_lower(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t half = s->side / 2;
    if (s->side == 1)
        return;
    add(&out->loads[KKT_PHASE_LOWER],
        s->heads * s->chunks *
            (2 * triangle_loads(s, half) +
             (s->team == 2 ? team_square_loads(s) : square_loads(s))));
}

/* Rows of N are broadcast to the eight lanes of a block, as many neighbouring words at once as
 * there are. The four blocks of a round begin in different banks, so 8 bytes a lane are a pass, and
 * 16 bytes one for each half of the warp. */
static int64_t substitution_loads(const sizes *s) {
    int64_t a_round = 0;
    for (int64_t i = 1; i < s->base; ++i)
        a_round += i / 4 * 2 + i % 4 / 2 + i % 2;
    return s->team * a_round * ((s->span / s->team / s->base + 3) / 4);
}

/* Diagonal blocks of which one form, plain or transposed, is asked for and not both: one warp's
 * first and last block of a chunk; of a team's triangles, each wanted plain, the last one. */
static int64_t of_one_form(const sizes *s) {
    return s->chunks * (s->side > 1 ? 2 : 1);
}

/* Inverses as operands. With base 8 each form is coupled first, and where the other is not asked
 * for that still reads one matrix of it. */
static int64_t take_loads(const sizes *s) {
    const int64_t forms = 2 * s->strips - of_one_form(s);
    return (forms * LINES + (s->base == 8 ? of_one_form(s) : 0)) * s->parts;
}

/* K K^T of three quarters (of the upper right one nothing is used) and the tables; to scratch,
 * substitution, inverses to scratch as operands' matrices, and back. */
static void count_diagonal(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t blocks = s->heads * s->strips;
    const int64_t tables = table_loads(s, s->gated ? 2 : 1, 1, 0);
    add(&out->loads[KKT_PHASE_DIAGONAL], blocks * (LINES + FRAGMENT_HALF + tables));
    if (s->neumann)
        return;
    const int64_t quarters = s->base == 8 ? 2 : 3, matrices = s->base == 8 ? 1 : 4;
    if (s->base == 8) /* a row of zeros for each strip and part; eight of them are a pass */
        add(&out->stores[KKT_PHASE_DIAGONAL],
            s->heads * s->team * ((s->strips / s->team * s->parts + 7) / 8));
    add(&out->stores[KKT_PHASE_DIAGONAL], blocks * quarters * 2);
    add(&out->loads[KKT_PHASE_DIAGONAL], s->heads * substitution_loads(s));
    add(&out->stores[KKT_PHASE_DIAGONAL], s->heads * s->parts * (s->span / s->base) * matrices);
    add(&out->loads[KKT_PHASE_DIAGONAL], s->heads * take_loads(s));
}

/* Operands that the warps of a team hand each other: both triangles; a column of M for each column;
 * and back, columns of the upper triangle, M, and the lower triangle for each column. */
static void count_exchange(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t half = s->side / 2, triangle = half * (half + 1) / 2;
    if (s->team == 1)
        return;
    add(&out->stores[KKT_PHASE_COUPLING],
        s->heads * (2 * triangle + half * half) * LINES * s->parts);
    add(&out->loads[KKT_PHASE_COUPLING],
        s->heads * (triangle + half * half + half * triangle) * LINES * s->parts);
}

/* T to its tile, matrix by matrix, and out of it where registers carry it on; times beta, whose
 * table is read for each block (by rows for a half that comes transposed). */
static void count_output(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t half = s->side / 2, triangle = half * (half + 1) / 2;
    const int64_t chunks = s->heads * s->chunks;
    const int64_t all = s->side * s->side;
    const int64_t put = s->team == 2 ? all - half * half : all; /* a team's zeros are ready */
    if (s->times_beta && s->side == 1)
        add(&out->loads[KKT_PHASE_OUTPUT], chunks * COLUMN_QUAD);
    else if (s->times_beta)
        add(&out->loads[KKT_PHASE_OUTPUT],
            chunks * (triangle * (s->team == 2 ? COLUMN_QUAD : ROW_PAIR) +
                      (triangle + half * half) * COLUMN_QUAD));
    if (s->direct)
        return;
    add(&out->stores[KKT_PHASE_OUTPUT], chunks * put * LINES);
    if (s->staged)
        add(&out->loads[KKT_PHASE_OUTPUT], chunks * put * LINES);
}

void kkt_solve_register_wavefronts(const int64_t *problem, const int64_t *config,
                                   kkt_solve_wavefronts *out) {
    const sizes s = sizes_of(problem, config);
    count_load(&s, out);
    count_scan(&s, out);
    count_product(&s, out);
    count_lower(&s, out);
    count_diagonal(&s, out);
    count_exchange(&s, out);
    count_output(&s, out);
}
