/* What takes the time, by the model and by hardware counters, for the products: every row of the
 * recordings (tests/golden, and those that ship) that has a time and counters. The model has to
 * name the resource that is busiest, or one as good as that busy; where none is busy, latency. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "kernels/kernel.h"
#include "model/predict.h"
#include "model/style.h"

enum { LINE_BYTES = 1 << 16 };

/* An H200: what reading reaches, and its SMs' cycles in a microsecond (docs/model.md). */
static const double read_bytes_us = 4.70e6, cycles_us = 132 * 1980.0;
/* An empty launch, timed alike. */
static const double launch_us = 2.8;

/* Shares of what each resource could do in that time. */
typedef struct shares {
    double hbm, tensor, shared, issue;
} shares;

typedef struct tally {
    int rows, right, wrong;
    int named[KKT_LIMIT_COUNT]; /* right ones, by what was named */
    int styles[2][8][2];        /* of gemm and gemv, by style: rows, right ones */
} tally;

static double counter(const kkt_json *run, const char *name) {
    for (const kkt_json *one = kkt_json_first(kkt_json_get(run, "counters")); one;
         one = kkt_json_next(one)) {
        double value = 0;
        const char *found = kkt_json_string(one, "name");
        if (found && strcmp(found, name) == 0 && kkt_json_real(one, "value", &value))
            return value;
    }
    return NAN;
}

/* False where the row was not counted. */
static bool shares_of(const kkt_json *run, shares *out) {
    double time_us = 0;
    if (!run || !kkt_json_real(run, "time_us", &time_us) || !(time_us > launch_us))
        return false;
    const double busy_us = time_us - launch_us;
    out->hbm = (counter(run, "dram_read_bytes") + counter(run, "dram_write_bytes")) /
               (busy_us * read_bytes_us);
    out->tensor = counter(run, "tensor_share") / 100;
    out->shared = (counter(run, "smem_load_wavefronts") + counter(run, "smem_store_wavefronts")) /
                  (busy_us * cycles_us);
    out->issue = counter(run, "instructions") / (4 * busy_us * cycles_us);
    return isfinite(out->hbm + out->tensor + out->shared + out->issue);
}

/* From here on a resource is what takes the time, as far as one does. */
#define BUSY 0.6

static double share_named(const shares *s, kkt_limiter limiter) {
    const double by_limiter[KKT_LIMIT_COUNT] = {[KKT_LIMIT_HBM] = s->hbm,
                                                [KKT_LIMIT_TENSOR] = s->tensor,
                                                [KKT_LIMIT_SHARED_BANDWIDTH] = s->shared,
                                                [KKT_LIMIT_ISSUE] = s->issue};
    return by_limiter[limiter];
}

static double busiest(const shares *s) {
    return fmax(fmax(s->hbm, s->tensor), fmax(s->shared, s->issue));
}

/* A resource is as good as the busiest within a tenth. What the model puts down to waiting, or to
 * L1's lookups, which no counter tells, is right where nothing that is counted is busy. */
static bool named_right(const shares *s, const kkt_footprint *fp, kkt_limiter limiter) {
    const bool lookups =
        limiter == KKT_LIMIT_SHARED_BANDWIDTH && fp->global_wavefronts > fp->smem_wavefronts;
    if (limiter == KKT_LIMIT_LATENCY || limiter == KKT_LIMIT_L2 || lookups)
        return busiest(s) < BUSY;
    return share_named(s, limiter) > busiest(s) - 0.1;
}

static void check_row(tally *t, const char *device_name, const kkt_json *line) {
    const char *kernel_name = kkt_json_string(line, "kernel");
    const kkt_json *run = kkt_json_get(line, "run");
    const kkt_style *style = kkt_style_find(kkt_json_string(line, "style"));
    const kkt_kernel *kernel = NULL;
    const kkt_device *device = NULL;
    kkt_values problem, config;
    kkt_error err;
    shares s;
    if (!kernel_name || (strcmp(kernel_name, "gemm") != 0 && strcmp(kernel_name, "gemv") != 0) ||
        !style || style->id == KKT_STYLE_LIBRARY || !shares_of(run, &s))
        return;
    assert_int_equal(kkt_kernel_parse(kernel_name, &kernel, &err), KKT_OK);
    assert_int_equal(kkt_device_parse(device_name, NULL, &device, &err), KKT_OK);
    const kkt_variant *variant = kkt_kernel_variant(kernel, style->id);
    const kkt_arch *arch = kkt_arch_find(device->arch);
    assert_non_null(variant);
    kkt_params_defaults(&kernel->problem, &problem);
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&kernel->problem, kkt_json_string(line, "problem"), &problem, NULL,
                         &err) != KKT_OK ||
        kkt_params_parse(&variant->params, kkt_json_string(line, "config"), &config, NULL, &err) !=
            KKT_OK)
        fail_msg("%s", err.message);
    kkt_footprint fp = {0};
    kkt_prediction p;
    variant->footprint(&problem, &config, arch, &fp);
    kkt_predict(&fp, arch, device, NULL, &p);
    int *of_style = t->styles[strcmp(kernel_name, "gemv") == 0][style->id];
    t->rows++;
    of_style[0]++;
    if (named_right(&s, &fp, p.limiter)) {
        t->right++;
        of_style[1]++;
        t->named[p.limiter]++;
        return;
    }
    t->wrong++;
    print_message("%s %s: %s by the model; busy: memory %.0f %%, tensor cores %.0f %%, shared "
                  "memory %.0f %%, issue %.0f %%: %s %s\n",
                  kernel_name, style->name, kkt_limiter_name(p.limiter), 100 * s.hbm,
                  100 * s.tensor, 100 * s.shared, 100 * s.issue, kkt_json_string(line, "problem"),
                  kkt_json_string(line, "config"));
}

