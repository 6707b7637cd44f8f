#include "cli/model_query.h"

#include <stdio.h>
#include <string.h>

#include "model/ledger.h"

#define BLOCK_DV_MAX 4096

static const int64_t default_chunks[] = {16, 32, 64, 128, 256};
static const int64_t default_bases[] = {8, 16, 32};
static const int64_t default_block_dvs[] = {64};
static const int64_t default_threads[] = {128, 256, 512};

static kkt_status read_list(const kkt_args *args, const char *option, int64_t high,
                            const int64_t *defaults, size_t default_count, kkt_int_list *out,
                            kkt_error *err) {
    const char *text = kkt_args_get(args, option);
    out->given = text != NULL;
    if (!text) {
        memcpy(out->values, defaults, default_count * sizeof *defaults);
        out->count = default_count;
        return KKT_OK;
    }
    kkt_status status =
        kkt_parse_i64_list(text, option, 1, high, out->values, KKT_MODEL_LIST, &out->count, err);
    if (status)
        return status;
    for (size_t i = 0; i < out->count; ++i)
        for (size_t j = 0; j < i; ++j)
            if (out->values[i] == out->values[j])
                return kkt_fail(err, KKT_ERR_INPUT, 0, "%s lists %lld twice", option,
                                (long long)out->values[i]);
    return KKT_OK;
}

#define READ_LIST(args, option, high, defaults, out, err)                                          \
    read_list(args, option, high, defaults, sizeof(defaults) / sizeof(defaults)[0], out, err)

static kkt_status read_number(const kkt_args *args, const char *option, int64_t high, int64_t *out,
                              kkt_error *err) {
    const char *text = kkt_args_get(args, option);
    if (text && !kkt_parse_i64(text, 1, high, out))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s '%.40s' is not a number from 1 to %lld", option,
                        text, (long long)high);
    return KKT_OK;
}

static kkt_status read_dtype(const kkt_args *args, kkt_dtype *out, kkt_error *err) {
    static const kkt_dtype accepted[] = {KKT_BF16, KKT_FP16, KKT_FP32};
    const char *text = kkt_args_get(args, "--dtype");
    for (size_t i = 0; text && i < sizeof accepted / sizeof accepted[0]; ++i)
        if (strcmp(text, kkt_dtype_name(accepted[i])) == 0) {
            *out = accepted[i];
            return KKT_OK;
        }
    return text ? kkt_fail(err, KKT_ERR_INPUT, 0, "--dtype '%.40s' is not one of bf16, fp16, fp32",
                           text)
                : KKT_OK;
}

/* ---- the problem: keys may belong to one kernel only, values are each kernel's to check ---- */

static bool key_equals(const char *piece, size_t length, const char *key) {
    return strlen(key) == length && strncmp(piece, key, length) == 0;
}

static bool names_key(const char *text, const char *key) {
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, "=,");
        if (key_equals(at, length, key))
            return true;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return false;
}

/* The part of `text` whose keys `table` knows. */
static void select_keys(const kkt_param_table *table, const char *text, kkt_text *out) {
    for (const char *at = text; *at;) {
        size_t piece = strcspn(at, ","), length = strcspn(at, "=,");
        for (size_t i = 0; i < table->count; ++i)
            if (key_equals(at, length, table->params[i].name)) {
                kkt_text_add(out, out->length ? "," : "");
                kkt_text_add_bytes(out, at, piece);
            }
        at += piece;
        at += *at == ',';
    }
}

/* The problem keys of all kernels with a chunk size, "k,k,..."; the others are not modelled here.
 */
static void list_keys(kkt_text *out) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; ++k)
        for (size_t i = 0; kernels[k]->chunk_param && i < kernels[k]->problem.count; ++i) {
            const char *name = kernels[k]->problem.params[i].name;
            if (!names_key(kkt_text_get(out), name))
                kkt_text_printf(out, "%s%s", out->length ? "," : "", name);
        }
}

