#include "model/traffic.h"

#include "model/ledger.h"

#define BANKS 32
#define WARP 32

int64_t kkt_attention_chunks(const kkt_attention *problem, int64_t chunk) {
    int64_t sequences = problem->sequences > 0 ? problem->sequences : 1;
    int64_t whole = problem->tokens / sequences;
    int64_t longer = problem->tokens % sequences; /* that many have one token more */
    return (sequences - longer) * ((whole + chunk - 1) / chunk) +
           longer * ((whole + 1 + chunk - 1) / chunk);
}

int64_t kkt_traffic_solve_bytes(const kkt_attention *p, int64_t chunk) {
    int64_t beta = 4, gate = p->gated ? 4 : 0, e = p->element_bytes;
    return p->tokens * (e * p->heads_k * p->dk + p->heads_v * (beta + gate + e * chunk));
}

int64_t kkt_traffic_solve_flop(const kkt_attention *p, int64_t chunk, int64_t base) {
    return kkt_attention_chunks(p, chunk) * p->heads_v *
           (2 * chunk * chunk * p->dk + 2 * kkt_inverse_fma_recursive(chunk, base));
}

int64_t kkt_traffic_forward_bytes(const kkt_attention *p) {
    int64_t e = p->element_bytes, gate = p->gated ? 4 : 0;
    int64_t state = 2 * 4 * p->dk * p->dv; /* fp32, in and out */
    return p->tokens * (2 * e * p->heads_k * p->dk + p->heads_v * (2 * e * p->dv + 4 + gate)) +
           state * p->sequences * p->heads_v;
}

int64_t kkt_traffic_forward_t_bytes(const kkt_attention *p, int64_t chunk) {
    int64_t e = p->element_bytes;
    /* The solver reads k, beta and g once more, the running sum of g is written and read back,
     * and so is T. */
    int64_t beta = 4, gate = p->gated ? 12 : 0;
    return kkt_traffic_forward_bytes(p) +
           p->tokens * (e * p->heads_k * p->dk + p->heads_v * (2 * e * chunk + beta + gate));
}

int64_t kkt_traffic_forward_given_t_bytes(const kkt_attention *p, int64_t chunk, bool t_beta) {
    return kkt_traffic_forward_bytes(p) +
           p->tokens * p->heads_v * (p->element_bytes * chunk - (t_beta ? 4 : 0));
}

int64_t kkt_traffic_wu_bytes(const kkt_attention *p, int64_t chunk, bool t_beta) {
    int64_t e = p->element_bytes, scalars = (t_beta ? 0 : 4) + (p->gated ? 4 : 0);
    return p->tokens *
           (e * p->heads_k * p->dk + p->heads_v * (e * (2 * p->dv + p->dk + chunk) + scalars));
}

/* The states before all chunks. */
static int64_t states_bytes(const kkt_attention *p, int64_t chunk) {
    return p->element_bytes * kkt_attention_chunks(p, chunk) * p->heads_v * p->dk * p->dv;
}

int64_t kkt_traffic_state_bytes(const kkt_attention *p, int64_t chunk) {
    int64_t e = p->element_bytes, gate = p->gated ? 4 : 0;
    return p->tokens * (e * p->heads_k * p->dk + p->heads_v * (e * (p->dk + 2 * p->dv) + gate)) +
           states_bytes(p, chunk) + 2 * 4 * p->dk * p->dv * p->sequences * p->heads_v;
}

int64_t kkt_traffic_output_bytes(const kkt_attention *p, int64_t chunk) {
    int64_t e = p->element_bytes, gate = p->gated ? 4 : 0;
    return p->tokens * (2 * e * p->heads_k * p->dk + p->heads_v * (2 * e * p->dv + gate)) +
           states_bytes(p, chunk);
}

