/* Problem keys and tensors of the Gated DeltaNet families. */
#include "kernels/gdn/gdn.h"

#include <stdio.h>

#include "model/style.h"

static const char *const dtype_names[] = {"bf16", "fp16"};
static const char *const t_form_names[] = {"t", "t_beta"};

const kkt_param kkt_gdn_keys[KKT_GDN_T_KEYS] = {
    [KKT_GDN_BATCH] =
        {.name = "batch", .help = "batch entries", .low = 1, .high = 1024, .fallback = 1},
    [KKT_GDN_SEQUENCES] = {.name = "sequences",
                           .help = "sequences packed into the tokens; above 1 needs batch 1",
                           .low = 1,
                           .high = 1 << 20,
                           .fallback = 1},
    [KKT_GDN_TOKENS] = {.name = "tokens",
                        .help = "tokens in total, over all batch entries and sequences",
                        .low = 1,
                        .high = 1 << 30,
                        .fallback = 32768},
    [KKT_GDN_HEADS_K] =
        {.name = "heads_k", .help = "key heads", .low = 1, .high = 1024, .fallback = 16},
    [KKT_GDN_HEADS_V] = {.name = "heads_v",
                         .help = "value heads, a multiple of heads_k",
                         .low = 1,
                         .high = 1024,
                         .fallback = 64},
    [KKT_GDN_DK] = {.name = "dk",
                    .help = "key dimension, a multiple of 16",
                    .low = 16,
                    .high = 512,
                    .fallback = 128},
    [KKT_GDN_DV] = {.name = "dv",
                    .help = "value dimension, a multiple of 16",
                    .low = 16,
                    .high = 512,
                    .fallback = 128},
    [KKT_GDN_DTYPE] = {.name = "dtype",
                       .help = "of q, k, v, o and all that lies between",
                       .count = 2,
                       .values = {KKT_BF16, KKT_FP16},
                       .names = dtype_names,
                       .fallback = KKT_BF16},
    [KKT_GDN_GATED] =
        {.name = "gated", .help = "with a decay g", .count = 2, .values = {0, 1}, .fallback = 1},
    [KKT_GDN_T_FORM] = {.name = "t_form",
                        .help = "what t holds: T, or T diag(beta), which spares its reader beta",
                        .count = 2,
                        .values = {KKT_GDN_T, KKT_GDN_T_BETA},
                        .names = t_form_names,
                        .fallback = KKT_GDN_T},
};

const char *const kkt_gdn_default_problems[] = {
    "tokens=32768,heads_k=16,heads_v=64", "tokens=8192,heads_k=16,heads_v=64",
    "tokens=8192,heads_k=16,heads_v=32",  "tokens=32768,heads_k=32,heads_v=32",
    "tokens=32768,heads_k=2,heads_v=8",   NULL,
};

kkt_shape kkt_gdn_shape(const kkt_values *problem) {
    const int64_t *p = problem->v;
    return (kkt_shape){.batch = p[KKT_GDN_BATCH],
                       .sequences = p[KKT_GDN_SEQUENCES],
                       .length = p[KKT_GDN_TOKENS] / p[KKT_GDN_BATCH],
                       .heads_k = p[KKT_GDN_HEADS_K],
                       .heads_v = p[KKT_GDN_HEADS_V],
                       .dk = p[KKT_GDN_DK],
                       .dv = p[KKT_GDN_DV],
                       .dtype = (kkt_dtype)p[KKT_GDN_DTYPE],
                       .gated = p[KKT_GDN_GATED] != 0};
}

kkt_attention kkt_gdn_attention(const kkt_values *problem) {
    const int64_t *p = problem->v;
    return (kkt_attention){.tokens = p[KKT_GDN_TOKENS],
                           .sequences = p[KKT_GDN_BATCH] * p[KKT_GDN_SEQUENCES],
                           .heads_k = p[KKT_GDN_HEADS_K],
                           .heads_v = p[KKT_GDN_HEADS_V],
                           .dk = p[KKT_GDN_DK],
                           .dv = p[KKT_GDN_DV],
                           .element_bytes = (int)kkt_dtype_bytes((kkt_dtype)p[KKT_GDN_DTYPE]),
                           .gated = p[KKT_GDN_GATED] != 0};
}

