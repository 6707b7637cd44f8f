#include "model/ledger.h"

int64_t kkt_inverse_fma_row(int64_t n) {
    return n < 3 ? 0 : n * (n - 1) * (n - 2) / 6;
}

int64_t kkt_inverse_levels(int64_t chunk, int64_t base) {
    int64_t levels = 0;
    for (int64_t n = chunk; n > base; n /= 2)
        ++levels;
    return levels;
}

int64_t kkt_inverse_fma_recursive(int64_t chunk, int64_t base) {
    /* From the diagonal blocks upwards: each level has half as many couplings, twice as wide. */
    int64_t levels = kkt_inverse_levels(chunk, base);
    int64_t n = chunk >> levels;
    int64_t fma = kkt_inverse_fma_row(n) << levels;
    for (int64_t level = levels; level > 0; --level, n *= 2)
        fma += (2 * n * n * n) << (level - 1);
    return fma;
}

int64_t kkt_inverse_fma_flat(int64_t chunk, int64_t base) {
    if (chunk <= base)
        return kkt_inverse_fma_row(chunk);
    int64_t blocks = chunk / base, products = 0;
    /* A block at distance d from the diagonal sums d products and takes one more to finish. */
    for (int64_t d = 1; d < blocks; ++d)
        products += (blocks - d) * (d + 1);
    return blocks * kkt_inverse_fma_row(base) + products * base * base * base;
}

int64_t kkt_inverse_chain_row(int64_t n) {
    return n - 1;
}

int64_t kkt_inverse_chain_recursive(int64_t chunk, int64_t base) {
    return (chunk < base ? chunk : base) - 1 + 2 * kkt_inverse_levels(chunk, base);
}

int64_t kkt_inverse_chain_flat(int64_t chunk, int64_t base) {
    return chunk <= base ? chunk - 1 : base - 1 + 2 * (chunk / base - 1);
}

static kkt_status check(int64_t chunk, int64_t base, int64_t dk, int64_t dv, kkt_error *err) {
    if (chunk < 1 || chunk > KKT_LEDGER_CHUNK_MAX)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "chunk %lld is out of range; it must be 1 to %d",
                        (long long)chunk, KKT_LEDGER_CHUNK_MAX);
    if (base < 1 || base > chunk)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "base %lld is out of range; it must be 1 to the chunk, %lld",
                        (long long)base, (long long)chunk);
    int64_t blocks = chunk / base;
    if (chunk % base != 0 || (blocks & (blocks - 1)) != 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "chunk %lld cannot be halved down to base %lld; chunk / base must be a "
                        "power of two",
                        (long long)chunk, (long long)base);
    if (dk < 1 || dk > KKT_LEDGER_DIM_MAX || dv < 1 || dv > KKT_LEDGER_DIM_MAX)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "dk %lld, dv %lld: head dimensions must be 1 to %d",
                        (long long)dk, (long long)dv, KKT_LEDGER_DIM_MAX);
    return KKT_OK;
}

kkt_status kkt_ledger_compute(int64_t chunk, int64_t base, int64_t dk, int64_t dv,
                              int element_bytes, kkt_ledger *out, kkt_error *err) {
    kkt_status status = check(chunk, base, dk, dv, err);
    if (status)
        return status;
    int64_t fma = kkt_inverse_fma_recursive(chunk, base);
    double inverse = (double)fma / (double)chunk;
    int64_t seed = 2 * dk * dv + chunk * (dk + dv);
    int64_t full = 3 * dk * dv + 2 * chunk * (dk + dv);
    *out = (kkt_ledger){
        .chunk = chunk,
        .base = base,
        .dk = dk,
        .dv = dv,
        .chain_row = kkt_inverse_chain_row(chunk),
        .chain_recursive = kkt_inverse_chain_recursive(chunk, base),
        .chain_flat = kkt_inverse_chain_flat(chunk, base),
        .fma_row = kkt_inverse_fma_row(chunk),
        .fma_recursive = fma,
        .fma_flat = kkt_inverse_fma_flat(chunk, base),
        .recursion_levels = kkt_inverse_levels(chunk, base),
        .diagonal_blocks = chunk / base,
        .coupling_gemm_pairs = chunk / base - 1,
        .fma_inverse_per_token = inverse,
        .fma_main_per_token_seed = seed,
        .fma_main_per_token_full = full,
        .inverse_share_seed = inverse / (inverse + (double)seed),
        .inverse_share_full = inverse / (inverse + (double)full),
        .state_bytes_per_token = 2.0 * element_bytes * (double)dk * (double)dv / (double)chunk,
        .t_write_bytes_per_token = element_bytes * chunk,
        .table_fp32_bytes = 4 * chunk * chunk,
    };
    return KKT_OK;
}

double kkt_ledger_table_registers(int64_t chunk, int threads) {
    return (double)(chunk * chunk) / threads;
}
