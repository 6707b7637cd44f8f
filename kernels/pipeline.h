/* Pipelines: kernels that run one after the other on one problem and share a chunk size. A chunk
 * size serves a consumer only where its producer used the same, so it is chosen over the whole
 * pipeline. Pipelines are const descriptors, listed once in pipelines.c; docs/adding-a-pipeline.md
 * walks through one. */
#ifndef KKT_KERNELS_PIPELINE_H
#define KKT_KERNELS_PIPELINE_H

#include "kernels/kernel.h"

#define KKT_MEMBERS_MAX 4

typedef struct kkt_pipeline {
    const char *name;    /* "gdn_t" */
    const char *summary; /* one line */
    /* The kernel that computes the same in one launch: its problem keys, inputs, reference and
     * chunk sizes are the pipeline's. */
    const char *whole;
    const char *members[KKT_MEMBERS_MAX + 1]; /* kernels in the order they run, NULL-terminated */
    /* A problem key that says how members write what other members read ("t_form"); every value is
     * a form of the pipeline, and the best one counts. NULL: there is one form. */
    const char *form_key;
    /* Texts "k=v,..." of the whole kernel's keys, NULL-terminated, the default problem first. The
     * main job times the first `main_problems`, `tune` all of them. */
    const char *const *problems;
    size_t main_problems;
} kkt_pipeline;

/* A pipeline whose kernels are all known. Plain data. */
typedef struct kkt_pipeline_kernels {
    const kkt_pipeline *pipeline;
    const kkt_kernel *whole;
    const kkt_kernel *members[KKT_MEMBERS_MAX];
    size_t count;
    size_t forms;                    /* at least 1 */
    bool device_code;                /* every member has a variant that can be compiled */
    int64_t chunks[KKT_CHOICES_MAX]; /* that every member lists, ascending */
    size_t chunk_count;
} kkt_pipeline_kernels;

/* The list. */
const kkt_pipeline *const *kkt_pipelines(size_t *count);
const kkt_pipeline *kkt_pipeline_find(const char *name); /* or NULL */
/* Whether a kernel of that name is a member. */
bool kkt_pipeline_has(const kkt_pipeline *pipeline, const char *kernel);

/* Looks the kernels up. False where one is not registered; `*missing` (may be NULL) is its name. */
bool kkt_pipeline_open(const kkt_pipeline *pipeline, kkt_pipeline_kernels *out,
                       const char **missing);
/* A member's problem: the pipeline's, restricted to the keys it has; the form key has the value of
 * `form`, and keys that the pipeline does not know their default. */
void kkt_pipeline_member_problem(const kkt_pipeline_kernels *p, size_t member,
                                 const kkt_values *problem, size_t form, kkt_values *out);
/* "t_beta"; "" where there is one form. `buffer` is used for integers. */
const char *kkt_pipeline_form_name(const kkt_pipeline_kernels *p, size_t form, char buffer[24]);
/* Whether a member's problem is that of the pipeline, whatever its form. */
bool kkt_pipeline_serves(const kkt_pipeline_kernels *p, size_t member,
                         const kkt_values *member_problem, const kkt_values *problem);

#endif
