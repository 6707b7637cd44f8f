/* What the model picks for gemm without measuring, against what was measured on an H200: of large
 * square problems its pick must be within a tenth of the best. Skipped where the recording that
 * ships has no such problem, or not the pick, of which it can say nothing then. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "db/recording.h"
#include "kernels/kernel.h"
#include "model/predict.h"
#include "tuner/engine/space.h"

#define RECORDED KKT_TEST_DATA "/../db/reference/sm90_h200.jsonl"
#define WITHIN 1.10
#define TIED 1.02 /* a measured configuration stands for the pick if it is predicted as close */

typedef struct picked {
    const kkt_kernel *kernel;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_values problem;
    const char *text;
    size_t rows;
    double best_us;                   /* measured */
    double predicted_us, measured_us; /* of the measured one with the smallest prediction */
} picked;

static kkt_status visit(void *context, const kkt_result *result, kkt_error *err) {
    picked *p = context;
    const kkt_identity *id = &result->id;
    (void)err;
    if (result->outcome != KKT_OUTCOME_OK || strcmp(id->kernel, "gemm") != 0 ||
        strcmp(id->problem, p->text) != 0)
        return KKT_OK;
    const kkt_style *style = kkt_style_find(id->style);
    const kkt_variant *variant = style ? kkt_kernel_variant(p->kernel, style->id) : NULL;
    kkt_values config;
    kkt_footprint footprint;
    kkt_prediction prediction;
    char reason[200];
    if (!variant || !variant->source || variant->style == KKT_STYLE_LIBRARY)
        return KKT_OK;
    kkt_params_defaults(&variant->params, &config);
    if (kkt_params_parse(&variant->params, id->config, &config, NULL, NULL) != KKT_OK ||
        !variant->applicable(&p->problem, &config, p->arch, reason, sizeof reason))
        return KKT_OK; /* of an older space */
    memset(&footprint, 0, sizeof footprint);
    variant->footprint(&p->problem, &config, p->arch, &footprint);
    kkt_predict(&footprint, p->arch, p->device, NULL, &prediction);
    p->rows++;
    p->best_us = fmin(p->best_us, result->run.time_us);
    if (prediction.predicted_us < p->predicted_us) {
        p->predicted_us = prediction.predicted_us;
        p->measured_us = result->run.time_us;
    }
    return KKT_OK;
}

/* The smallest prediction over the spaces of all write styles. */
static double least_prediction(const picked *p) {
    double least = (double)INFINITY;
    for (size_t v = 0; v < p->kernel->variant_count; v++) {
        const kkt_variant *variant = p->kernel->variants[v];
        kkt_space *space = NULL;
        kkt_point point;
        if (!variant->source || variant->style == KKT_STYLE_LIBRARY)
            continue;
        assert_int_equal(
            kkt_space_open(p->kernel, variant, &p->problem, p->arch, p->device, "", &space, NULL),
            KKT_OK);
        while (kkt_space_next(space, NULL, NULL, &point))
            least = fmin(least, point.prediction.predicted_us);
        kkt_space_close(space);
    }
    return least;
}

static void check_pick(const char *problem) {
    picked p = {.arch = kkt_arch_find("sm90"),
                .best_us = (double)INFINITY,
                .predicted_us = (double)INFINITY};
    kkt_text canonical = {0};
    kkt_db *db = NULL;
    int64_t rows = 0;
    assert_int_equal(kkt_kernel_parse("gemm", &p.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_device_parse("h200", p.arch, &p.device, NULL), KKT_OK);
    kkt_params_defaults(&p.kernel->problem, &p.problem);
    assert_int_equal(kkt_params_parse(&p.kernel->problem, problem, &p.problem, NULL, NULL), KKT_OK);
    kkt_params_format(&p.kernel->problem, &p.problem, &canonical);
    p.text = kkt_text_get(&canonical);
    assert_int_equal(kkt_db_open(":memory:", KKT_DB_WRITE, &db, NULL), KKT_OK);
    assert_int_equal(kkt_recording_import(db, RECORDED, &rows, NULL), KKT_OK);
    assert_int_equal(kkt_db_results(db, NULL, NULL, visit, &p, NULL), KKT_OK);
    kkt_db_close(db);
    kkt_text_free(&canonical);
    if (p.rows == 0) {
        print_message("skipped: nothing of gemm, %s, is recorded\n", problem);
        skip();
    }
    const double least = least_prediction(&p);
    print_message("%s: predicted least %.1f us; of %zu measured: predicted least %.1f us, measured "
                  "%.1f us, best %.1f us\n",
                  problem, least, p.rows, p.predicted_us, p.measured_us, p.best_us);
    if (p.predicted_us > least * TIED) {
        print_message("skipped: the pick was not measured, nor one predicted as close\n");
        skip();
    }
    assert_true(p.measured_us <= p.best_us * WITHIN);
}

static void the_pick_at_4096_is_near_the_best(void **state) {
    (void)state;
    check_pick("m=4096,n=4096,k=4096");
}

static void the_pick_at_8192_is_near_the_best(void **state) {
    (void)state;
    check_pick("m=8192,n=8192,k=8192");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pick_at_4096_is_near_the_best),
        cmocka_unit_test(the_pick_at_8192_is_near_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