double kkt_traffic_forward_flop(const kkt_attention *p, int64_t chunk, int64_t base) {
    double c = (double)chunk, dk = (double)p->dk, dv = (double)p->dv;
    double inverse = (double)kkt_inverse_fma_recursive(chunk, base);
    return (double)p->tokens * (double)p->heads_v *
           (4 * c * (dk + dv) + 6 * dk * dv + 2 * inverse / c);
}

int kkt_stage_widths(int64_t chunk, int64_t base, kkt_stage *out) {
    int64_t rows = chunk < base ? chunk : base;
    int64_t blocks = chunk / rows;
    int count = 0;
    out[count++] = (kkt_stage){.depth = rows - 1, .tasks = blocks, .outputs = blocks * rows};
    for (int64_t half = rows; half < chunk && count < KKT_STAGES_MAX; half *= 2) {
        int64_t tasks = chunk / (2 * half);
        out[count++] = (kkt_stage){
            .coupling = true, .depth = 2, .tasks = tasks, .outputs = tasks * half * half};
    }
    return count;
}

static const kkt_gemm_tile gemm_tiles[] = {
    {.bm = 128, .bn = 128, .bk = 32, .threads = 128, .stages = 1, .operands_in_registers = true},
    {.bm = 128, .bn = 128, .bk = 64, .threads = 128, .stages = 1, .operands_in_registers = true},
    {.bm = 128, .bn = 128, .bk = 32, .threads = 128, .stages = 3},
    {.bm = 128, .bn = 256, .bk = 64, .threads = 256, .stages = 4},
};

const kkt_gemm_tile *kkt_gemm_tiles(size_t *count) {
    *count = sizeof gemm_tiles / sizeof gemm_tiles[0];
    return gemm_tiles;
}

double kkt_gemm_accumulator_registers(const kkt_gemm_tile *tile) {
    return (double)(tile->bm * tile->bn) / tile->threads;
}

static int64_t operand_bytes(const kkt_gemm_tile *tile, int element_bytes) {
    return (tile->bm + tile->bn) * tile->bk * element_bytes;
}

double kkt_gemm_operand_registers(const kkt_gemm_tile *tile, int element_bytes) {
    return tile->operands_in_registers
               ? (double)operand_bytes(tile, element_bytes) / 4 / tile->threads
               : 0;
}

int64_t kkt_gemm_smem_bytes(const kkt_gemm_tile *tile, int element_bytes) {
    return tile->operands_in_registers ? 0 : tile->stages * operand_bytes(tile, element_bytes);
}

int kkt_bank_wavefronts(const int64_t word[32], int lanes) {
    /* Lanes that hit a bank with a word of its own, chained by bank; equal words are broadcast. */
    int first[BANKS], next[WARP], distinct[BANKS] = {0};
    int most = 0;
    for (int bank = 0; bank < BANKS; ++bank)
        first[bank] = -1;
    for (int lane = 0; lane < lanes; ++lane) {
        int bank = (int)(word[lane] & (BANKS - 1));
        int other = first[bank];
        while (other >= 0 && word[other] != word[lane])
            other = next[other];
        if (other >= 0)
            continue;
        next[lane] = first[bank];
        first[bank] = lane;
        if (++distinct[bank] > most)
            most = distinct[bank];
    }
    return most;
}

int kkt_bank_substitution(int64_t base, int64_t block_pad, int64_t *offset) {
    int64_t word[WARP];
    *offset = (base + block_pad) * base;
    for (int lane = 0; lane < WARP; ++lane)
        word[lane] = lane / base * *offset + lane % base;
    return kkt_bank_wavefronts(word, WARP);
}

int kkt_bank_transposed_store(int64_t base, int64_t row_stride) {
    int total = 0;
    for (int64_t first = 0; first < base * base; first += WARP) {
        int64_t word[WARP];
        int lanes = base * base - first < WARP ? (int)(base * base - first) : WARP;
        for (int lane = 0; lane < lanes; ++lane) {
            int64_t row = (first + lane) / base, column = (first + lane) % base;
            word[lane] = column * row_stride + row;
        }
        total += kkt_bank_wavefronts(word, lanes);
    }
    return total;
}