static kkt_status check_keys(const char *text, kkt_error *err) {
    kkt_text known = {0};
    kkt_status status = KKT_OK;
    list_keys(&known);
    for (const char *at = text; *at && status == KKT_OK;) {
        char key[41];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, "=,"), at);
        if (!names_key(kkt_text_get(&known), key))
            status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown problem key '%s'; known: %s", key,
                              kkt_text_get(&known));
        at += strcspn(at, ",");
        at += *at == ',';
    }
    kkt_text_free(&known);
    return status;
}

/* A problem in the keys that the model's formulas use; what a kernel does not have is left. */
static void fill_attention(const kkt_param_table *table, const kkt_values *values,
                           kkt_attention *out) {
    int64_t batch = 1, gated = out->gated, dtype = -1;
    struct {
        const char *key;
        int64_t *to;
    } fields[] = {{"batch", &batch},          {"sequences", &out->sequences},
                  {"tokens", &out->tokens},   {"heads_k", &out->heads_k},
                  {"heads_v", &out->heads_v}, {"dk", &out->dk},
                  {"dv", &out->dv},           {"dtype", &dtype},
                  {"gated", &gated}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
        int at = kkt_params_find(table, fields[i].key);
        if (at >= 0)
            *fields[i].to = values->v[at];
    }
    out->sequences *= batch;
    out->gated = gated != 0;
    if (dtype >= 0)
        out->element_bytes = (int)kkt_dtype_bytes((kkt_dtype)dtype);
}

/* The problem text in a kernel's own keys, with --dk, --dv and --dtype added where the text does
 * not name them. A kernel that cannot take a value is left out, with the reason; one that has no
 * chunk size is not what the model's tables are about, and is left out without one. */
static kkt_status fill_kernel_problems(const char *text, bool given, kkt_model_query *query,
                                       kkt_attention *attention, bool first, kkt_error *err) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    bool any = false;
    kkt_error why = {0};
    for (size_t k = 0; k < count && k < KKT_MODEL_KERNELS; ++k) {
        kkt_text own = {0};
        kkt_values values;
        if (!kernels[k]->chunk_param)
            continue;
        kkt_params_defaults(&kernels[k]->problem, &values);
        select_keys(&kernels[k]->problem, text, &own);
        char reason[160] = "";
        bool fits =
            !kkt_params_parse(&kernels[k]->problem, kkt_text_get(&own), &values, NULL, &why);
        if (!fits)
            snprintf(reason, sizeof reason, "%.159s", why.message);
        else if (!kkt_kernel_problem_valid(kernels[k], &values, reason, sizeof reason)) {
            fits = false;
            kkt_fail(&why, KKT_ERR_INPUT, 0, "%s: %s", kernels[k]->name, reason);
        }
        kkt_text_free(&own);
        if (fits) {
            fill_attention(&kernels[k]->problem, &values, attention);
            any = true;
        }
        if (first) {
            query->kernel_problem[k] = values;
            query->kernel_usable[k] = fits;
            snprintf(query->kernel_reason[k], sizeof query->kernel_reason[k], "%s", reason);
        }
    }
    if (!any && given) {
        if (err)
            *err = why;
        return KKT_ERR_INPUT;
    }
    return KKT_OK;
}

static kkt_status add_problem(const char *text, bool given, kkt_model_query *query,
                              kkt_error *err) {
    kkt_text full = {0};
    kkt_text_add(&full, text);
    if (!names_key(text, "dk"))
        kkt_text_printf(&full, "%sdk=%lld", full.length ? "," : "", (long long)query->dk);
    if (!names_key(text, "dv"))
        kkt_text_printf(&full, ",dv=%lld", (long long)query->dv);
    if (!names_key(text, "dtype"))
        kkt_text_printf(&full, ",dtype=%s", kkt_dtype_name(query->dtype));
    kkt_attention *attention = &query->problems[query->problem_count];
    *attention = (kkt_attention){.tokens = 32768,
                                 .sequences = 1,
                                 .heads_k = 16,
                                 .heads_v = 64,
                                 .dk = query->dk,
                                 .dv = query->dv,
                                 .element_bytes = (int)kkt_dtype_bytes(query->dtype),
                                 .gated = true};
    kkt_status status = fill_kernel_problems(kkt_text_get(&full), given, query, attention,
                                             query->problem_count == 0, err);
    kkt_text_free(&full);
    ++query->problem_count;
    return status;
}

