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
#include "reports/curve.h"
#include "reports/export/exporters.h"
#include "reports/header_rows.h"
#include "reports/lookup.h"
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
    kkt_text_printf(out, " (%s, %s). */\n", entry->style, kkt_entry_shown(entry));
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
    kkt_text_add_c_string(out, kkt_entry_shown(entry));
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
    kkt_text_add(out,
                 "    /* launch: threads and dynamic shared memory a block, registers a "
                 "thread */\n"
                 "    int launch_threads;\n    int launch_smem_bytes;\n"
                 "    int launch_registers;\n"
                 "    int provenance; /* KKTTUNE_PREDICTED ... KKTTUNE_REPLAYED */\n"
                 "    int stale;      /* 1: its source, options or compiler have changed */\n"
                 "    double time_us; /* median; 0 where nothing was measured */\n"
                 "    /* 0: another style is faster on this problem, at its chunk size: by their "
                 "times, or, where\n"
                 "     * this row has none, by far in what is predicted; 1 also where their times "
                 "do not\n"
                 "     * compare, for one is stale or noisy. */\n"
                 "    int fastest_style;\n} ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry;\n");
}

static bool of_variant(const kkt_entry *entry, const kkt_kernel *kernel,
                       const kkt_variant *variant) {
    return strcmp(entry->kernel, kernel->name) == 0 &&
           strcmp(entry->style, kkt_style_get(variant->style)->name) == 0;
}

/* The chunk size that `chunk_wanted` 0 means, where it is the same for all rows; 0: it is not. */
static int64_t common_chunk(const kkt_view *view, const kkt_kernel *kernel,
                            const kkt_variant *variant) {
    int64_t common = 0;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (!of_variant(entry, kernel, variant))
            continue;
        int64_t chunk = kkt_view_chunk(view, entry->kernel, entry->problem)->chunk;
        if (common != 0 && common != chunk)
            return 0;
        common = chunk;
    }
    return common;
}

/* False: an entry that is no row, of another time's keys or values. */
static bool read_row(const kkt_kernel *kernel, const kkt_variant *variant, const kkt_entry *entry,
                     kkt_values *problem, kkt_values *config) {
    kkt_params_defaults(&variant->params, config);
    return kkt_kernel_problem_parse(kernel, entry->problem, problem, NULL) == KKT_OK &&
           kkt_params_parse(&variant->params, entry->config, config, NULL, NULL) == KKT_OK;
}

static bool add_row(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                    const kkt_variant *variant, const kkt_entry *entry) {
    kkt_values problem, config;
    if (!read_row(kernel, variant, entry, &problem, &config))
        return false;
    kkt_text_add(out, "        {");
    for (size_t p = 0; p < kernel->problem.count; p++)
        kkt_text_printf(out, "%lld, ", (long long)problem.v[p]);
    for (size_t p = 0; p < variant->params.count; p++)
        kkt_text_printf(out, "%lld, ", (long long)config.v[p]);
    kkt_text_printf(out, "%d, %lld, %d, %d, %d, %.6f, %d},\n", entry->threads,
                    (long long)entry->smem_bytes, entry->registers, (int)entry->provenance,
                    entry->stale_reason != NULL, kkt_entry_measured(entry) ? entry->time_us : 0.0,
                    kkt_header_faster(view, entry) == NULL);
    return true;
}

