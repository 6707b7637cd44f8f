/* Rows of the kernels' footprints: the best predicted configuration of each kernel, style, chunk
 * and asked value. */
#include <stdio.h>
#include <string.h>

#include "cli/model_query.h"
#include "tuner/engine/space.h"

static bool lists(const kkt_param *param, int64_t value) {
    if (param->count == 0)
        return value >= param->low && value <= param->high;
    for (size_t i = 0; i < param->count; ++i)
        if (param->values[i] == value)
            return true;
    return false;
}

typedef struct unlaunchable {
    const kkt_model_query *query;
    const kkt_values *problem;
    kkt_style_row *row;
    bool found;
} unlaunchable;

static void keep_smallest(void *context, const kkt_values *config, const char *reason) {
    unlaunchable *u = context;
    const kkt_variant *variant = u->row->variant;
    const kkt_model_query *query = u->query;
    char why[160];
    kkt_footprint footprint;
    kkt_prediction prediction;
    (void)reason;
    if (variant->applicable &&
        !variant->applicable(u->problem, config, query->arch, why, sizeof why))
        return;
    variant->footprint(u->problem, config, query->arch, &footprint);
    kkt_predict(&footprint, query->arch, query->device, NULL, &prediction);
    if (u->found && prediction.smem_bytes >= u->row->prediction.smem_bytes)
        return;
    u->found = true;
    u->row->config = *config;
    u->row->footprint = footprint;
    u->row->prediction = prediction;
}

/* Where nothing can be launched: the applicable configuration that asks for least shared memory
 * shows what stops it. False where none is even applicable. */
static bool find_unlaunchable(kkt_space *space, const kkt_model_query *query,
                              const kkt_values *problem, kkt_style_row *row) {
    unlaunchable u = {query, problem, row, false};
    kkt_point point;
    kkt_space_rewind(space);
    while (kkt_space_next(space, keep_smallest, &u, &point))
        continue;
    return u.found;
}

static bool find_best(const kkt_model_query *query, const kkt_values *problem, const char *fixed,
                      kkt_style_row *row) {
    kkt_space *space;
    kkt_point point;
    bool found = false;
    if (kkt_space_open(row->kernel, row->variant, problem, query->arch, query->device, fixed,
                       &space, NULL))
        return false;
    while (kkt_space_next(space, NULL, NULL, &point)) {
        if (found && point.prediction.predicted_us >= row->prediction.predicted_us)
            continue;
        found = true;
        row->config = point.config;
        row->prediction = point.prediction;
    }
    if (found)
        row->variant->footprint(problem, &row->config, query->arch, &row->footprint);
    else
        found = find_unlaunchable(space, query, problem, row);
    kkt_space_close(space);
    return found;
}

static int64_t config_value(const kkt_style_row *row, const char *name, int64_t otherwise) {
    int at = kkt_params_find(&row->variant->params, name);
    return at >= 0 ? row->config.v[at] : otherwise;
}

/* Whether a kernel has several styles that are shown. */
static bool several_styles(const kkt_kernel *kernel) {
    size_t count = 0;
    for (size_t v = 0; v < kernel->variant_count; ++v)
        count += kernel->variants[v]->library == NULL;
    return count > 1;
}

/* "kkt_solve has no threads 384; known: 32, 64, 128, 256" */
static void say_unlisted(kkt_style_row *row, const kkt_param *param, int64_t value) {
    kkt_text known = {0};
    for (size_t i = 0; i < param->count; ++i)
        kkt_text_printf(&known, "%s%lld", i ? ", " : "", (long long)param->values[i]);
    if (param->count == 0)
        kkt_text_printf(&known, "%lld to %lld", (long long)param->low, (long long)param->high);
    /* Another style of the kernel may list the value. */
    const bool several = several_styles(row->kernel);
    snprintf(row->missing, sizeof row->missing, "%s%s%s has no %s %lld; known: %s",
             row->kernel->name, several ? " " : "",
             several ? kkt_style_get(row->variant->style)->name : "", param->name, (long long)value,
             kkt_text_get(&known));
    kkt_text_free(&known);
}

/* Where no configuration with the values asked for passes the constraints: what the defaults with
 * these values are told. */
static void say_inapplicable(kkt_style_row *row, const kkt_model_query *query,
                             const kkt_values *problem) {
    char reason[sizeof row->missing] = "";
    if (!row->variant->applicable ||
        row->variant->applicable(problem, &row->config, query->arch, reason, sizeof reason))
        snprintf(reason, sizeof reason, "no configuration of %s applies", row->kernel->name);
    snprintf(row->missing, sizeof row->missing, "%s", reason);
}

