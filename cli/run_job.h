/* The main job and `tune`: pick device and backend, run a session, write exports and reports. */
#ifndef KKT_CLI_RUN_JOB_H
#define KKT_CLI_RUN_JOB_H

#include "cli/command.h"
#include "kernels/pipeline.h"

/* Options of both commands. */
#define KKT_RUN_OPTIONS                                                                            \
    KKT_OPTION_ARCH, KKT_OPTION_DEVICE, KKT_OPTION_DB, KKT_OPTION_JSON,                            \
        {"--out", "DIR", "folder of exports and reports; default kkttune-out"},                    \
        {"--backend", "NAME",                                                                      \
         "cuda, replay or fake[:seed=N,fault=KIND]; default: a GPU of the "                        \
         "architecture, else replay"},                                                             \
        {"--budget", "evals=N,seconds=N", "limits of the whole run, reused results included"},     \
        {"--search", "NAME", "strategy: model, random, exhaustive"},                               \
        {"--seed", "N", "seed of inputs and of random strategies; default 1"},                     \
        {"--exhaustive", NULL, "every applicable configuration"},                                  \
        {"--counters", "finalists|all|none",                                                       \
         "read hardware counters after the timing; default finalists"},                            \
        {"--retry", NULL, "try again what failed in earlier runs"},                                \
        {"--revalidate", NULL, "no search: measure again what is stale, reuse what is fresh"},     \
        {"--objective", "time|energy|error", "what makes a result the best; default time"},        \
        {"--pareto", NULL, "list what no other result beats in time, energy and error at once"},   \
        {"--log", "FILE", "each candidate's times and outcome as it happens, as JSON lines"},      \
        {"--gpu", "N", "index of the GPU; default: CUDA's first visible"}, {                       \
        "--cache", "DIR", "cubin cache; default $XDG_CACHE_HOME/kkttune"                           \
    }

/* One kernel, or one pipeline with its kernels; both NULL: all. */
kkt_status kkt_run_job(const kkt_args *args, const kkt_kernel *kernel, const kkt_pipeline *pipeline,
                       kkt_error *err);

#endif
