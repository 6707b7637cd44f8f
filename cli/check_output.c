#include "cli/check_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/progress.h"
#include "tuner/engine/gate.h"

enum { SHOWN_PARTS = 2048 }; /* fewer are judged in a moment */

static void show(void *context, int64_t done, int64_t total) {
    if (total > SHOWN_PARTS)
        kkt_progress_show(context, "reference", done, total, "");
}

kkt_status kkt_check_run(const kkt_data_check_request *request, kkt_data_check *out,
                         kkt_error *err) {
    kkt_progress progress;
    kkt_data_check_request shown = *request;
    shown.progress = show;
    shown.context = &progress;
    kkt_progress_open(&progress);
    kkt_status status = kkt_data_check_run(&shown, out, err);
    kkt_progress_close(&progress);
    return status;
}

kkt_json *kkt_check_json(const kkt_data_check *check, const char *kernel, const char *problem,
                         const char *config) {
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.check/1");
    kkt_json_add_string(root, "kernel", kernel);
    if (problem)
        kkt_json_add_string(root, "problem", problem);
    if (config)
        kkt_json_add_string(root, "config", config);
    kkt_json_add_string(root, "verdict", check->verdict);
    if (check->advice[0])
        kkt_json_add_string(root, "advice", check->advice);
    /* Where nothing was judged it is the reference's own rounding, and would read as a verdict. */
    kkt_json_add_real(root, "rel_fro", check->compared ? kkt_score_rel_fro(&check->score) : NAN);
    kkt_json_add_real(root, "max_abs", check->score.max_abs);
    kkt_json_add_real(root, "tolerance", check->tolerance);
    kkt_json_add_real(root, "rounding", check->rounding);
    kkt_json_add_real(root, "growth", check->score.growth);
    kkt_json_add_real(root, "growth_bound", check->growth_bound);
    kkt_json_add_real(root, "cond_estimate", check->cond_estimate);
    kkt_json_add_bool(root, "compared", check->compared);
    kkt_json_add_int(root, "elements", check->score.elements);
    kkt_json_add_int(root, "inexact", check->score.inexact);
    kkt_json_add_int(root, "not_finite", check->score.not_finite);
    kkt_json_add_int(root, "parts", check->parts);
    kkt_json_add_int(root, "parts_checked", check->parts_checked);
    return root;
}

void kkt_check_print(const kkt_data_check *check, const char *result) {
    const kkt_score *score = &check->score;
    const bool ill = strcmp(check->verdict, "ill_conditioned") == 0;
    if (check->compared || ill)
        printf("verdict        %s\n", check->verdict);
    if (check->advice[0])
        printf("why            %s\n", check->advice);
    if (check->compared) {
        printf("rel_fro        %.3e (tolerance %.1e)\n", kkt_score_rel_fro(score),
               check->tolerance);
        printf("max_abs        %.3e\n", score->max_abs);
    } else {
        printf("compared       nothing to judge: no %s.npy among the inputs, no --compare\n",
               result);
    }
    printf("growth         %.4g", score->growth);
    if (isfinite(check->growth_bound))
        printf(" (at most %.4g)", check->growth_bound);
    printf("\n");
    if (!isnan(check->cond_estimate)) /* a family may know of none */
        printf("cond_estimate  %.3g\n", check->cond_estimate);
    printf("rounding       %.3g\n", check->rounding);
    if (check->compared && score->inexact)
        printf("inexact        %" PRId64 " of %" PRId64 " elements\n", score->inexact,
               score->elements);
    if (score->not_finite)
        printf("not_finite     %" PRId64 " of %" PRId64 " elements\n", score->not_finite,
               score->elements);
    if (check->parts_checked < check->parts)
        printf("checked        %" PRId64 " of %" PRId64 " chunks and heads\n", check->parts_checked,
               check->parts);
}

kkt_status kkt_check_status(const kkt_data_check *check, const kkt_host_tensors *tensors,
                            const char *what, kkt_error *err) {
    const kkt_score *score = &check->score;
    if (!check->compared || strcmp(check->verdict, "wrong_result") != 0)
        return KKT_OK;
    char finding[160] = "", element[96];
    kkt_score_right(score, check->tolerance, finding, sizeof finding);
    const bool first = score->not_finite || score->inexact;
    const kkt_misfit *misfit = score->not_finite ? &score->first_not_finite
                               : score->inexact  ? &score->first_inexact
                                                 : &score->worst;
    kkt_tensor_element_name(&tensors->t[misfit->tensor].tensor, misfit->at, element,
                            sizeof element);
    return kkt_fail(err, KKT_ERR_MISSING, 0, "%s is wrong: %s; %s is %s, which is %.9g, not %.9g",
                    what, finding, first ? "the first" : "the largest error", element,
                    misfit->given, misfit->right);
}