/* Takes the values asked for (0: not asked) into the row; `fixed` receives them as text. */
static void take_asked(kkt_style_row *row, int64_t threads, int64_t block_dv, kkt_text *fixed) {
    const kkt_param_table *table = &row->variant->params;
    const struct {
        const char *name;
        int64_t value;
    } asked[] = {
        {row->kernel->chunk_param, row->chunk}, {"threads", threads}, {"block_dv", block_dv}};
    kkt_params_defaults(table, &row->config);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; ++i) {
        int at = asked[i].name && asked[i].value ? kkt_params_find(table, asked[i].name) : -1;
        if (at < 0)
            continue;
        row->config.v[at] = asked[i].value;
        row->asked |= UINT64_C(1) << at;
        if (row->missing[0] == '\0' && !lists(&table->params[at], asked[i].value))
            say_unlisted(row, &table->params[at], asked[i].value);
        kkt_text_printf(fixed, "%s%s=%lld", fixed->length ? "," : "", asked[i].name,
                        (long long)asked[i].value);
    }
}

/* One row; 0 for threads or block_dv leaves it to the best prediction. */
static void visit_row(const kkt_model_query *query, size_t kernel, const kkt_variant *variant,
                      int64_t chunk, int64_t threads, int64_t block_dv,
                      void (*visit)(void *context, const kkt_style_row *row), void *context) {
    size_t count;
    const kkt_values *problem = &query->kernel_problem[kernel];
    kkt_style_row row = {.kernel = kkt_kernels(&count)[kernel], .variant = variant, .chunk = chunk};
    kkt_text fixed = {0};
    take_asked(&row, threads, block_dv, &fixed);
    if (row.missing[0] == '\0' && !find_best(query, problem, kkt_text_get(&fixed), &row))
        say_inapplicable(&row, query, problem);
    snprintf(row.name, sizeof row.name, "%s_%s", row.kernel->name,
             kkt_style_get(variant->style)->name);
    row.block_dv = config_value(&row, "block_dv", 0);
    row.stages = (int)config_value(&row, "stages", 1);
    visit(context, &row);
    kkt_text_free(&fixed);
}

static void visit_variant(const kkt_model_query *query, size_t kernel, const kkt_variant *variant,
                          bool for_layouts, void (*visit)(void *context, const kkt_style_row *row),
                          void *context) {
    const int64_t *chunks;
    size_t chunk_count = kkt_model_chunks(query, 4, &chunks);
    bool has_threads = kkt_params_find(&variant->params, "threads") >= 0;
    bool has_dv = kkt_params_find(&variant->params, "block_dv") >= 0;
    bool by_threads = has_threads && query->threads.given && !for_layouts;
    bool by_dv = has_dv && (query->block_dvs.given || for_layouts);
    for (size_t c = 0; c < chunk_count; ++c)
        for (size_t t = 0; t < (by_threads ? query->threads.count : 1); ++t)
            for (size_t d = 0; d < (by_dv ? query->block_dvs.count : 1); ++d)
                visit_row(query, kernel, variant, chunks[c],
                          by_threads ? query->threads.values[t] : 0,
                          by_dv ? query->block_dvs.values[d] : 0, visit, context);
}

static void visit_all(const kkt_model_query *query, bool for_layouts,
                      void (*visit)(void *context, const kkt_style_row *row), void *context) {
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count && k < KKT_MODEL_KERNELS; ++k)
        for (size_t v = 0; query->kernel_usable[k] && v < kernels[k]->variant_count; ++v)
            if (!kernels[k]->variants[v]->library) /* whose registers and memory nobody knows */
                visit_variant(query, k, kernels[k]->variants[v], for_layouts, visit, context);
}

void kkt_model_styles(const kkt_model_query *query,
                      void (*visit)(void *context, const kkt_style_row *row), void *context) {
    visit_all(query, false, visit, context);
}

typedef struct layout_visitor {
    void (*visit)(void *context, const kkt_layout *layout);
    void *context;
} layout_visitor;

static void visit_own_layout(void *context, const kkt_style_row *row) {
    const layout_visitor *visitor = context;
    kkt_layout layout;
    if (row->missing[0] != '\0')
        return;
    kkt_layout_from_footprint(row->name, &row->footprint, row->block_dv, row->stages, &layout);
    visitor->visit(visitor->context, &layout);
}

void kkt_model_layouts(const kkt_model_query *query,
                       void (*visit)(void *context, const kkt_layout *layout), void *context) {
    size_t count;
    const kkt_layout_source *sources = kkt_layouts(&count);
    const int64_t *chunks;
    size_t chunk_count = kkt_model_chunks(query, 4, &chunks);
    for (size_t s = 0; s < count; ++s)
        for (const int *buffers = sources[s].buffers; *buffers; ++buffers)
            for (size_t c = 0; c < chunk_count; ++c)
                for (size_t d = 0; d < query->block_dvs.count; ++d) {
                    kkt_layout_query at = {.chunk = chunks[c],
                                           .dk = query->dk,
                                           .block_dv = query->block_dvs.values[d],
                                           .element_bytes = (int)kkt_dtype_bytes(query->dtype),
                                           .buffers = *buffers};
                    kkt_layout layout;
                    if (kkt_layout_compute(&sources[s], &at, &layout))
                        visit(context, &layout);
                }
    visit_all(query, true, visit_own_layout, &(layout_visitor){visit, context});
}