static kkt_status read_problems(const kkt_args *args, kkt_model_query *query, kkt_error *err) {
    const char *text = kkt_args_get(args, "--problem");
    if (text) {
        kkt_status status = check_keys(text, err);
        return status ? status : add_problem(text, true, query, err);
    }
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    const char *const *defaults = count ? kernels[0]->default_problems : NULL;
    for (size_t i = 0; defaults && defaults[i] && i < KKT_MODEL_PROBLEMS; ++i) {
        kkt_status status = add_problem(defaults[i], false, query, err);
        if (status)
            return status;
    }
    return KKT_OK;
}

/* Every chunk needs a base that it can be halved down to, unless all bases are larger; a base that
 * was asked for must fit every chunk it is not larger than. */
static kkt_status check_chunk(const kkt_model_query *query, int64_t chunk, size_t *rows,
                              kkt_error *err) {
    bool fits = false, smaller = false;
    for (size_t b = 0; b < query->bases.count; ++b) {
        kkt_ledger row;
        if (query->bases.values[b] > chunk)
            continue;
        smaller = true;
        kkt_status status =
            kkt_ledger_compute(chunk, query->bases.values[b], query->dk, query->dv, 2, &row, err);
        if (status && query->bases.given)
            return status;
        fits = fits || !status;
        *rows += !status;
    }
    if (smaller && !fits)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "chunk %lld cannot be halved down to a base of 8, 16 or 32; give --base "
                        "such that chunk / base is a power of two",
                        (long long)chunk);
    return KKT_OK;
}

static kkt_status check_pairs(const kkt_model_query *query, kkt_error *err) {
    size_t rows = 0;
    for (size_t c = 0; c < query->chunks.count; ++c) {
        kkt_status status = check_chunk(query, query->chunks.values[c], &rows, err);
        if (status)
            return status;
    }
    if (rows == 0)
        return kkt_fail(
            err, KKT_ERR_INPUT, 0,
            "every base is larger than every chunk; give --base a value of at most %lld",
            (long long)query->chunks.values[0]);
    return KKT_OK;
}

kkt_status kkt_model_query_read(const kkt_args *args, kkt_model_query *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    out->dk = out->dv = 128;
    out->dtype = KKT_BF16;
    kkt_status status;
    if ((status = kkt_args_arch(args, &out->arch, &out->device, err)) ||
        (status =
             READ_LIST(args, "--chunk", KKT_LEDGER_CHUNK_MAX, default_chunks, &out->chunks, err)) ||
        (status =
             READ_LIST(args, "--base", KKT_LEDGER_CHUNK_MAX, default_bases, &out->bases, err)) ||
        (status = READ_LIST(args, "--block-dv", BLOCK_DV_MAX, default_block_dvs, &out->block_dvs,
                            err)) ||
        (status = READ_LIST(args, "--threads", 1024, default_threads, &out->threads, err)) ||
        (status = read_number(args, "--dk", KKT_LEDGER_DIM_MAX, &out->dk, err)) ||
        (status = read_number(args, "--dv", KKT_LEDGER_DIM_MAX, &out->dv, err)) ||
        (status = read_dtype(args, &out->dtype, err)) || (status = read_problems(args, out, err)))
        return status;
    /* The ledger is about the problem asked for, where only that says its dimensions. */
    if (kkt_args_has(args, "--problem")) {
        if (!kkt_args_has(args, "--dk"))
            out->dk = out->problems[0].dk;
        if (!kkt_args_has(args, "--dv"))
            out->dv = out->problems[0].dv;
    }
    return check_pairs(out, err);
}

size_t kkt_model_chunks(const kkt_model_query *query, size_t defaults, const int64_t **out) {
    *out = query->chunks.values;
    return query->chunks.given || defaults > query->chunks.count ? query->chunks.count : defaults;
}
