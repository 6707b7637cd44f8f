/* The one list of pipelines, in the order they are shown. Adding a pipeline adds its row here;
 * docs/adding-a-pipeline.md walks through it. */
#include "kernels/pipeline.h"

/* The default problems of the kernels, then shapes on which public kernels were timed (twelve in
 * all, since three of those are defaults): docs/benchmarks.md. bf16, dk = dv = 128, gated. */
static const char *const gdn_problems[] = {
    "tokens=32768,heads_k=16,heads_v=64",
    "tokens=8192,heads_k=16,heads_v=64",
    "tokens=8192,heads_k=16,heads_v=32",
    "tokens=32768,heads_k=32,heads_v=32",
    "tokens=32768,heads_k=2,heads_v=8",
    "tokens=32768,heads_k=8,heads_v=32",
    "tokens=32768,sequences=4,heads_k=8,heads_v=32",
    "tokens=8192,sequences=8,heads_k=16,heads_v=64",
    "tokens=8192,sequences=4,heads_k=16,heads_v=64",
    "tokens=4096,heads_k=16,heads_v=32",
    "tokens=8192,heads_k=32,heads_v=32",
    "tokens=16384,heads_k=4,heads_v=16",
    NULL,
};
enum { GDN_MAIN_PROBLEMS = 5 };

static const kkt_pipeline gdn_fused = {
    .name = "gdn_fused",
    .summary = "Gated DeltaNet forward in one kernel; T and the state stay on chip",
    .whole = "gdn_fwd",
    .members = {"gdn_fwd"},
    .problems = gdn_problems,
    .main_problems = GDN_MAIN_PROBLEMS,
};

static const kkt_pipeline gdn_t = {
    .name = "gdn_t",
    .summary = "Gated DeltaNet forward with T through HBM; the state stays on chip",
    .whole = "gdn_fwd",
    .members = {"kkt_solve", "gdn_fwd_t"},
    .form_key = "t_form",
    .problems = gdn_problems,
    .main_problems = GDN_MAIN_PROBLEMS,
};

static const kkt_pipeline gdn_hbm = {
    .name = "gdn_hbm",
    .summary = "Gated DeltaNet forward with T, W, U and the state of every chunk through HBM",
    .whole = "gdn_fwd",
    .members = {"kkt_solve", "gdn_wu", "gdn_state", "gdn_output"},
    .form_key = "t_form",
    .problems = gdn_problems,
    .main_problems = GDN_MAIN_PROBLEMS,
};

static const kkt_pipeline *const pipelines[] = {&gdn_fused, &gdn_t, &gdn_hbm};

const kkt_pipeline *const *kkt_pipelines(size_t *count) {
    *count = sizeof pipelines / sizeof pipelines[0];
    return pipelines;
}
