/* The model against every result that ships with the program (db/reference): no time is below its
 * bound, shared memory is what was launched, registers are near what the compiler took. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "kernels/kernel.h"
#include "model/predict.h"
#include "model/style.h"

enum { ROWS_MAX = 20000, LINE_BYTES = 1 << 16 };

typedef struct figures {
    int count;
    double error[ROWS_MAX]; /* relative: predicted / found - 1 */
} figures;

typedef struct totals {
    const kkt_device *device;
    char hashes[4096][65]; /* of a provenance's kernel source */
    int rows, failed, stale;
    figures registers, times;
} totals;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(figures *to, double predicted, double found) {
    assert_true(to->count < ROWS_MAX);
    to->error[to->count++] = predicted / found - 1.0;
}

/* The value that a share of the errors is at most; they must be sorted. */
static double quantile(const figures *from, double share) {
    return from->error[(int)(share * (from->count - 1) + 0.5)];
}

static void print_distribution(figures *of, const char *what) {
    qsort(of->error, (size_t)of->count, sizeof *of->error, by_value);
    print_message("%s predicted / found - 1, %d rows: min %+.3f, 5 %% %+.3f, 25 %% %+.3f, median "
                  "%+.3f, 75 %% %+.3f, 95 %% %+.3f, max %+.3f\n",
                  what, of->count, quantile(of, 0), quantile(of, 0.05), quantile(of, 0.25),
                  quantile(of, 0.5), quantile(of, 0.75), quantile(of, 0.95), quantile(of, 1));
}

static const kkt_variant *variant_of(const kkt_json *line, const kkt_kernel **kernel) {
    kkt_error err;
    assert_int_equal(kkt_kernel_parse(kkt_json_string(line, "kernel"), kernel, &err), KKT_OK);
    const kkt_style *style = kkt_style_find(kkt_json_string(line, "style"));
    assert_non_null(style);
    return kkt_kernel_variant(*kernel, style->id);
}

static bool close_to(double a, double b) {
    return fabs(a - b) < 0.5;
}

/* One candidate; `line` has "build" and maybe "run". */
static void check_row(totals *t, const kkt_json *line) {
    const kkt_kernel *kernel;
    const kkt_variant *variant = variant_of(line, &kernel);
    const kkt_arch *arch = kkt_arch_find(t->device->arch);
    const kkt_json *build = kkt_json_get(line, "build"), *run = kkt_json_get(line, "run");
    const char *config_text = kkt_json_string(line, "config");
    double provenance = 0, time_us = 0, registers = 0, dynamic = 0, fixed = 0;
    kkt_values problem, config;
    kkt_error err;
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&kernel->problem, kkt_json_string(line, "problem"), &problem, NULL,
                         &err) != KKT_OK ||
        kkt_params_parse(&variant->params, config_text, &config, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    assert_true(kkt_json_real(line, "p", &provenance) && provenance < 4096);
    kkt_footprint footprint = {0};
    kkt_prediction p;
    variant->footprint(&problem, &config, arch, &footprint);
    kkt_predict(&footprint, arch, t->device, NULL, &p);
    t->rows++;
    if (run && kkt_json_real(run, "time_us", &time_us)) {
        if (!(p.lower_bound_us <= time_us)) {
            t->failed++;
            print_error("bound %.2f us is above the %.2f us of %s\n", p.lower_bound_us, time_us,
                        config_text);
        }
        add(&t->times, p.predicted_us, time_us);
    }
    char hash[65];
    kkt_variant_hash(variant, hash);
    if (strcmp(t->hashes[(int)provenance], hash) != 0) {
        t->stale++;
        return;
    }
    if (kkt_json_real(build, "dynamic_smem_bytes", &dynamic) &&
        kkt_json_real(build, "static_smem_bytes", &fixed) &&
        !close_to(dynamic + fixed, (double)p.smem_bytes)) {
        t->failed++;
        print_error("%lld B of shared memory predicted, %.0f B launched: %s\n",
                    (long long)p.smem_bytes, dynamic + fixed, config_text);
    }
    /* Tables that do not fit may leave the registers altogether: no number is expected then. */
    if (!p.spills && kkt_json_real(build, "registers", &registers))
        add(&t->registers, p.registers, registers);
}

static void check_line(totals *t, int *provenances, const kkt_json *line) {
    kkt_error err;
    if (kkt_json_string(line, "schema")) {
        assert_int_equal(kkt_device_parse(kkt_json_string(line, "device"), NULL, &t->device, &err),
                         KKT_OK);
    } else if (kkt_json_get(line, "provenance")) {
        const char *recorded = kkt_json_string(line, "kernel_hash");
        assert_true(*provenances < 4096);
        snprintf(t->hashes[(*provenances)++], sizeof t->hashes[0], "%s", recorded ? recorded : "");
    } else if (kkt_json_get(line, "config")) {
        check_row(t, line);
    }
}

static void check_file(totals *t, const char *path) {
    static char text[LINE_BYTES];
    FILE *file = fopen(path, "r");
    int provenances = 0;
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        kkt_error err;
        kkt_json *line = NULL;
        assert_int_equal(kkt_json_parse(text, strlen(text), path, &line, &err), KKT_OK);
        check_line(t, &provenances, line);
        kkt_json_close(line);
    }
    assert_int_equal(fclose(file), 0);
}

static void recorded_results_agree_with_the_model(void **state) {
    (void)state;
    glob_t found;
    totals *t = calloc(1, sizeof *t);
    assert_non_null(t);
    assert_int_equal(glob(KKT_TEST_DATA "/../db/reference/*.jsonl", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_file(t, found.gl_pathv[i]);
    globfree(&found);
    assert_true(t->times.count >= 100);
    print_distribution(&t->times, "time");
    if (t->stale > 0)
        print_message("%d of %d rows are of another kernel's source: bounds alone compared\n",
                      t->stale, t->rows);
    if (t->registers.count > 0) {
        print_distribution(&t->registers, "registers");
        /* Expected registers are a rough guide (docs/model.md): half of them within a fifth or so,
         * none much below a half or above seven quarters of what the compiler took. */
        assert_true(fabs(quantile(&t->registers, 0.5)) < 0.1);
        assert_true(quantile(&t->registers, 0.25) > -0.25 && quantile(&t->registers, 0.75) < 0.25);
        assert_true(quantile(&t->registers, 0) > -0.55 && quantile(&t->registers, 1) < 0.75);
    }
    assert_int_equal(t->failed, 0);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_results_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
