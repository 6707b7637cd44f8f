#include "cli/kernel_help.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/kernel.h"
#include "model/style.h"

/* Whether an option of that name takes "k=v,...": the --config of a look-up is a file. */
static bool takes(const kkt_command *command, const char *name) {
    for (size_t i = 0; i < command->option_count; i++) {
        const kkt_option *option = &command->options[i];
        if (strcmp(option->name, name) == 0)
            return option->value && strchr(option->value, '=');
    }
    return false;
}

static void print_values(const kkt_param *param, FILE *out) {
    char buffer[24];
    if (param->count == 0)
        fprintf(out, "%" PRId64 " to %" PRId64, param->low, param->high);
    for (size_t i = 0; i < param->count; i++)
        fprintf(out, "%s%s", i ? ", " : "", kkt_param_value_text(param, param->values[i], buffer));
    fprintf(out, "; default %s", kkt_param_value_text(param, param->fallback, buffer));
}

/* "; has an effect where routine is lt_matmul" */
static void print_condition(const kkt_param_table *table, const kkt_param *param, FILE *out) {
    if (param->depends_on == 0)
        return;
    const kkt_param *on = &table->params[param->depends_on - 1];
    const char *before = " is ";
    char buffer[24];
    fprintf(out, "; has an effect where %s", on->name);
    for (size_t i = 0; i < on->count; i++) {
        const int64_t value = on->values[i];
        if (value < 0 || value > 63 || (param->depends_values >> value & 1) == 0)
            continue;
        fprintf(out, "%s%s", before, kkt_param_value_text(on, value, buffer));
        before = " or ";
    }
}

static void print_table(const kkt_param_table *table, FILE *out) {
    int width = 0;
    for (size_t i = 0; i < table->count; i++)
        if ((int)strlen(table->params[i].name) > width)
            width = (int)strlen(table->params[i].name);
    for (size_t i = 0; i < table->count; i++) {
        const kkt_param *param = &table->params[i];
        fprintf(out, "  %-*s  %s\n  %*s    ", width, param->name, param->help, width, "");
        print_values(param, out);
        print_condition(table, param, out);
        fputc('\n', out);
    }
}

/* The files that a command reads and writes, by a default problem's shapes. */
static void print_tensors(const kkt_kernel *kernel, FILE *out) {
    kkt_tensor tensors[KKT_TENSORS_MAX] = {0}; /* what a kernel does not set is 0 */
    kkt_values problem, config;
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&kernel->variants[0]->params, &config);
    const int count = kernel->tensors ? kernel->tensors(&problem, &config, tensors) : 0;
    if (count > 0)
        fprintf(out, "\nfiles of %s (shapes of the default problem):\n", kernel->name);
    for (int i = 0; i < count; i++) {
        const kkt_tensor *t = &tensors[i];
        if (t->role == KKT_TENSOR_WORKSPACE)
            continue;
        fprintf(out, "  %s.npy  %s%s, %s [", t->name,
                t->role == KKT_TENSOR_OUTPUT ? "output" : "input",
                t->optional ? " that may be left out" : "", kkt_dtype_name(t->dtype));
        for (int d = 0; d < t->rank; d++)
            fprintf(out, "%s%" PRId64, d ? ", " : "", t->dims[d]);
        fprintf(out, "]\n");
    }
}

static bool has_option(const kkt_command *command, const char *name) {
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return true;
    return false;
}

void kkt_kernel_help(const kkt_command *command, int argc, char *const *argv, FILE *out) {
    const kkt_kernel *kernel = NULL;
    for (int i = 0; i < argc && !kernel; i++)
        if (kkt_kernel_parse(argv[i], &kernel, NULL) != KKT_OK)
            kernel = NULL;
    if (!kernel || !takes(command, "--problem"))
        return;
    if (has_option(command, "--in"))
        print_tensors(kernel, out);
    fprintf(out, "\nproblem keys of %s:\n", kernel->name);
    print_table(&kernel->problem, out);
    for (size_t i = 0; i < kernel->variant_count && takes(command, "--config"); i++) {
        fprintf(out, "\nparameters of %s, style %s:\n", kernel->name,
                kkt_style_get(kernel->variants[i]->style)->name);
        print_table(&kernel->variants[i]->params, out);
    }
}
