/* The fragment style of gdn_fwd and gdn_fwd_t on the host: a warp owns strips of tokens, with the
 * rows of a chunk's tables and the state in its registers. gdn_fwd alone solves for T. */
#include "kernels/gdn/mma.h"

enum { CHUNK = KKT_GDN_CHUNK, BLOCK_DV, THREADS, MIN_BLOCKS, TABLES, SOLVE, PARAMS };
_Static_assert((int)PARAMS == (int)KKT_GDN_MMA_PARAMS,
               "solve comes last: gdn_fwd_t does without it");

enum { IN_REGISTERS, IN_SHARED };

enum { SUBSTITUTE, INVERT };

static const char *const table_names[] = {"registers", "shared"};
static const char *const solve_names[] = {"substitute", "invert"};

const kkt_param kkt_gdn_fragment_params[KKT_GDN_MMA_PARAMS] = {
    [CHUNK] = {.name = "chunk",
               .macro = "KKT_CHUNK",
               .help = "tokens of a chunk",
               .count = 4,
               .values = {16, 32, 64, 128},
               .fallback = 64},
    [BLOCK_DV] = {.name = "block_dv",
                  .macro = "KKT_BLOCK_DV",
                  .help = "columns of the state a block holds",
                  .count = 3,
                  .values = {32, 64, 128},
                  .fallback = 64},
    [THREADS] = {.name = "threads",
                 .macro = "KKT_THREADS",
                 .help = "threads a block; they share the rows of the tables",
                 .count = 3,
                 .values = {64, 128, 256},
                 .fallback = 128},
    [MIN_BLOCKS] = {.name = "min_blocks",
                    .macro = "KKT_MIN_BLOCKS",
                    .help = "blocks to be resident, asked of the compiler; 0: none",
                    .count = 5,
                    .values = {0, 2, 3, 4, 6},
                    .fallback = 0},
    [TABLES] = {.name = "tables",
                .macro = "KKT_TABLES",
                .help = "where a chunk's tables are kept",
                .count = 2,
                .values = {0, 1},
                .names = table_names,
                .fallback = 0},
    [SOLVE] = {.name = "solve",
               .macro = "KKT_SOLVE",
               .help = "the chunk's triangular system: by substitution, or by its inverse",
               .count = 2,
               .values = {0, 1},
               .names = solve_names,
               .fallback = 0},
};

static kkt_gdn_mma sizes(const kkt_values *problem, const kkt_values *config, bool given_t) {
    return kkt_gdn_mma_sizes(problem, config->v[CHUNK], config->v[BLOCK_DV], config->v[THREADS],
                             config->v[MIN_BLOCKS], given_t);
}

bool kkt_gdn_fragment_applicable(const kkt_values *problem, const kkt_values *config,
                                 const kkt_arch *arch, bool given_t, char *reason, size_t size) {
    const kkt_gdn_mma m = sizes(problem, config, given_t);
    return kkt_gdn_mma_applicable(problem, &m, arch, reason, size) &&
           kkt_gdn_mma_rows_fit(&m, reason, size);
}

void kkt_gdn_fragment_footprint(const kkt_values *problem, const kkt_values *config,
                                const kkt_arch *arch, bool given_t, kkt_footprint *out) {
    const kkt_gdn_mma m = sizes(problem, config, given_t);
    const bool shared = config->v[TABLES] == IN_SHARED;
    kkt_gdn_mma_footprint(problem, &m, KKT_STYLE_FRAGMENT, out);
    kkt_gdn_mma_row_tiles(out, &m);
    if (!given_t) {
        kkt_gdn_mma_triangle(out, &m);
        if (config->v[SOLVE] == INVERT)
            kkt_gdn_mma_blocks(out, &m, "t", 1);
    }
    if (shared)
        kkt_gdn_mma_blocks(out, &m, "scores", 1);
    if (shared && given_t)
        kkt_gdn_mma_blocks(out, &m, "t", 1);
    kkt_gdn_mma_row_registers(out, &m, arch, shared, !given_t && config->v[SOLVE] == SUBSTITUTE);
}
