/* Shared-memory wavefronts of couplings through shared memory: the accesses of shared_path.cuh,
 * coupling.cuh, substitution.cuh and gate.cuh in the order in which they are made.
 *
 * Lanes see L through fragments: row l / 4 and columns 2 (l % 4), or element (l / 4, l % 4). Words
 * that a pattern adds to all lanes alike only turn the banks, so one pattern stands for all
 * sub-blocks. */
#include "kernels/kkt_solve/wavefronts.h"

#include "model/banks.h"

#define WARP 32
#define SUB 8 /* rows and columns of a sub-block */

typedef struct sizes {
    int64_t chunk, dk, warps, heads;
    bool gated, tf32, row, recursive, transpose, fused, by_registers, times_beta;
    int64_t block, side;      /* rows of a diagonal block; blocks a side */
    int64_t row_words;        /* with padding */
    int64_t block_words;      /* with padding */
    int64_t team;             /* warps that share a head */
    int64_t subs, block_subs; /* sub-blocks a side of the chunk and of a block */
    int64_t tile_side;        /* 16 x 16 tiles a side of the chunk */
    bool wide;                /* rows start at 16-byte boundaries; else they have an odd number
                                 of words */
    const kkt_stride_passes *passes;
} sizes;

static sizes sizes_of(const int64_t *p, const int64_t *c) {
    sizes s = {.chunk = c[KKT_SOLVE_CHUNK],
               .dk = p[KKT_SOLVE_DK],
               .warps = c[KKT_SOLVE_THREADS] / WARP,
               .heads = c[KKT_SOLVE_HEADS_PER_BLOCK],
               .gated = p[KKT_SOLVE_GATED] != 0,
               .tf32 = c[KKT_SOLVE_COUPLE] == KKT_COUPLE_TF32,
               .row = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_ROW,
               .recursive = c[KKT_SOLVE_INVERSE] == KKT_INVERSE_RECURSIVE,
               .transpose = c[KKT_SOLVE_TRANSPOSE] != 0,
               .fused = c[KKT_SOLVE_ASSEMBLE_FUSED] != 0,
               .by_registers = c[KKT_SOLVE_KLOAD] == KKT_KLOAD_LDG,
               .times_beta = p[KKT_SOLVE_T_FORM] == KKT_T_BETA};
    s.block = s.row ? s.chunk : c[KKT_SOLVE_BASE];
    s.side = s.chunk / s.block;
    s.row_words = s.block + c[KKT_SOLVE_ROW_STRIDE] - 16;
    s.block_words = (s.block + (s.side > 1 ? c[KKT_SOLVE_BLOCK_PAD] : 0)) * s.row_words;
    s.team = s.warps > s.heads ? s.warps / s.heads : 1;
    s.subs = s.chunk / SUB;
    s.block_subs = s.block / SUB;
    s.tile_side = s.chunk / 16;
    s.wide = s.row_words % 4 == 0;
    s.passes = kkt_solve_stride_passes(s.row_words);
    return s;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Word offset of sub-block (i, j), i >= j, in a head: lower_blocks.cuh. */
static int64_t sub_at(const sizes *s, int64_t i, int64_t j) {
    const int64_t row = i / s->block_subs, column = j / s->block_subs;
    const int64_t block = row == column ? row : s->side + row * (row - 1) / 2 + column;
    return block * s->block_words + (i % s->block_subs * s->row_words + j % s->block_subs) * SUB;
}

/* By row_words % 32, as model/banks.h gives them; a test computes them again. */
static const kkt_stride_passes stride_passes[WARP] = {
    [0] = {8, 8, 8, 4, 8, 16, 8},  [1] = {8, 8, 4, 4, 4, 4, 0},  [4] = {4, 2, 1, 2, 2, 4, 1},
    [8] = {2, 4, 2, 1, 2, 8, 2},   [9] = {4, 4, 2, 2, 4, 4, 0},  [12] = {4, 2, 1, 2, 2, 4, 1},
    [16] = {4, 8, 4, 2, 4, 16, 4}, [17] = {8, 8, 2, 2, 4, 4, 0}, [20] = {4, 2, 1, 2, 2, 4, 1},
};

const kkt_stride_passes *kkt_solve_stride_passes(int64_t row_words) {
    return &stride_passes[row_words % WARP];
}

/* Two neighbouring words of which four lanes have different ones and the others the same. */
#define COLUMN_PAIR 2

static void add(double *to, int64_t passes) {
    *to += (double)passes;
}

/* Banks of `count` neighbouring words. */
static uint32_t run_of(int64_t count) {
    return count >= WARP ? UINT32_MAX : ((uint32_t)1 << count) - 1;
}

/* ---- steps 1 to 3 ---- */

static void count_load(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t items = s->chunk * s->heads; /* of beta, and as many of g */
    uint32_t sets[8];                          /* a head's rows, a table apart */
    for (int64_t head = 0; head < s->heads; ++head)
        sets[head] = kkt_banks_turned(run_of(smaller(items, WARP) / s->heads), head * s->chunk);
    if (s->by_registers) /* whole rows of 16-byte units: no conflicts */
        add(&out->stores[KKT_PHASE_LOAD], s->chunk * s->dk / 8 / WARP * 4);
    add(&out->stores[KKT_PHASE_LOAD],
        (items + WARP - 1) / WARP * (s->gated ? 2 : 1) * kkt_bank_overlap(sets, s->heads));
}

static void count_scan(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t rounds = s->heads * ((s->chunk + WARP - 1) / WARP);
    if (!s->gated)
        return;
    add(&out->loads[KKT_PHASE_SCAN], 2 * rounds);  /* beta, g */
    add(&out->stores[KKT_PHASE_SCAN], 3 * rounds); /* sum, row, column */
}

/* Operand tiles that all warps load in one step of K K^T: the left one where it differs from the
 * tile before, the right one where it is not the left one. */
static int64_t operand_loads(const sizes *s) {
    const int64_t count = s->tile_side * (s->tile_side + 1) / 2;
    const int64_t a_warp = (count + s->warps - 1) / s->warps;
    int64_t loads = 0, tile = 0, row = 0, column = 0;
    for (int64_t warp = 0; warp < s->warps; ++warp) {
        int64_t before = -1;
        for (int64_t n = 0; n < a_warp; ++n) {
            loads += (row != before) + (column != row);
            before = row;
            if (tile + 1 == count) /* the last tile is repeated */
                continue;
            ++tile;
            if (++column > row) {
                column = 0;
                ++row;
            }
        }
    }
    return loads;
}

static void count_product(const sizes *s, kkt_solve_wavefronts *out) {
    add(&out->loads[KKT_PHASE_PRODUCT], 4 * operand_loads(s) * s->dk / 16);
}

/* L of all tiles. Stores may alias the gates' tables, so diagonal tiles read them again: beta three
 * times, the row's sum six times (five where the tile's place is known), the columns' twice. */
static void count_lower(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t side = s->tile_side, below = side * (side - 1) / 2;
    const int64_t between = side * (side - 1) * (side - 2) / 6; /* strips between all pairs */
    const bool clears = s->block > WARP;                        /* zeros above the diagonal */
    const int64_t sums = side > 1 ? 6 : 5;
    add(&out->loads[KKT_PHASE_LOWER], s->heads * (side * 3 + below * 2));
    if (s->gated)
        add(&out->loads[KKT_PHASE_LOWER],
            s->heads * (side * (sums + 2 * COLUMN_PAIR) + below * 2 * COLUMN_PAIR + between));
    add(&out->stores[KKT_PHASE_LOWER],
        s->heads * s->passes->store_rows * (side * (clears ? 4 : 3) + below * (clears ? 8 : 4)));
}

/* ---- step 4: diagonal blocks ---- */

/* How a row of neighbouring words is split into accesses of 1, 2 and 4 words. */
typedef struct split {
    int64_t ones, twos, fours;
} split;

static void split_row(int64_t at, int64_t words, split *out) {
    if (words > 0 && at % 2 != 0) {
        out->ones++;
        at++;
        words--;
    }
    if (words >= 2 && at % 4 != 0) {
        out->twos++;
        words -= 2;
    }
    out->fours += words / 4;
    out->twos += words % 4 / 2;
    out->ones += words % 2;
}

/* Passes of a broadcast of `words` words in each of the blocks that a warp's lanes own columns of;
 * lanes past the chunk read the first block. Four words go by half warps, which is as large as the
 * groups become. */
static int64_t broadcast(const sizes *s, int words) {
    const int64_t blocks = smaller(s->side, s->block < WARP ? WARP / s->block : 1);
    const int64_t a_group =
        words == 4 && s->block < WARP ? (WARP / 2 + s->block - 1) / s->block : blocks;
    uint32_t sets[4];
    int64_t passes = 0;
    for (int64_t first = 0; first < blocks; first += a_group) {
        const int64_t count = smaller(a_group, blocks - first);
        for (int64_t n = 0; n < count; ++n)
            sets[n] = kkt_banks_turned(run_of(words), (first + n) * s->block_words);
        passes += kkt_bank_overlap(sets, count);
    }
    /* A half warp without blocks of its own goes once more. */
    return words == 4 && blocks <= a_group ? passes + 1 : passes;
}

/* Each lane writes its column's element of a row. */
static int64_t write_columns(const sizes *s) {
    const int64_t blocks = smaller(s->side, s->block < WARP ? WARP / s->block : 1);
    uint32_t sets[4];
    for (int64_t n = 0; n < blocks; ++n)
        sets[n] = kkt_banks_turned(run_of(s->block), n * s->block_words);
    return kkt_bank_overlap(sets, blocks);
}

/* Lanes in blocks side by side, a column each; rows of L are broadcast in a block. Where blocks
 * begin at 16-byte boundaries the compiler reads what it can of a row at once. */
static void count_substitution(const sizes *s, kkt_solve_wavefronts *out) {
    const bool aligned = s->block_words % 4 == 0;
    const int64_t lanes = smaller(s->chunk, WARP);
    const int64_t groups = s->heads * (s->chunk / lanes); /* of a warp's columns */
    /* A lane of one column reads the last three words of a row as four. */
    const bool alone = s->wide && (s->block == WARP || s->chunk <= s->team * WARP);
    split pieces = {0};
    for (int64_t i = 1; i < s->block; ++i) {
        if (aligned)
            split_row(i * s->row_words, alone && i % 4 == 3 ? i + 1 : i, &pieces);
        else
            pieces.ones += i;
    }
    int64_t loads = pieces.ones * broadcast(s, 1);
    if (aligned)
        loads += pieces.twos * broadcast(s, 2) + pieces.fours * broadcast(s, 4);
    add(&out->loads[KKT_PHASE_DIAGONAL], groups * loads);
    add(&out->stores[KKT_PHASE_DIAGONAL], groups * s->block * write_columns(s));
}

/* The chunk as one block: all warps read four words of the row at once, those with columns what is
 * above; the row is written by the columns left of the diagonal. */
static void count_rows(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t quad = s->wide ? 2 : 4; /* a broadcast of four words, at once or one by one */
    int64_t quads = 0, above = 0, written = 0;
    for (int64_t i = 1; i < s->chunk; ++i) {
        quads += (i + 3) / 4;
        above += i;
        written += (i + WARP - 1) / WARP;
    }
    const int64_t column_groups = (s->chunk + WARP - 1) / WARP;
    add(&out->loads[KKT_PHASE_DIAGONAL],
        s->heads * (quads * s->team * quad + above * column_groups));
    add(&out->stores[KKT_PHASE_DIAGONAL], s->heads * written);
}

/* ---- step 4: couplings ---- */

/* Sub-blocks that the products of all couplings read as left and as right operands, and write. */
typedef struct operands {
    int64_t left, right, written;
} operands;

/* X <- T11 X and X <- X T00 for `parts` parts of rows x columns sub-blocks. */
static void add_coupling(const sizes *s, int64_t rows, int64_t columns, int64_t parts,
                         operands *first, operands *second) {
    const int64_t strip = s->block_subs == 1 || s->chunk / WARP < s->team ? 1 : 2;
    const int64_t first_tasks = parts * (columns / strip), second_tasks = parts * (rows / strip);
    int64_t left = 0, steps = 0;
    for (int64_t i = 0; i < rows; i += 2) {
        const int64_t pair = smaller(i + 2, rows);
        left += i + 1 + (i + 1 < rows ? i + 2 : 0);
        steps += pair;
    }
    first->left += first_tasks * left;
    first->right += first_tasks * strip * steps;
    first->written += parts * rows * columns;
    left = steps = 0;
    for (int64_t j = 0; j < columns; j += 2) {
        left += columns - j + (j + 1 < columns ? columns - j - 1 : 0);
        steps += columns - j;
    }
    second->left += second_tasks * left;
    second->right += second_tasks * strip * steps;
    second->written += parts * rows * columns;
}

static void count_couplings(const sizes *s, kkt_solve_wavefronts *out) {
    operands first = {0}, second = {0};
    if (s->recursive)
        for (int64_t size = s->block_subs; size < s->subs; size *= 2)
            add_coupling(s, size, size, s->subs / (2 * size), &first, &second);
    else
        for (int64_t row = s->block_subs; row < s->subs; row += s->block_subs)
            add_coupling(s, s->block_subs, row, 1, &first, &second);
    if (first.written == 0)
        return;
    /* A sub-block as an operand: of the lane's row and neighbouring columns, or the reverse. */
    const kkt_stride_passes *p = s->passes;
    int64_t left_rows, left_columns, right_rows, right_columns;
    if (s->tf32) {
        left_rows = right_columns = 2 * p->by_rows;
        left_columns = right_rows = 2 * p->by_columns;
    } else {
        left_rows = 2 * p->left_quad;
        left_columns = 8; /* a word of eight neighbouring ones a lane, eight times */
        right_rows = 8 * COLUMN_PAIR;
        right_columns = 4 * p->right_quad;
    }
    const int64_t rows = p->store_rows, columns = p->store_columns;
    add(&out->loads[KKT_PHASE_COUPLING],
        s->heads * (first.left * left_rows + first.right * right_rows + second.left * left_columns +
                    second.right * (s->transpose ? right_rows : right_columns)));
    add(&out->stores[KKT_PHASE_COUPLING],
        s->heads * (first.written * (s->transpose ? columns : rows) + second.written * columns));
}

/* ---- step 4: output ---- */

/* The banks of a column of `rows` (at most eight) rows that have an odd number of words. */
static uint32_t banks_of_rows(const sizes *s, int64_t rows) {
    uint32_t banks = 0;
    for (int64_t row = 0; row < rows; ++row)
        banks |= (uint32_t)1 << ((row * s->row_words) & (WARP - 1));
    return banks;
}

/* Straight to global memory: a warp reads up to four sub-blocks, eight lanes each down its rows. */
static void count_fused_output(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t across = smaller(s->subs, 4);
    const uint32_t first = banks_of_rows(s, SUB);
    int64_t loads = 0;
    if (s->wide) {
        loads = s->subs * (s->subs + 1) * s->passes->rows_quad;
    } else if (s->subs == 2) {
        const uint32_t sets[3] = {first, kkt_banks_turned(first, sub_at(s, 1, 0)),
                                  kkt_banks_turned(first, sub_at(s, 1, 1))};
        loads = SUB * kkt_bank_overlap(sets, 3);
    } else {
        for (int64_t i = 0; i < s->subs; ++i)
            for (int64_t j = 0; j <= i; j += across) {
                uint32_t sets[4];
                const int64_t count = smaller(across, i - j + 1);
                for (int64_t n = 0; n < count; ++n)
                    sets[n] = kkt_banks_turned(first, sub_at(s, i, j + n));
                loads += SUB * kkt_bank_overlap(sets, count);
            }
    }
    if (s->times_beta) /* two quads of eight columns, which lanes of a half warp share two by two */
        for (int64_t i = 0; i < s->subs; ++i)
            loads += 2 * (i / 2 + 1);
    add(&out->loads[KKT_PHASE_OUTPUT], s->heads * loads);
}

/* Assembly goes through the matrix in 16-byte units of the output, one a lane: a quarter warp takes
 * eight units of a row, or of several rows where a row has fewer. A piece of a row has the units of
 * sub-block columns `first` to `last` (exclusive). */
typedef struct strip {
    int64_t first, last;
} strip;

/* Passes of a piece in one group of lanes that holds `rows` rows, where unit (row, j) is at 16-byte
 * unit at[j] + row row_step of shared memory. */
static int64_t quarter_passes(strip x, int64_t rows, const int64_t *at, int64_t row_step) {
    int64_t passes = 0;
    for (int64_t quarter = x.first / 8 * 8; quarter < x.last; quarter += 8) {
        const int64_t end = smaller(quarter + 8, x.last);
        uint64_t units = 0; /* in each eighth of the banks, a byte each */
        for (int64_t j = quarter > x.first ? quarter : x.first; j < end; ++j)
            for (int64_t row = 0; row < rows; ++row)
                units += (uint64_t)1 << ((at[j] + row * row_step) & 7) * 8;
        uint64_t most = 0;
        for (; units != 0; units >>= 8)
            most = (units & 0xff) > most ? units & 0xff : most;
        passes += (int64_t)most;
    }
    return passes;
}

/* Loads of the eight rows of a piece of L's sub-block row `i`: two of 16 bytes a lane, or where
 * rows are odd eight of a word. Lanes two apart have no address in common, so that half warps go as
 * one only where a piece has at most two units a row. */
static int64_t piece_loads(const sizes *s, int64_t i, strip x) {
    int64_t at[16] = {0}, beta = 0;
    uint32_t sets[16];
    if (x.first >= x.last)
        return 0;
    if (s->times_beta) { /* eight columns apart are two units */
        for (int64_t j = x.first; j < x.last; ++j)
            at[j] = 2 * j;
        beta = 2 * SUB * quarter_passes(x, 1, at, 0);
    }
    for (int64_t j = x.first; j < x.last; ++j)
        at[j] = sub_at(s, i, j);
    if (s->wide) {
        const int64_t group = s->subs <= 8 && x.last - x.first <= 2 ? 16 : 8;
        const int64_t rows = s->subs < group ? group / s->subs : 1;
        for (int64_t j = x.first; j < x.last; ++j)
            at[j] /= 4;
        return beta + 2 * SUB / rows * quarter_passes(x, rows, at, s->row_words / 4);
    }
    const int64_t rows = smaller(SUB, WARP / s->subs);
    const uint32_t column = banks_of_rows(s, rows);
    for (int64_t j = x.first; j < x.last; ++j)
        sets[j - x.first] = kkt_banks_turned(column, at[j]);
    return beta + SUB * SUB / rows * kkt_bank_overlap(sets, x.last - x.first);
}

/* Through a dense tile in three pieces: diagonal blocks, what is below them, what is above. Below,
 * the rows of a block row read what is alike but for an offset. */
static void count_assembly(const sizes *s, kkt_solve_wavefronts *out) {
    const int64_t rows = s->subs < 8 ? 8 / s->subs : 1; /* of a quarter warp */
    int64_t dense[16] = {0}, loads = 0, stores = 0;
    for (int64_t j = 0; j < s->subs; ++j)
        dense[j] = j;
    for (int64_t block = 0; block < s->side; ++block) {
        const int64_t first = block * s->block_subs, last = first + s->block_subs;
        const strip below = {0, first}, inside = {first, last}, above = {last, s->subs};
        loads += s->block_subs * piece_loads(s, first, below);
        for (int64_t i = first; i < last; ++i)
            loads += piece_loads(s, i, (strip){first, i + 1});
        stores += s->block_subs * SUB / rows *
                  (quarter_passes(below, rows, dense, s->subs + 1) +
                   quarter_passes(inside, rows, dense, s->subs + 1) +
                   quarter_passes(above, rows, dense, s->subs + 1));
    }
    if (s->subs == 2 && !s->wide)
        loads -= SUB; /* a warp has all 16 rows: its diagonal blocks are read at once */
    loads += s->chunk / rows * quarter_passes((strip){0, s->subs}, rows, dense, s->subs + 1);
    add(&out->loads[KKT_PHASE_OUTPUT], s->heads * loads);
    add(&out->stores[KKT_PHASE_OUTPUT], s->heads * stores);
}

void kkt_solve_shared_wavefronts(const int64_t *problem, const int64_t *config,
                                 kkt_solve_wavefronts *out) {
    const sizes s = sizes_of(problem, config);
    count_load(&s, out);
    count_scan(&s, out);
    count_product(&s, out);
    count_lower(&s, out);
    if (s.block > WARP)
        count_rows(&s, out);
    else
        count_substitution(&s, out);
    count_couplings(&s, out);
    if (s.fused)
        count_fused_output(&s, out);
    else
        count_assembly(&s, out);
}

/* ---- both ways ---- */

const char *kkt_solve_phase_name(kkt_solve_phase phase) {
    static const char *const names[KKT_SOLVE_PHASES] = {
        [KKT_PHASE_LOAD] = "load",         [KKT_PHASE_SCAN] = "scan",
        [KKT_PHASE_PRODUCT] = "product",   [KKT_PHASE_LOWER] = "lower",
        [KKT_PHASE_DIAGONAL] = "diagonal", [KKT_PHASE_COUPLING] = "coupling",
        [KKT_PHASE_OUTPUT] = "output",     [KKT_PHASE_LINES] = "lines",
    };
    return names[phase];
}

/* Lines of 128 bytes that come or go without an instruction for each, or leave through L1, meet the
 * accesses of other warps in the banks, and some of these take a pass more. How many a line: the
 * only fitted numbers here, to an H200's counters (docs/model.md, section 9). */
typedef struct repeats_a_line {
    double t, k;
} repeats_a_line;

static repeats_a_line repeats_of(const int64_t *config) {
    /* T through L1, from triangles that other warps work on. */
    if (!kkt_solve_in_registers(config))
        return (repeats_a_line){.t = 0.5};
    /* By TMA it goes while its warp computes the second half, or only while others do; from
     * registers it leaves through L1, hardly noticed. */
    static const double of_store[] = {[KKT_STORE_DIRECT] = 0,
                                      [KKT_STORE_STAGED] = 0,
                                      [KKT_STORE_TMA] = 0.27,
                                      [KKT_STORE_TMA_HALVES] = 0.41};
    return (repeats_a_line){.t = of_store[config[KKT_SOLVE_STORE]],
                            .k = config[KKT_SOLVE_KLOAD] == KKT_KLOAD_LDG ? 0 : 0.1};
}

static double line_traffic(const int64_t *problem, const int64_t *config) {
    const repeats_a_line repeats = repeats_of(config);
    const double rows = (double)kkt_solve_span(config), chunk = (double)config[KKT_SOLVE_CHUNK];
    const double heads = (double)config[KKT_SOLVE_HEADS_PER_BLOCK];
    const double tiles_of_k = config[KKT_SOLVE_SHARE] == KKT_SHARE_VALUE_HEAD ? heads : 1;
    return repeats.t * 2 * rows * chunk * heads / 128 +
           repeats.k * 2 * rows * (double)problem[KKT_SOLVE_DK] * tiles_of_k / 128;
}

void kkt_solve_count_wavefronts(const int64_t *problem, const int64_t *config,
                                kkt_solve_wavefronts *out) {
    *out = (kkt_solve_wavefronts){0};
    if (kkt_solve_in_registers(config))
        kkt_solve_register_wavefronts(problem, config, out);
    else
        kkt_solve_shared_wavefronts(problem, config, out);
    out->loads[KKT_PHASE_LINES] += line_traffic(problem, config);
}

double kkt_solve_total_wavefronts(const kkt_solve_wavefronts *wavefronts) {
    double total = 0;
    for (int phase = 0; phase < KKT_SOLVE_PHASES; ++phase)
        total += wavefronts->loads[phase] + wavefronts->stores[phase];
    return total;
}