bool kkt_gdn_problem_valid(const kkt_values *problem, char *reason, size_t size) {
    const kkt_shape shape = kkt_gdn_shape(problem);
    /* The widest are the states at the smallest chunk, and v or t at the largest. */
    const int64_t states = shape.dk * shape.dv / 16 + shape.dk;
    return kkt_shape_valid(&shape, problem->v[KKT_GDN_TOKENS], shape.heads_v * states, reason,
                           size);
}

bool kkt_gdn_check_problem(const kkt_values *problem, const kkt_values *config, int index,
                           kkt_values *small, int *input_case) {
    const int64_t *p = problem->v;
    const kkt_check_row *row = kkt_check_row_at(p[KKT_GDN_GATED] != 0, index);
    if (!row)
        return false;
    /* Two key heads where that stays small, so that a mixed-up head shows. */
    const int64_t ratio = p[KKT_GDN_HEADS_V] / p[KKT_GDN_HEADS_K];
    const int64_t heads_k = p[KKT_GDN_HEADS_K] > 1 && ratio <= 4 ? 2 : 1;
    *small = *problem;
    small->v[KKT_GDN_BATCH] = row->batch;
    small->v[KKT_GDN_SEQUENCES] = row->sequences;
    small->v[KKT_GDN_TOKENS] = row->batch * (row->chunks * config->v[KKT_GDN_CHUNK] + row->rest);
    small->v[KKT_GDN_HEADS_K] = heads_k;
    small->v[KKT_GDN_HEADS_V] = heads_k * ratio;
    *input_case = (int)row->input_case;
    return true;
}

int64_t kkt_gdn_slots(const kkt_values *problem, int64_t chunk) {
    const kkt_shape s = kkt_gdn_shape(problem);
    return s.sequences > 1 ? s.length / chunk + s.sequences
                           : s.batch * ((s.length + chunk - 1) / chunk);
}

/* ---- tensors ---- */

static kkt_tensor per_token(const kkt_shape *s, const char *name, kkt_dtype dtype, int64_t heads,
                            int64_t columns) {
    return (kkt_tensor){.name = name,
                        .dtype = dtype,
                        .rank = columns > 0 ? 4 : 3,
                        .dims = {s->batch, s->length, heads, columns}};
}

static kkt_tensor state(const kkt_shape *s, const char *name, kkt_dtype dtype, int64_t count) {
    return (kkt_tensor){
        .name = name, .dtype = dtype, .rank = 4, .dims = {count, s->heads_v, s->dk, s->dv}};
}

static kkt_tensor tensor_of(enum kkt_gdn_tensor what, const kkt_values *problem, int64_t chunk) {
    const kkt_shape s = kkt_gdn_shape(problem);
    const int64_t sequences = s.batch * s.sequences;
    kkt_tensor tensor;
    switch (what) {
    case KKT_GDN_TENSOR_Q:
        return per_token(&s, "q", s.dtype, s.heads_k, s.dk);
    case KKT_GDN_TENSOR_K:
        return per_token(&s, "k", s.dtype, s.heads_k, s.dk);
    case KKT_GDN_TENSOR_V:
        return per_token(&s, "v", s.dtype, s.heads_v, s.dv);
    case KKT_GDN_TENSOR_BETA:
        return per_token(&s, "beta", KKT_FP32, s.heads_v, 0);
    case KKT_GDN_TENSOR_G:
        tensor = per_token(&s, "g", KKT_FP32, s.heads_v, 0);
        tensor.optional = !s.gated;
        return tensor;
    case KKT_GDN_TENSOR_T:
        return per_token(&s, "t", s.dtype, s.heads_v, chunk);
    case KKT_GDN_TENSOR_W:
        return per_token(&s, "w", s.dtype, s.heads_v, s.dk);
    case KKT_GDN_TENSOR_U:
        return per_token(&s, "u", s.dtype, s.heads_v, s.dv);
    case KKT_GDN_TENSOR_H:
        return state(&s, "h", s.dtype, kkt_gdn_slots(problem, chunk));
    case KKT_GDN_TENSOR_V_NEW:
        return per_token(&s, "v_new", s.dtype, s.heads_v, s.dv);
    case KKT_GDN_TENSOR_H0:
        tensor = state(&s, "h0", KKT_FP32, sequences);
        tensor.optional = true;
        return tensor;
    case KKT_GDN_TENSOR_CU_SEQLENS:
        return (kkt_tensor){.name = "cu_seqlens",
                            .dtype = KKT_I32,
                            .rank = 1,
                            .dims = {s.sequences + 1},
                            .optional = s.sequences == 1};
    case KKT_GDN_TENSOR_O:
        return per_token(&s, "o", s.dtype, s.heads_v, s.dv);
    case KKT_GDN_TENSOR_HT:
        return state(&s, "ht", KKT_FP32, sequences);
    }
    return (kkt_tensor){0};
}

