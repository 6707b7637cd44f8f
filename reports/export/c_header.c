/* The C header: macros of the default problem, a table of all problems with its look-up, and the
 * source hash. Valid as C99 and later, C++11 and later, and CUDA (host and device); docs/formats.md
 * describes it. Only kernels of this program get into it: what is written as an identifier comes
 * from its tables alone, never from a database. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/version.h"
#include "kernels/kernel.h"
#include "reports/canonical.h"
#include "reports/export/exporters.h"
#include "reports/modelled.h"

static void add_upper(kkt_text *out, const char *text) {
    for (; *text != '\0'; text++) {
        char c = isalnum((unsigned char)*text) ? (char)toupper((unsigned char)*text) : '_';
        kkt_text_add_bytes(out, &c, 1);
    }
}

/* "#define KKTTUNE_SM90_KKT_SOLVE_NAME " (kernel NULL: of the architecture). */
static void add_define(kkt_text *out, const kkt_view *view, const char *kernel, const char *name) {
    kkt_text_add(out, "#define KKTTUNE_");
    add_upper(out, view->arch->name);
    if (kernel != NULL) {
        kkt_text_add(out, "_");
        add_upper(out, kernel);
    }
    kkt_text_add(out, "_");
    add_upper(out, name);
    kkt_text_add(out, " ");
}

/* The value a kernel's macro receives; false where the text is no value of the parameter. */
static bool value_of(const kkt_param_table *table, size_t index, const char *text, int64_t *out) {
    kkt_values values;
    kkt_params_defaults(table, &values);
    if (kkt_params_parse(table, text, &values, NULL, NULL) != KKT_OK)
        return false;
    *out = values.v[index];
    return true;
}

static void add_macros(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                       const kkt_variant *variant, const kkt_entry *entry) {
    kkt_text_add(out, "\n/* The default problem, ");
    kkt_text_add(out, entry->problem);
    kkt_text_printf(out, " (%s, %s). */\n", entry->style, kkt_entry_provenance(entry));
    for (size_t p = 0; p < variant->params.count; p++) {
        const kkt_param *param = &variant->params.params[p];
        int64_t value;
        if (!value_of(&variant->params, p, entry->config, &value))
            continue;
        add_define(out, view, kernel->name, param->name);
        kkt_text_printf(out, "%lld\n", (long long)value);
        if (param->names != NULL) {
            char buffer[24], name[80];
            snprintf(name, sizeof name, "%s_NAME", param->name);
            add_define(out, view, kernel->name, name);
            kkt_text_add_c_string(out, kkt_param_value_text(param, value, buffer));
            kkt_text_add(out, "\n");
        }
    }
    bool has_threads = kkt_params_find(&variant->params, "threads") >= 0;
    if (!has_threads) {
        add_define(out, view, kernel->name, "THREADS");
        kkt_text_printf(out, "%d\n", entry->threads);
    }
    add_define(out, view, kernel->name, "SMEM_BYTES");
    kkt_text_printf(out, "%lld\n", (long long)entry->smem_bytes);
    add_define(out, view, kernel->name, "REGISTERS");
    kkt_text_printf(out, "%d\n", entry->registers);
    add_define(out, view, kernel->name, "STYLE");
    kkt_text_add_c_string(out, entry->style);
    kkt_text_add(out, "\n");
    add_define(out, view, kernel->name, "PROVENANCE");
    kkt_text_add_c_string(out, kkt_entry_provenance(entry));
    kkt_text_add(out, "\n");
}

/* The hash that holds for the whole table: the default problem's. */
static void add_hash(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                     const kkt_entry *entry) {
    const char *hash = entry->kernel_hash;
    if (hash == NULL || strspn(hash, "0123456789abcdef") < 16)
        return;
    kkt_text_printf(out, "/* First 16 hex digits of the SHA-256 of the kernel sources. */\n");
    add_define(out, view, kernel->name, "SOURCE_HASH");
    kkt_text_printf(out, "0x%.16sULL\n", hash);
}

/* "kkttune_sm90_kkt_solve". */
static void add_prefix(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel) {
    kkt_text_printf(out, "kkttune_%s_%s", view->arch->name, kernel->name);
}

