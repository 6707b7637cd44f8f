#include "kernels/pipeline.h"

#include <string.h>

const kkt_pipeline *kkt_pipeline_find(const char *name) {
    size_t count;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

bool kkt_pipeline_has(const kkt_pipeline *pipeline, const char *kernel) {
    for (size_t m = 0; pipeline->members[m] != NULL; m++)
        if (strcmp(pipeline->members[m], kernel) == 0)
            return true;
    return false;
}

static const kkt_param *param_of(const kkt_param_table *table, const char *name) {
    int index = name == NULL ? -1 : kkt_params_find(table, name);
    return index < 0 ? NULL : &table->params[index];
}

static bool lists(const kkt_param *param, int64_t value) {
    for (size_t i = 0; i < param->count; i++)
        if (param->values[i] == value)
            return true;
    return false;
}

/* The form key as the first member that has it lists it; NULL where fewer than two members have
 * it: then nobody else knows of another form than the default one. */
static const kkt_param *form_param(const kkt_pipeline_kernels *p) {
    const kkt_param *first = NULL;
    size_t knowing = 0;
    for (size_t m = 0; m < p->count; m++) {
        const kkt_param *param = param_of(&p->members[m]->problem, p->pipeline->form_key);
        knowing += param != NULL;
        first = first != NULL ? first : param;
    }
    return knowing >= 2 ? first : NULL;
}

/* The value of a form: of those that all members with the key list, in the first one's order. */
static bool form_value(const kkt_pipeline_kernels *p, size_t form, int64_t *out) {
    const kkt_param *first = form_param(p);
    for (size_t i = 0; first != NULL && i < first->count; i++) {
        bool common = true;
        for (size_t m = 0; m < p->count; m++) {
            const kkt_param *param = param_of(&p->members[m]->problem, p->pipeline->form_key);
            common = common && (param == NULL || lists(param, first->values[i]));
        }
        if (common && form-- == 0) {
            *out = first->values[i];
            return true;
        }
    }
    return false;
}

/* Whether some style of a kernel has the chunk size; `source`: of the styles with device code. A
 * baseline is none. */
static bool has_chunk(const kkt_kernel *kernel, int64_t chunk, bool source) {
    for (size_t v = 0; v < kernel->variant_count; v++) {
        if (kernel->variants[v]->library || (source && !kkt_variant_tuned(kernel->variants[v])))
            continue;
        const kkt_param *param = param_of(&kernel->variants[v]->params, kernel->chunk_param);
        if (param != NULL && lists(param, chunk))
            return true;
    }
    return false;
}

static void add_chunk(kkt_pipeline_kernels *p, int64_t chunk) {
    size_t at = 0;
    for (size_t m = 0; m < p->count; m++)
        if (!has_chunk(p->members[m], chunk, p->device_code))
            return;
    while (at < p->chunk_count && p->chunks[at] < chunk)
        at++;
    if ((at < p->chunk_count && p->chunks[at] == chunk) || p->chunk_count == KKT_CHOICES_MAX)
        return;
    memmove(&p->chunks[at + 1], &p->chunks[at], (p->chunk_count - at) * sizeof p->chunks[0]);
    p->chunks[at] = chunk;
    p->chunk_count++;
}

static bool has_device_code(const kkt_kernel *kernel) {
    for (size_t v = 0; v < kernel->variant_count; v++)
        if (kkt_variant_tuned(kernel->variants[v]))
            return true;
    return false;
}

bool kkt_pipeline_open(const kkt_pipeline *pipeline, kkt_pipeline_kernels *out,
                       const char **missing) {
    memset(out, 0, sizeof *out);
    out->pipeline = pipeline;
    const char *absent = NULL;
    if (kkt_kernel_parse(pipeline->whole, &out->whole, NULL) != KKT_OK)
        absent = pipeline->whole;
    for (size_t m = 0; absent == NULL && pipeline->members[m] != NULL; m++) {
        if (kkt_kernel_parse(pipeline->members[m], &out->members[m], NULL) != KKT_OK)
            absent = pipeline->members[m];
        else
            out->count++;
    }
    if (missing != NULL)
        *missing = absent;
    if (absent != NULL)
        return false;
    out->device_code = true;
    for (size_t m = 0; m < out->count; m++)
        out->device_code = out->device_code && has_device_code(out->members[m]);
    const kkt_kernel *first = out->members[0];
    for (size_t v = 0; v < first->variant_count; v++) {
        const kkt_param *param = param_of(&first->variants[v]->params, first->chunk_param);
        for (size_t i = 0; param != NULL && i < param->count; i++)
            add_chunk(out, param->values[i]);
    }
    int64_t value;
    while (form_value(out, out->forms, &value))
        out->forms++;
    out->forms = out->forms > 0 ? out->forms : 1;
    return true;
}

void kkt_pipeline_member_problem(const kkt_pipeline_kernels *p, size_t member,
                                 const kkt_values *problem, size_t form, kkt_values *out) {
    const kkt_param_table *table = &p->members[member]->problem;
    kkt_params_defaults(table, out);
    for (size_t i = 0; i < table->count; i++) {
        int from = kkt_params_find(&p->whole->problem, table->params[i].name);
        if (from >= 0)
            out->v[i] = problem->v[from];
    }
    int64_t value;
    int at = p->pipeline->form_key == NULL ? -1 : kkt_params_find(table, p->pipeline->form_key);
    if (at >= 0 && form_value(p, form, &value))
        out->v[at] = value;
}

const char *kkt_pipeline_form_name(const kkt_pipeline_kernels *p, size_t form, char buffer[24]) {
    int64_t value;
    return form_value(p, form, &value) ? kkt_param_value_text(form_param(p), value, buffer) : "";
}

bool kkt_pipeline_serves(const kkt_pipeline_kernels *p, size_t member,
                         const kkt_values *member_problem, const kkt_values *problem) {
    const kkt_param_table *table = &p->members[member]->problem;
    for (size_t i = 0; i < table->count; i++) {
        int from = kkt_params_find(&p->whole->problem, table->params[i].name);
        if (from >= 0 && member_problem->v[i] != problem->v[from])
            return false;
    }
    return true;
}