int kkt_gdn_list(const kkt_gdn_tensors *family, const kkt_values *problem, int64_t chunk,
                 kkt_tensor *out) {
    for (int i = 0; i < family->count; i++) {
        out[i] = tensor_of(family->what[i], problem, chunk);
        out[i].role = i < family->inputs ? KKT_TENSOR_INPUT : KKT_TENSOR_OUTPUT;
    }
    return family->count;
}

/* ---- what variants share ---- */

int kkt_gdn_chunk_index(int64_t chunk) {
    int index = 0;
    while (index < KKT_GDN_CHUNKS - 1 && chunk > INT64_C(16) << index)
        index++;
    return index;
}

bool kkt_gdn_has_tensor_copies(const kkt_arch *arch, char *reason, size_t size) {
    if (arch->has_cp_async)
        return true;
    kkt_reason(reason, size, "%s has neither cp.async nor bf16 tensor cores", arch->name);
    return false;
}

bool kkt_gdn_block_dv_fits(const kkt_values *problem, int64_t block_dv, char *reason, size_t size) {
    const int64_t dv = problem->v[KKT_GDN_DV];
    if (dv % block_dv == 0)
        return true;
    kkt_reason(reason, size, "block_dv %lld does not divide dv = %lld", (long long)block_dv,
               (long long)dv);
    return false;
}

void kkt_gdn_register_table(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                            int role) {
    kkt_footprint_buffer(fp, KKT_PLACE_REGISTER, name, rows, columns, 4)->role = role;
}

void kkt_gdn_registers_taken(kkt_footprint *fp, int role, double taken) {
    double tables = 0;
    for (int i = 0; i < fp->buffer_count; i++)
        if (fp->buffers[i].place == KKT_PLACE_REGISTER && fp->buffers[i].role == role)
            tables += (double)kkt_buffer_bytes(&fp->buffers[i]) / 4;
    fp->roles[role].extra_registers =
        taken - tables / fp->roles[role].threads - kkt_style_get(fp->style)->register_overhead;
}

void kkt_gdn_shared_tile(kkt_footprint *fp, const char *name, int64_t rows, int64_t columns,
                         int element_bytes, int64_t stages) {
    kkt_footprint_buffer(fp, KKT_PLACE_SHARED, name, rows, columns, element_bytes)->stages =
        (int)stages;
}

void kkt_gdn_defines(const kkt_values *problem, const kkt_footprint *footprint, kkt_text *out) {
    kkt_text_printf(out, "KKT_DK=%lld\n", (long long)problem->v[KKT_GDN_DK]);
    kkt_text_printf(out, "KKT_DV=%lld\n", (long long)problem->v[KKT_GDN_DV]);
    kkt_text_printf(out, "KKT_DTYPE=%lld\n", (long long)problem->v[KKT_GDN_DTYPE]);
    kkt_text_printf(out, "KKT_GATED=%lld\n", (long long)problem->v[KKT_GDN_GATED]);
    kkt_text_printf(out, "KKT_SMEM_BYTES=%lld\n", (long long)kkt_footprint_smem_bytes(footprint));
}

void kkt_gdn_add_tensor(kkt_launch *launch, int tensor) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_TENSOR, .tensor = tensor};
}

void kkt_gdn_add_i32(kkt_launch *launch, int64_t value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_I32, .integer = value};
}

void kkt_gdn_add_i64(kkt_launch *launch, int64_t value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_I64, .integer = value};
}

void kkt_gdn_add_f32(kkt_launch *launch, double value) {
    launch->args[launch->arg_count++] = (kkt_arg){.kind = KKT_ARG_F32, .real = value};
}