static void add_struct(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                       const kkt_variant *variant) {
    kkt_text_add(out, "\ntypedef struct ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry {\n    /* problem */\n");
    for (size_t p = 0; p < kernel->problem.count; p++)
        kkt_text_printf(out, "    long long problem_%s;\n", kernel->problem.params[p].name);
    kkt_text_add(out, "    /* configuration */\n");
    for (size_t p = 0; p < variant->params.count; p++)
        kkt_text_printf(out, "    int %s;\n", variant->params.params[p].name);
    kkt_text_add(out, "    /* launch: threads and dynamic shared memory a block, registers a "
                      "thread */\n"
                      "    int launch_threads;\n    int launch_smem_bytes;\n"
                      "    int launch_registers;\n"
                      "    int provenance; /* KKTTUNE_PREDICTED ... KKTTUNE_REPLAYED */\n"
                      "    int stale;      /* 1: its source, options or compiler have changed */\n"
                      "    double time_us; /* median; 0 where nothing was measured */\n} ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry;\n");
}

static bool of_variant(const kkt_entry *entry, const kkt_kernel *kernel,
                       const kkt_variant *variant) {
    return strcmp(entry->kernel, kernel->name) == 0 &&
           strcmp(entry->style, kkt_style_get(variant->style)->name) == 0;
}

static bool add_row(kkt_text *out, const kkt_kernel *kernel, const kkt_variant *variant,
                    const kkt_entry *entry) {
    kkt_values problem, config;
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&kernel->problem, entry->problem, &problem, NULL, NULL) != KKT_OK ||
        kkt_params_parse(&variant->params, entry->config, &config, NULL, NULL) != KKT_OK)
        return false;
    kkt_text_add(out, "        {");
    for (size_t p = 0; p < kernel->problem.count; p++)
        kkt_text_printf(out, "%lld, ", (long long)problem.v[p]);
    for (size_t p = 0; p < variant->params.count; p++)
        kkt_text_printf(out, "%lld, ", (long long)config.v[p]);
    kkt_text_printf(out, "%d, %lld, %d, %d, %d, %.6f},\n", entry->threads,
                    (long long)entry->smem_bytes, entry->registers, (int)entry->provenance,
                    entry->stale_reason != NULL, kkt_entry_measured(entry) ? entry->time_us : 0.0);
    return true;
}

