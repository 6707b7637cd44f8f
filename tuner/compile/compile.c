#include "tuner/compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/sha256.h"
#include "tuner/compile/log.h"
#include "tuner/compile/nvrtc.h"
#include "tuner/worker/stream.h"

enum { HEADERS_MAX = 64, INCLUDE_BYTES = 128, OPTIONS_MAX = 128 };

struct kkt_compiler {
    kkt_nvrtc nvrtc;
    char version[32];
};

kkt_status kkt_compiler_open(kkt_compiler **out, kkt_error *err) {
    kkt_compiler *compiler = calloc(1, sizeof *compiler);
    if (compiler == NULL)
        abort();
    kkt_status status = kkt_nvrtc_open(&compiler->nvrtc, err);
    if (status != KKT_OK) {
        free(compiler);
        return status;
    }
    snprintf(compiler->version, sizeof compiler->version, "nvrtc %d.%d", compiler->nvrtc.major,
             compiler->nvrtc.minor);
    *out = compiler;
    return KKT_OK;
}

void kkt_compiler_close(kkt_compiler *compiler) {
    if (compiler == NULL)
        return;
    kkt_nvrtc_close(&compiler->nvrtc);
    free(compiler);
}

const char *kkt_compiler_version(const kkt_compiler *compiler) {
    return compiler->version;
}

void kkt_compile_result_free(kkt_compile_result *result) {
    free(result->cubin);
    free(result->log);
    *result = (kkt_compile_result){0};
}

void kkt_compile_job_fill(const kkt_kernel *kernel, const kkt_variant *variant,
                          const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                          kkt_text *text, kkt_compile_job *job) {
    size_t begin = text->length;
    kkt_variant_defines(kernel, variant, problem, config, arch, text);
    *job = (kkt_compile_job){
        .source_path = variant->source,
        .nvrtc_arch = arch->nvrtc_arch,
        .defines = kkt_text_get(text) + (text->length > begin ? begin : text->length),
    };
}

void kkt_compile_options(const kkt_compile_job *job, kkt_text *out) {
    kkt_text_printf(out, "--gpu-architecture=%s --std=c++17", job->nvrtc_arch);
    for (const char *line = job->defines; *line != '\0';) {
        int length = (int)strcspn(line, "\n");
        if (length > 0)
            kkt_text_printf(out, " -D%.*s", length, line);
        line += length + (line[length] == '\n');
    }
}

void kkt_compile_key(const char *compiler_version, const kkt_variant *variant,
                     const kkt_compile_job *job, char out[65]) {
    char source[65];
    if (job->source_text != NULL)
        kkt_sha256_of(job->source_text, strlen(job->source_text), source);
    else
        kkt_variant_hash(variant, source);
    kkt_text text = {0};
    kkt_text_printf(&text, "%s\n%s\n%s\n", compiler_version, source, job->source_path);
    kkt_compile_options(job, &text);
    kkt_sha256_of(text.data, text.length, out);
    kkt_text_free(&text);
}

/* ---- one compile ---- */

/* The headers that a source includes by name, directly or through others. */
typedef struct headers {
    int count;
    const char *names[HEADERS_MAX], *contents[HEADERS_MAX];
} headers;

static bool known(const headers *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

/* Adds what `source` includes as `#include "name"`. A name that is not embedded is left to NVRTC,
 * whose message then names file and line. */
static void add_included(headers *list, kkt_arena *arena, const char *source) {
    static const char directive[] = "#include \"";
    for (const char *at = strstr(source, directive); at != NULL; at = strstr(at, directive)) {
        at += sizeof directive - 1;
        size_t length = strcspn(at, "\"\n");
        if (length >= INCLUDE_BYTES || at[length] != '"')
            continue;
        const char *name = kkt_arena_printf(arena, "%.*s", (int)length, at);
        size_t bytes;
        const char *content = kkt_device_source(name, &bytes);
        if (content == NULL || known(list, name) || list->count == HEADERS_MAX)
            continue;
        list->names[list->count] = name;
        list->contents[list->count++] = content;
    }
}

static int split_options(const kkt_compile_job *job, kkt_arena *arena, const char **out) {
    int count = 0;
    kkt_text text = {0};
    kkt_compile_options(job, &text);
    char *words = kkt_arena_strdup(arena, kkt_text_get(&text));
    kkt_text_free(&text);
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word != NULL && count < OPTIONS_MAX - 2;
         word = strtok_r(NULL, " ", &rest))
        out[count++] = word;
    out[count++] = "--ptxas-options=-v"; /* spills are told in the log alone */
    out[count++] = "--no-cache";         /* the project keeps its own */
    return count;
}