static void add_table(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                      const kkt_variant *variant, const char *style) {
    kkt_text rows = {0};
    int count = 0;
    for (size_t i = 0; i < view->entry_count; i++)
        if (of_variant(&view->entries[i], kernel, variant) &&
            strcmp(style, view->entries[i].style) == 0)
            count += add_row(&rows, view, kernel, variant, &view->entries[i]);
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

/* The look-up's arguments are the kernel's problem keys, by name: all else in the function is
 * called kkt_..., which no key is (kernels.test_kernel), so that any key may be named "row" or
 * "best". */

/* The rows that must not be given out for the problem asked: another binary, or a configuration
 * that may not divide it. */
static void add_conditions(kkt_text *out, const kkt_kernel *kernel, const kkt_variant *variant,
                           int64_t common) {
    for (size_t p = 0; p < kernel->problem.count; p++) {
        const kkt_param *param = &kernel->problem.params[p];
        if (kernel->sizes_decide || kkt_lookup_rule_of(param).compiled)
            kkt_text_printf(
                out, "        if (kkt_rows[kkt_i].problem_%s != %s)\n            continue;\n",
                param->name, param->name);
    }
    for (const kkt_lookup_quotient *q = kkt_lookup_quotients; q->above != NULL; q++)
        if (kkt_params_find(&kernel->problem, q->above) >= 0 &&
            kkt_params_find(&kernel->problem, q->below) >= 0)
            kkt_text_printf(
                out,
                "        if (kkt_rows[kkt_i].problem_%s * %s != %s * kkt_rows[kkt_i].problem_%s)\n"
                "            continue;\n",
                q->above, q->below, q->above, q->below);
    for (const char *const *need = variant->row_needs; need != NULL && *need != NULL; need++)
        kkt_text_printf(out, "        if (!(%s))\n            continue;\n", *need);
    if (kernel->chunk_param != NULL && common != 0)
        kkt_text_printf(
            out,
            "        if (kkt_rows[kkt_i].%s != (kkt_chunk_wanted != 0 ? kkt_chunk_wanted : %lld))\n"
            "            continue;\n",
            kernel->chunk_param, (long long)common);
    else if (kernel->chunk_param != NULL)
        kkt_text_printf(out,
                        "        if (kkt_rows[kkt_i].%s != (kkt_chunk_wanted != 0 ? "
                        "kkt_chunk_wanted : kkt_standing[kkt_i]))\n"
                        "            continue;\n",
                        kernel->chunk_param);
}

static void add_distance(kkt_text *out, const kkt_kernel *kernel) {
    for (size_t p = 0; p < kernel->problem.count; p++) {
        const kkt_param *param = &kernel->problem.params[p];
        kkt_lookup_rule rule = kkt_lookup_rule_of(param);
        if (!kernel->sizes_decide && !rule.compiled)
            kkt_text_printf(
                out, "        kkt_distance *= kkttune_apart(kkt_rows[kkt_i].problem_%s, %s, %d);\n",
                param->name, param->name, rule.halves);
    }
}

static void add_arguments(kkt_text *out, const kkt_kernel *kernel) {
    for (size_t p = 0; p < kernel->problem.count; p++)
        kkt_text_printf(out, "%slong long %s", p == 0 ? "" : ", ", kernel->problem.params[p].name);
    if (kernel->chunk_param != NULL)
        kkt_text_add(out, ", int kkt_chunk_wanted");
}

/* Rows of one tier are ordered as kkt_lookup_find orders them: distance, fresh before stale, time.
 */
static void add_choice(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                       const kkt_variant *variant, int64_t common) {
    kkt_text_add(out, "    for (int kkt_i = 0; kkt_i < kkt_count; kkt_i++) {\n        double "
                      "kkt_distance = 1.0;\n");
    if (variant->row_needs != NULL) {
        kkt_text_add(out, "        const ");
        add_prefix(out, view, kernel);
        kkt_text_add(out, "_entry *kkt_row = &kkt_rows[kkt_i];\n");
    }
    add_conditions(out, kernel, variant, common);
    add_distance(out, kernel);
    kkt_text_printf(
        out,
        "        if (kkt_distance > %.1f)\n            continue;\n"
        "        int kkt_tier = kkt_rows[kkt_i].time_us > 0.0;\n"
        "        if (kkt_distance <= 1.0 && kkt_rows[kkt_i].provenance != KKTTUNE_PREDICTED)\n"
        "            kkt_tier = 2;\n"
        "        if (kkt_best && (kkt_tier < kkt_best_tier || (kkt_tier == kkt_best_tier && "
        "kkt_distance > kkt_nearest)))\n"
        "            continue;\n"
        "        if (kkt_best && kkt_tier == kkt_best_tier && kkt_distance >= kkt_nearest &&\n"
        "            (kkt_rows[kkt_i].stale > kkt_best->stale ||\n"
        "             (kkt_rows[kkt_i].stale == kkt_best->stale && kkt_rows[kkt_i].time_us >= "
        "kkt_best->time_us)))\n"
        "            continue;\n"
        "        kkt_best = &kkt_rows[kkt_i];\n        kkt_best_tier = kkt_tier;\n        "
        "kkt_nearest = kkt_distance;\n    }\n",
        pow(4, KKT_LOOKUP_FAR));
}

/* The chunk size that the fastest pipeline takes on each row's problem. */
static void add_standing(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                         const kkt_variant *variant) {
    kkt_text values = {0};
    kkt_values problem, config;
    for (size_t i = 0; i < view->entry_count; i++) {
        const kkt_entry *entry = &view->entries[i];
        if (of_variant(entry, kernel, variant) &&
            read_row(kernel, variant, entry, &problem, &config))
            kkt_text_printf(&values, "%s%lld", values.length > 0 ? ", " : "",
                            (long long)kkt_view_chunk(view, entry->kernel, entry->problem)->chunk);
    }
    kkt_text_printf(out, "    static const int kkt_standing[] = {%s};\n", kkt_text_get(&values));
    kkt_text_free(&values);
}

static const char nearest_row[] =
    "\n/* The row of exactly this problem; else (or where that is only predicted) of the nearest "
    "measured\n * one, by the rules of `kkttune lookup`; else of the nearest one. What is "
    "compiled "
    "in "
    "(data type,\n * gate, inner dimensions) and the number of value heads a key head must be a "
    "row's "
    "own, so that\n * its configuration and launch apply to the problem asked; a null pointer "
    "where no "
    "row is such.";
static const char own_row[] = "\n/* The row of exactly this problem, or a null pointer: what "
                              "applies to another one depends on "
                              "its sizes.\n * `kkttune lookup` chooses for any.";

static void add_lookup(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel,
                       const kkt_variant *variant) {
    const int64_t common = common_chunk(view, kernel, variant);
    kkt_text_add(out, kernel->sizes_decide ? own_row : nearest_row);
    if (kernel->chunk_param != NULL && common != 0)
        kkt_text_printf(out, " `kkt_chunk_wanted` 0: %lld.", (long long)common);
    else if (kernel->chunk_param != NULL)
        kkt_text_add(
            out, "\n * `kkt_chunk_wanted` 0: the chunk size at which the fastest pipeline takes "
                 "least time on the row's\n * own problem.");
    kkt_text_add(out, "\n * `*kkt_exact`, where it is not null, receives 1 or 0. */\n"
                      "KKTTUNE_FUNCTION const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *\n");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_find(");
    add_arguments(out, kernel);
    kkt_text_add(out, ", int *kkt_exact) {\n    int kkt_count = 0, kkt_best_tier = 0;\n    const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *kkt_rows = ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_table(&kkt_count);\n    const ");
    add_prefix(out, view, kernel);
    kkt_text_add(out, "_entry *kkt_best = 0;\n    double kkt_nearest = 0.0;\n");
    if (kernel->chunk_param != NULL && common == 0)
        add_standing(out, view, kernel, variant);
    add_choice(out, view, kernel, variant, common);
    kkt_text_add(out, "    if (kkt_exact)\n        *kkt_exact = kkt_best && kkt_nearest <= 1.0;\n"
                      "    return kkt_best;\n}\n");
}

static void add_kernel(kkt_text *out, const kkt_view *view, const kkt_kernel *kernel) {
    const kkt_entry *standing = kkt_header_standing(view, kernel->name);
    const kkt_kernel *found;
    const kkt_variant *variant;
    if (standing == NULL || !kkt_modelled_find(kernel->name, standing->style, &found, &variant))
        return;
    kkt_text_printf(out, "\n/* ---- %s: %s ---- */\n", kernel->name, kernel->summary);
    add_macros(out, view, kernel, variant, standing);
    add_hash(out, view, kernel, standing);
    add_struct(out, view, kernel, variant);
    add_table(out, view, kernel, variant, standing->style);
    add_lookup(out, view, kernel, variant);
}

/* The guard carries a version: headers of an older one bring their own. */
static const char *const common[] = {
    "#ifndef KKTTUNE_COMMON_2_H\n",
    "#define KKTTUNE_COMMON_2_H\n",
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
    "/* (larger / smaller size) to the power of `halves`; huge for what is no size. */\n",
    "KKTTUNE_FUNCTION double kkttune_apart(long long a, long long b, int halves) {\n",
    "    double power = 1.0;\n",
    "    if (a <= 0 || b <= 0)\n",
    "        return 1e300;\n",
    "    for (; halves > 0; halves--)\n",
    "        power *= a > b ? (double)a / (double)b : (double)b / (double)a;\n",
    "    return power;\n",
    "}\n",
    "#endif\n",
};

/* "KKTTUNE_SM90_FOR_H200": tells the headers of two devices apart, whose other names are the same.
 */
static void add_device_guard(kkt_text *out, const kkt_view *view) {
    kkt_text_add(out, "KKTTUNE_");
    add_upper(out, view->arch->name);
    kkt_text_add(out, "_FOR_");
    add_upper(out, view->device->name);
}

static kkt_status render(const kkt_view *view, kkt_text *out, kkt_error *err) {
    (void)err;
    kkt_text_printf(
        out, "/* Written by kkttune " KKT_VERSION " for %s, %s. Do not edit: export again. */\n",
        view->arch->name, view->device->full_name);
    if (view->made_up)
        kkt_text_add(
            out, "/* Times are fake: the fake backend made them up, nothing was measured. */\n");
    kkt_text_add(out, "#ifndef KKTTUNE_");
    add_upper(out, view->arch->name);
    kkt_text_add(out, "_H\n#define KKTTUNE_");
    add_upper(out, view->arch->name);
    kkt_text_add(out, "_H\n#define ");
    add_device_guard(out, view);
    kkt_text_add(out, "\n\n");
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
    kkt_text_add(out, "\n#elif !defined(");
    add_device_guard(out, view);
    kkt_text_printf(out,
                    ")\n#error \"a header of another device of %s is included already; include one "
                    "of them, for the names in both are the same\"\n#endif\n",
                    view->arch->name);
    return KKT_OK;
}

const kkt_report_type kkt_report_header = {
    .name = "header",
    .summary = "the same as a C header for other builds",
    .file_format = "kkttune_%s.h",
    .render = render,
};
