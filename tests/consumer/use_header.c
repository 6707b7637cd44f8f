/* What a host program does with an exported header; valid C99 and C++11 alike. */
#include "kkttune_sm90.h"

#include "kkttune_dispatch.h"

#include <stdio.h>

/* The second inclusion must be empty. */
#include "kkttune_sm90.h"

#if KKTTUNE_SM90_KKT_SOLVE_SOURCE_HASH == 0
#error "the source hash must be usable by the preprocessor"
#endif

static int failures;

static void expect(int ok, const char *what) {
    if (!ok) {
        printf("wrong: %s\n", what);
        failures++;
    }
}

/* Families whose sizes decide what applies: their own rows and no others. */
static void use_products(void) {
    int exact = -1;
    const kkttune_sm90_gemm_entry *gemm = kkttune_sm90_gemm_find(4096, 4096, 4096, 1, 0, &exact);
    expect(gemm != 0 && exact == 1 && gemm->time_us > 191.4 && gemm->time_us < 191.6,
           "the default product");
    gemm = kkttune_sm90_gemm_find(4096, 4095, 4096, 1, 0, &exact);
    expect(gemm == 0 && exact == 0,
           "no row of a product whose rows TMA can store for one it cannot");

    const kkttune_sm90_gemv_entry *gemv = kkttune_sm90_gemv_find(4096, 4096, 0, 1, 0, &exact);
    expect(gemv != 0 && exact == 1 && gemv->time_us > 10.2 && gemv->time_us < 10.3,
           "the default matrix and vector, whose lda is 0");
    expect(kkttune_sm90_gemv_find(4096, 4104, 0, 1, 0, &exact) == 0 && exact == 0,
           "none of another size");
}

/* What the sizes of a problem decide beside what is compiled in. */
static void use_units(void) {
    int exact = -1;
    const kkttune_sm90_gdn_fwd_t_entry *row =
        kkttune_sm90_gdn_fwd_t_find(1, 1, 32768, 16, 64, 128, 128, 0, 1, 0, 0, &exact);
    expect(row != 0 && exact == 1 && row->units_per_block == 8 && row->fastest_style == 1,
           "the default problem, whose blocks take eight heads");
    row = kkttune_sm90_gdn_fwd_t_find(1, 1, 8192, 16, 64, 128, 128, 0, 1, 0, 0, &exact);
    expect(row != 0 && exact == 1 && row->time_us > 400.0 && row->fastest_style == 0,
           "another style is faster on a shorter one");
    row = kkttune_sm90_gdn_fwd_t_find(1, 2, 8192, 1, 4, 128, 128, 0, 1, 0, 0, &exact);
    expect(row != 0 && exact == 0, "two sequences of four heads are eight");
    row = kkttune_sm90_gdn_fwd_t_find(1, 1, 8192, 1, 4, 128, 128, 0, 1, 0, 0, &exact);
    expect(row == 0 || row->units_per_block <= 4, "four heads are too few for such a block");

    const kkttune_sm90_kkt_solve_entry *solve =
        kkttune_sm90_kkt_solve_find(1, 1, 32768, 4, 8, 128, 0, 1, 0, 16, &exact);
    expect(solve != 0 && solve->heads_per_block == 8, "eight value heads of a block");
    solve = kkttune_sm90_kkt_solve_find(1, 1, 32768, 2, 4, 128, 0, 1, 0, 16, &exact);
    expect(solve == 0 || solve->heads_per_block <= 4, "no eight heads where there are four");
}

int main(void) {
    int count = 0, exact = -1;
    const kkttune_sm90_kkt_solve_entry *rows = kkttune_sm90_kkt_solve_table(&count);
    const kkttune_sm90_kkt_solve_entry *row;
    expect(count >= 20 && rows != 0, "a table of at least five problems and four chunk sizes");
    expect(KKTTUNE_SM90_KKT_SOLVE_CHUNK == 64, "the default chunk size");
    expect(KKTTUNE_SM90_KKT_SOLVE_THREADS == 128,
           "the fastest configuration of the default problem");
    expect(KKTTUNE_SM90_KKT_SOLVE_INVERSE_NAME[0] == 'r', "a name beside an enumerated value");

    row = kkttune_sm90_kkt_solve_find(1, 1, 32768, 16, 64, 128, 0, 1, 0, 0, &exact);
    expect(row != 0 && exact == 1 && row->chunk == 64, "the default problem is found exactly");
    expect(row != 0 && row->time_us > 100.4 && row->time_us < 100.6, "its measured time");
    expect(row != 0 && row->provenance == KKTTUNE_MEASURED && !row->stale, "its provenance");
    row = kkttune_sm90_kkt_solve_find(1, 1, 32768, 16, 64, 128, 0, 1, 0, 32, &exact);
    expect(row != 0 && exact == 1 && row->chunk == 32, "another chunk size of it");
    row = kkttune_sm90_kkt_solve_find(1, 1, 9000, 16, 32, 128, 0, 1, 0, 0, &exact);
    expect(row != 0 && exact == 0 && row->problem_tokens == 8192 && row->problem_heads_v == 32,
           "the nearest problem");
    row = kkttune_sm90_kkt_solve_find(1, 1, 32768, 16, 64, 128, 0, 0, 0, 0, 0);
    expect(row == 0, "nothing for a gate that no row has");

    use_products();
    use_units();
    expect(KKTTUNE_DISPATCH(90, KKT_SOLVE, CHUNK, 7) == 64, "dispatch to sm90");
    expect(KKTTUNE_DISPATCH(80, KKT_SOLVE, CHUNK, 7) == 7, "no header of this architecture");
    expect(KKTTUNE_DISPATCH(100, KKT_SOLVE, CHUNK, 7) == 7, "another major version");
    return failures != 0;
}