static char *take_log(const kkt_nvrtc *nvrtc, nvrtcProgram program) {
    size_t size = 0;
    if (nvrtc->log_size(program, &size) != NVRTC_SUCCESS)
        size = 0;
    char *log = calloc(size + 1, 1);
    if (log == NULL)
        abort();
    if (size > 0 && nvrtc->log(program, log) != NVRTC_SUCCESS)
        log[0] = '\0';
    return log;
}

/* Keeps nothing of a build but its time; takes the text as its log. */
static void fail_build(kkt_compile_result *result, const kkt_text *log) {
    kkt_compile_result failed = {
        .log = log->data, .compile_ms = result->compile_ms, .from_cache = result->from_cache};
    kkt_compile_result_free(result);
    *result = failed;
}

/* Such a source is at fault (it holds no kernel), or this compiler is for it: either way it is one
 * candidate that failed to build. */
static void refuse_cubin(const kkt_compile_job *job, const kkt_error *why,
                         kkt_compile_result *out) {
    kkt_text text = {0};
    kkt_text_printf(&text, "%s: the compiler's cubin cannot be read: %s\n%s", job->source_path,
                    why->message, out->log);
    fail_build(out, &text);
}

void kkt_compile_check_entries(const kkt_variant *variant, const kkt_values *problem,
                               const kkt_values *config, const kkt_arch *arch,
                               kkt_compile_result *result) {
    kkt_plan plan = {0};
    if (!result->ok || variant->plan == NULL)
        return;
    variant->plan(problem, config, arch, &plan);
    for (int l = 0; l < plan.launch_count; l++) {
        const char *entry = plan.launches[l].entry;
        if (entry == NULL || plan.launches[l].library != NULL ||
            !kkt_cubin_lacks(result->cubin, result->cubin_size, entry))
            continue;
        kkt_text text = {0};
        kkt_text_printf(&text,
                        "the cubin has no entry %s: the plan's name and the extern \"C\" name "
                        "differ\n%s",
                        entry, result->log != NULL ? result->log : "");
        fail_build(result, &text);
        return;
    }
}

static kkt_status take_cubin(const kkt_nvrtc *nvrtc, nvrtcProgram program,
                             const kkt_compile_job *job, kkt_compile_result *out, kkt_error *err) {
    nvrtcResult result = nvrtc->cubin_size(program, &out->cubin_size);
    if (result == NVRTC_SUCCESS) {
        out->cubin = malloc(out->cubin_size + 1);
        if (out->cubin == NULL)
            abort();
        result = nvrtc->cubin(program, (char *)out->cubin);
    }
    if (result != NVRTC_SUCCESS)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, (int)result, "NVRTC gave no cubin: %s",
                        nvrtc->error_string(result));
    kkt_error why;
    if (kkt_cubin_read(out->cubin, out->cubin_size, &out->info, &why) == KKT_OK)
        kkt_log_spills(out->log, &out->info);
    else
        refuse_cubin(job, &why, out);
    return KKT_OK;
}

static kkt_status compile_source(const kkt_compiler *compiler, const kkt_compile_job *job,
                                 const char *source, kkt_arena *arena, kkt_compile_result *out,
                                 kkt_error *err) {
    const kkt_nvrtc *nvrtc = &compiler->nvrtc;
    headers list = {0};
    add_included(&list, arena, source);
    for (int i = 0; i < list.count; i++)
        add_included(&list, arena, list.contents[i]);
    const char *options[OPTIONS_MAX];
    int count = split_options(job, arena, options);
    nvrtcProgram program;
    nvrtcResult result =
        nvrtc->create(&program, source, job->source_path, list.count, list.contents, list.names);
    if (result != NVRTC_SUCCESS)
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, (int)result, "NVRTC cannot begin %s: %s",
                        job->source_path, nvrtc->error_string(result));
    double begin = kkt_clock_seconds();
    result = nvrtc->compile(program, count, options);
    out->compile_ms = 1e3 * (kkt_clock_seconds() - begin);
    out->log = take_log(nvrtc, program);
    out->ok = result == NVRTC_SUCCESS;
    kkt_status status = KKT_OK;
    if (out->ok) {
        status = take_cubin(nvrtc, program, job, out, err);
    } else if (out->log[0] == '\0') {
        free(out->log);
        out->log = strdup(nvrtc->error_string(result));
    }
    nvrtc->destroy(&program);
    return status;
}

kkt_status kkt_compile(kkt_compiler *compiler, const kkt_compile_job *job, kkt_compile_result *out,
                       kkt_error *err) {
    *out = (kkt_compile_result){0};
    size_t length;
    const char *source =
        job->source_text != NULL ? job->source_text : kkt_device_source(job->source_path, &length);
    if (source == NULL)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "no device source '%s' in this program",
                        job->source_path);
    kkt_arena *arena = kkt_arena_open();
    kkt_status status = compile_source(compiler, job, source, arena, out, err);
    kkt_arena_close(arena);
    if (status != KKT_OK)
        kkt_compile_result_free(out);
    return status;
}
