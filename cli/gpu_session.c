#include "cli/gpu_session.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/pool_open.h"

static kkt_status find_backend(const char *asked, const kkt_backend_type **type, const char **fake,
                               kkt_error *err) {
    *fake = NULL;
    if (asked && strncmp(asked, "fake", 4) == 0 && (asked[4] == '\0' || asked[4] == ':')) {
        *fake = asked[4] ? asked + 5 : "";
        asked = "fake";
    }
    *type = kkt_backend_find(asked ? asked : "cuda");
    if (!*type)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "unknown backend '%s'; known: cuda, fake[:seed=N,fault=KIND]", asked);
    return KKT_OK;
}

/* The architecture and device row of the GPU that was opened. */
static kkt_status match_gpu(const kkt_args *args, kkt_gpu_session *session, kkt_error *err) {
    const kkt_backend_info *info = session->type->info(session->backend);
    char capability[32];
    snprintf(capability, sizeof capability, "%d.%d", info->major, info->minor);
    const kkt_arch *arch = kkt_arch_find(capability);
    if (!arch)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                        "%s is of compute capability %s, which is in no row of the architecture "
                        "table",
                        info->gpu, capability);
    if (kkt_args_has(args, "--arch") && session->arch != arch)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                        "--arch %s was asked for, but %s is of compute capability %s",
                        session->arch->name, info->gpu, capability);
    session->arch = arch;
    session->device = kkt_device_by_full_name(info->gpu);
    return session->device ? KKT_OK : kkt_default_device(arch, &session->device, err);
}

kkt_status kkt_gpu_session_open(const kkt_args *args, kkt_gpu_session *out, kkt_error *err) {
    memset(out, 0, sizeof *out);
    kkt_backend_options options = {.gpu = -1};
    int64_t gpu = -1;
    const char *gpu_text = kkt_args_get(args, "--gpu");
    kkt_status status =
        find_backend(kkt_args_get(args, "--backend"), &out->type, &options.fake, err);
    if (status != KKT_OK)
        return status;
    if (gpu_text && !kkt_parse_i64(gpu_text, 0, 1023, &gpu))
        return kkt_fail(err, KKT_ERR_INPUT, 0, "--gpu '%s' is not an index from 0 up", gpu_text);
    options.gpu = (int)gpu;
    if (options.fake || kkt_args_has(args, "--arch"))
        status = kkt_args_arch(args, &out->arch, &out->device, err);
    if (status == KKT_OK)
        status = out->type->open(&options, &out->backend, err);
    if (status == KKT_OK && !options.fake)
        status = match_gpu(args, out, err);
    if (status != KKT_OK || !out->type->needs_cubin)
        return status;
    return kkt_pool_open(kkt_args_get(args, "--cache"), 0, &out->pool, err);
}

void kkt_gpu_session_close(kkt_gpu_session *session) {
    if (session->backend)
        session->type->close(session->backend);
    kkt_compile_pool_close(session->pool);
    memset(session, 0, sizeof *session);
}

kkt_status kkt_gpu_session_submit(kkt_gpu_session *session, const kkt_kernel *kernel,
                                  const kkt_variant *variant, const kkt_values *problem,
                                  const kkt_values *config, int64_t tag, kkt_error *err) {
    if (!session->pool || !variant->source)
        return KKT_OK;
    kkt_text defines = {0};
    kkt_compile_job job;
    kkt_compile_job_fill(kernel, variant, problem, config, session->arch, &defines, &job);
    job.source_text = session->source_text;
    kkt_status status = kkt_compile_pool_submit(session->pool, variant, &job, tag, err);
    kkt_text_free(&defines);
    return status;
}

kkt_status kkt_gpu_session_next(kkt_gpu_session *session, int64_t *tag, kkt_compile_result *out,
                                kkt_error *err) {
    bool got = false;
    kkt_status status = KKT_OK;
    memset(out, 0, sizeof *out);
    while (status == KKT_OK && !got && kkt_compile_pool_pending(session->pool) > 0)
        status = kkt_compile_pool_next(session->pool, 60.0, &got, tag, out, err);
    if (status == KKT_OK && !got)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "the compiler gave no answer");
    const char *unavailable = kkt_compile_pool_unavailable(session->pool);
    if (status == KKT_OK && !out->ok && unavailable) {
        kkt_compile_result_free(out);
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "nothing can be compiled: %s", unavailable);
    }
    return status;
}