static void add_table(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                      const kkt_variant *variant, const char *style) {
    kkt_text rows = {0};
    int count = 0;
    for (size_t i = 0; i < view->entry_count; i++)
        if (of_variant(&view->entries[i], kernel, variant) &&
            strcmp(style, view->entries[i].style) == 0)
            count += add_row(&rows, kernel, variant, &view->entries[i]);
    kkt_text_add(out,
                 "\n/* All problems and chunk sizes; `*count` receives the number of rows. */\n"
                 "KKTTUNE_FUNCTION const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *\n");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_table(int *count) {\n    static const ");
    add_prefix(out, view, kernel);
    kkt_text_printf(out, "_entry rows[%d] = {\n", count);
    kkt_text_add(out, kkt_text_get(&rows));
    kkt_text_printf(out, "    };\n    *count = %d;\n    return rows;\n}\n", count);
    kkt_text_free(&rows);
}

/* Problem keys whose values are names or flags: only equal ones compare. */
static bool is_kind(const kkt_param *param) {
    return param->names != NULL ||
           (param->count == 2 && param->values[0] + param->values[1] == 1) ||
           (param->count == 0 && param->low == 0 && param->high == 1);
}

static void add_distance(kkt_text *out, const kkt_kernel *kernel) {
    for (size_t p = 0; p < kernel->problem.count; p++) {
        const char *name = kernel->problem.params[p].name;
        if (is_kind(&kernel->problem.params[p]))
            kkt_text_printf(out, "        distance += rows[i].problem_%s == %s ? 0.0 : 1e6;\n",
                            name, name);
        else
            kkt_text_printf(out, "        distance += kkttune_ratio(rows[i].problem_%s, %s);\n",
                            name, name);
    }
}

static void add_arguments(kkt_text *out, const kkt_kernel *kernel) {
    for (size_t p = 0; p < kernel->problem.count; p++)
        kkt_text_printf(out, "%slong long %s", p == 0 ? "" : ", ", kernel->problem.params[p].name);
    if (kernel->chunk_param != NULL)
        kkt_text_add(out, ", int chunk_wanted");
}

static void add_lookup(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel) {
    kkt_text_add(out, "\n/* The row of exactly this problem, else that of the nearest one (the sum "
                      "of the ratios of its\n * sizes); a null pointer where data type or gate of "
                      "no row agree.");
    if (kernel->chunk_param != NULL)
        kkt_text_printf(out, " `chunk_wanted` 0: %d.", KKT_DEFAULT_CHUNK);
    kkt_text_add(out, "\n * `*exact`, where it is not null, receives 1 or 0. */\n"
                      "KKTTUNE_FUNCTION const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *\n");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_find(");
    add_arguments(out, kernel);
    kkt_text_add(out, ", int *exact) {\n    int count = 0;\n    const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *rows = ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_table(&count);\n    const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *best = 0;\n    double nearest = 1e6;\n"
                      "    for (int i = 0; i < count; i++) {\n        double distance = 0.0;\n");
    add_distance(out, kernel);
    if (kernel->chunk_param != NULL)
        kkt_text_printf(out,
                        "        if (rows[i].%s != (chunk_wanted != 0 ? chunk_wanted : %d))\n"
                        "            distance = 1e6;\n",
                        kernel->chunk_param, KKT_DEFAULT_CHUNK);
    kkt_text_add(out, "        if (distance < nearest) {\n            nearest = distance;\n"
                      "            best = &rows[i];\n        }\n    }\n"
                      "    if (exact)\n        *exact = best && nearest <= 0.0;\n"
                      "    return best;\n}\n");
}

static void add_kernel(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel) {
    const kkt_entry *standing = NULL;
    for (size_t i = 0; i < view->entry_count && standing == NULL; i++)
        if (strcmp(view->entries[i].kernel, kernel->name) == 0)
            standing = kkt_view_standing(view, kernel->name, view->entries[i].problem, 0);
    const kkt_kernel *found;
    const kkt_variant *variant;
    if (standing == NULL || standing->model_only ||
        !kkt_modelled_find(kernel->name, standing->style, &found, &variant))
        return;
    kkt_text_printf(out, "\n/* ---- %s: %s ---- */\n", kernel->name, kernel->summary);
    add_macros(out, view, kernel, variant, standing);
    add_hash(out, view, kernel, standing);
    add_struct(out, view, kernel, variant);
    add_table(out, view, kernel, variant, standing->style);
    add_lookup(out, view, kernel);
}

static const char *const common[] = {
    "#ifndef KKTTUNE_COMMON_H\n",
    "#define KKTTUNE_COMMON_H\n",
    "#define KKTTUNE_PREDICTED 0\n",
    "#define KKTTUNE_COMPILED 1\n",
    "#define KKTTUNE_MEASURED 2\n",
    "#define KKTTUNE_REPLAYED 3\n",
    "#if defined(__CUDACC__)\n",
    "#define KKTTUNE_FUNCTION static inline __host__ __device__\n",
    "#elif defined(__GNUC__)\n",
    "#define KKTTUNE_FUNCTION static inline __attribute__((unused))\n",
    "#else\n",
    "#define KKTTUNE_FUNCTION static inline\n",
    "#endif\n",
    "/* How far two sizes are apart: 0 for equal ones, 1 for a factor of two. */\n",
    "KKTTUNE_FUNCTION double kkttune_ratio(long long a, long long b) {\n",
    "    if (a <= 0 || b <= 0)\n",
    "        return a == b ? 0.0 : 1e6;\n",
    "    return a > b ? (double)a / (double)b - 1.0 : (double)b / (double)a - 1.0;\n",
    "}\n",
    "#endif\n",
};

static kkt_status render(const kkt_view *view, kkt_text *out, kkt_error *err) {
    (void)err;
    kkt_text_printf(
        out, "/* Written by kkttune " KKT_VERSION " for %s, %s. Do not edit: export again. */\n",
        view->arch->name, view->device->full_name);
    kkt_text_add(out, "#ifndef KKTTUNE_");
    add_upper(out, view->arch->name);
    kkt_text_add(out, "_H\n");
    kkt_text_add(out, "#define KKTTUNE_");
    add_upper(out, view->arch->name);
    kkt_text_add(out, "_H\n\n");
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        kkt_text_add(out, common[i]);
    kkt_text_add(out, "\n");
    add_define(out, view, NULL, "COMPUTE_CAPABILITY");
    kkt_text_printf(out, "%d\n", 10 * view->arch->major + view->arch->minor);
    add_define(out, view, NULL, "DEVICE");
    kkt_text_add_c_string(out, view->device->full_name);
    kkt_text_add(out, "\n");
    size_t count;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    for (size_t k = 0; k < count; k++)
        add_kernel(out, view, kernels[k]);
    kkt_text_add(out, "\n#endif\n");
    return KKT_OK;
}

const kkt_report_type kkt_report_header = {
    .name = "header",
    .summary = "the same as a C header for other builds",
    .file_format = "kkttune_%s.h",
    .render = render,
};
