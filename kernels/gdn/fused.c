#include "kernels/gdn/fused.h"

#include "model/ledger.h"

enum { BASE = 16 }; /* the inverse recurses down to blocks of 16 */

/* Global reads as the blocks ask for them: each split of dv reads q and k of its key head again,
 * and beta, T and, where there is one, g. */
static double l2_bytes(const kkt_attention *a, int64_t splits, int64_t t_bytes, bool t_beta) {
    const int64_t scalars = (a->gated ? 4 : 0) + (t_beta ? 0 : 4);
    return (double)(a->tokens * a->heads_v) *
           ((double)(splits * 2 * a->dk + a->dv) * a->element_bytes +
            (double)((scalars + t_bytes) * splits));
}

/* The inverse by recursion, and K K^T: of families that compute T. Where warps of their own solve
 * they are chunks ahead, and the state waits for none of their steps. */
static void inverse_work(const kkt_attention *a, int64_t c, double split_chunks,
                         kkt_footprint *out) {
    const double levels = (double)kkt_inverse_levels(c, BASE);
    out->tensor_flop += split_chunks * (double)(2 * c * c * a->dk);
    out->fp32_flop += split_chunks * 2 * (double)kkt_inverse_fma_recursive(c, BASE);
    if (out->style == KKT_STYLE_WARP_SPECIALIZED)
        return;
    kkt_footprint_step(out, KKT_STEP_SUBSTITUTION,
                       (double)kkt_inverse_chain_recursive(c, BASE) - 2 * levels, BASE / 2.0);
    kkt_footprint_step(out, KKT_STEP_COUPLING, 2 * levels, BASE);
}

void kkt_gdn_fused_footprint(const kkt_values *problem, int64_t chunk, const kkt_gdn_style *style,
                             kkt_footprint *out) {
    const kkt_attention a = kkt_gdn_attention(problem);
    const int64_t c = chunk, splits = a.dv / style->block_dv;
    const int64_t chunks = kkt_attention_chunks(&a, c);
    const double head_chunks = (double)(chunks * a.heads_v);
    const double split_chunks = head_chunks * (double)splits;
    const bool t_beta = style->given_t && problem->v[KKT_GDN_T_FORM] == KKT_GDN_T_BETA;
    const int64_t t_bytes = style->given_t ? c * a.element_bytes : 0;

    *out = (kkt_footprint){.style = style->style, .chunk = (int)c, .cluster = 1, .launches = 1};
    out->tokens = a.tokens;
    out->blocks = a.sequences * a.heads_v * splits;
    out->chunks_per_block = (chunks + a.sequences - 1) / a.sequences;
    out->threads = (int)style->threads;
    out->barriers = 1;

    out->hbm_write_bytes = (double)(a.tokens * a.heads_v * a.dv * a.element_bytes) +
                           4.0 * (double)(a.dk * a.dv) * (double)(a.sequences * a.heads_v);
    out->hbm_read_bytes = (double)(style->given_t ? kkt_traffic_forward_given_t_bytes(&a, c, t_beta)
                                                  : kkt_traffic_forward_bytes(&a)) -
                          out->hbm_write_bytes;
    out->l2_read_bytes = l2_bytes(&a, splits, t_bytes, t_beta);
    /* Q K^T is repeated by each split. */
    out->tensor_flop = split_chunks * (double)(2 * c * c * a.dk) +
                       head_chunks * (double)(4 * c * c * a.dv + 6 * c * a.dk * a.dv);
    out->fp32_flop = split_chunks * 4.0 * (double)(c * c);

    kkt_footprint_step(out, KKT_STEP_GLOBAL_LOAD, 1, 0);
    if (!style->given_t)
        inverse_work(&a, c, split_chunks, out);
    kkt_footprint_step(out, KKT_STEP_PRODUCT, style->products, (double)a.dk);
    kkt_footprint_step(out, KKT_STEP_BARRIER,
                       style->given_t ? 3 : 3 + (double)kkt_inverse_levels(c, BASE), 0);
}

/* What one tensor instruction of a warp or warpgroup computes. */
#define MMA_SYNC_FLOP 4096 /* m16n8k16 */
#define WGMMA_FLOP 131072  /* m64n64k16, operands straight from shared memory */

/* Shared-memory passes of 128 bytes: every tile is written once and read by two products. What
 * mma_sync multiplies goes through registers, an instruction a pass; wgmma needs none. */
void kkt_gdn_estimate_instructions(kkt_footprint *fp, bool wgmma) {
    double bytes = 0;
    for (int i = 0; i < fp->buffer_count; ++i)
        if (fp->buffers[i].place == KKT_PLACE_SHARED)
            bytes += (double)kkt_buffer_bytes(&fp->buffers[i]) / fp->buffers[i].stages;
    double passes = bytes / 128 * (double)fp->blocks * (double)fp->chunks_per_block;
    fp->smem_wavefronts = 3 * passes;
    fp->instructions = (wgmma ? 1 : 3) * passes + fp->fp32_flop / 2 / 32 +
                       fp->tensor_flop / (wgmma ? WGMMA_FLOP : MMA_SYNC_FLOP);
}