static void check_file(tally *t, const char *path) {
    static char text[LINE_BYTES];
    char device[64] = "h200"; /* of lines without a head */
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    while (fgets(text, sizeof text, file)) {
        kkt_json *line = NULL;
        assert_int_equal(kkt_json_parse(text, strlen(text), path, &line, NULL), KKT_OK);
        if (kkt_json_string(line, "schema"))
            snprintf(device, sizeof device, "%s", kkt_json_string(line, "device"));
        else
            check_row(t, device, line);
        kkt_json_close(line);
    }
    assert_int_equal(fclose(file), 0);
}

static void print_tally(const tally *t, const char *what) {
    print_message("%s: %d rows, %d named right:", what, t->rows, t->right);
    for (int i = 0; i < KKT_LIMIT_COUNT; i++)
        if (t->named[i] > 0)
            print_message(" %s %d", kkt_limiter_name((kkt_limiter)i), t->named[i]);
    print_message("\n");
    for (int i = 0; i < 16; i++)
        if (t->styles[i / 8][i % 8][0] > 0)
            print_message("| %s, %s | %d | %d |\n", i / 8 ? "gemv" : "gemm",
                          kkt_style_get((kkt_style_id)(i % 8))->name, t->styles[i / 8][i % 8][0],
                          t->styles[i / 8][i % 8][1]);
}

static void recorded_rows_agree(void **state) {
    (void)state;
    tally shipped = {0};
    glob_t found;
    assert_int_equal(glob(KKT_TEST_DATA "/../db/reference/*.jsonl", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_file(&shipped, found.gl_pathv[i]);
    globfree(&found);
    print_tally(&shipped, "recordings");
    assert_true(shipped.right >= 0.6 * shipped.rows);
}

static void check_text(tally *t, const char *text) {
    kkt_json *line = NULL;
    assert_int_equal(kkt_json_parse(text, strlen(text), "row", &line, NULL), KKT_OK);
    check_row(t, "h200", line);
    kkt_json_close(line);
}

#define ROW(US, READ, TENSOR, INSTRUCTIONS)                                                        \
    "{\"kernel\":\"gemv\",\"style\":\"fragment\",\"problem\":\"m=16384,k=16384\",\"config\":\"\"," \
    "\"run\":{\"time_us\":" US ",\"counters\":[{\"name\":\"dram_read_bytes\",\"value\":" READ "}," \
    "{\"name\":\"dram_write_bytes\",\"value\":0},{\"name\":\"tensor_share\",\"value\":" TENSOR     \
    "},"                                                                                           \
    "{\"name\":\"smem_load_wavefronts\",\"value\":0},{\"name\":\"smem_store_wavefronts\","         \
    "\"value\":0},"                                                                                \
    "{\"name\":\"instructions\",\"value\":" INSTRUCTIONS "}]}}"

/* The model says memory; the counters say so too, or the opposite, or are incomplete. */
static void disagreement_is_seen(void **state) {
    (void)state;
    tally t = {0};
    check_text(&t, ROW("120", "537e6", "0", "20e6"));
    assert_true(t.rows == 1 && t.right == 1 && t.named[KKT_LIMIT_HBM] == 1);
    check_text(&t, ROW("120", "237e6", "90", "20e6")); /* tensor cores are busiest */
    check_text(&t, ROW("120", "237e6", "0", "100e6")); /* issue slots are */
    assert_true(t.rows == 3 && t.wrong == 2);
    check_text(&t, "{\"kernel\":\"gemv\",\"style\":\"fragment\",\"problem\":\"\",\"config\":\"\","
                   "\"run\":{\"time_us\":12}}");
    assert_int_equal(t.rows, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disagreement_is_seen),
        cmocka_unit_test(recorded_rows_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
