/* A candidate on the GPU: its tensors in device memory and its launch plan bound to them. */
#ifndef KKT_TUNER_MEASURE_PROGRAM_H
#define KKT_TUNER_MEASURE_PROGRAM_H

#include "tuner/measure/gpu.h"

typedef struct kkt_device_tensor {
    kkt_tensor tensor;
    CUdeviceptr data; /* 0: an optional input that is absent */
    size_t bytes;
} kkt_device_tensor;

/* Tensors in the order of kernel->tensors. */
typedef struct kkt_bindings {
    int count;
    kkt_device_tensor t[KKT_TENSORS_MAX];
} kkt_bindings;

/* Starts the list from the kernel's tensors and the variant's workspace, for `problem`; nothing is
 * bound yet. */
void kkt_bind_list(const kkt_measure_request *request, const kkt_values *problem,
                   kkt_bindings *out);
/* Puts the inputs into `slab`, guarded, and copies their values from `host`. */
CUresult kkt_bind_inputs(kkt_gpu *gpu, kkt_slab *slab, const kkt_host_tensors *host,
                         kkt_bindings *bindings);
/* Bytes of a slab that the outputs and the workspace take. */
size_t kkt_bind_outputs_need(const kkt_bindings *bindings);
/* Puts outputs and workspace into `slab`, which is reserved but for growing. */
CUresult kkt_bind_outputs(kkt_gpu *gpu, kkt_slab *slab, kkt_bindings *bindings);
/* Fills the slab of the outputs, guards included, with the poison. */
CUresult kkt_poison(kkt_gpu *gpu, const kkt_slab *slab);
/* `*damaged`: a tensor whose guard zones were written to, -1 for none. */
CUresult kkt_check_guards(kkt_gpu *gpu, const kkt_bindings *bindings, int *damaged);

#define KKT_MODULES_MAX KKT_MEMBERS_MAX /* a cubin a kernel of a pipeline */

/* The loaded code of a candidate, or of the kernels of a pipeline, and the plan for one problem. */
typedef struct kkt_program {
    int module_count;
    CUmodule modules[KKT_MODULES_MAX];
    kkt_plan plan;
    CUfunction functions[KKT_LAUNCHES_MAX];         /* of a library's step: NULL, ... */
    const kkt_library *libraries[KKT_LAUNCHES_MAX]; /* ... and these two are set */
    const struct kkt_routine *routines[KKT_LAUNCHES_MAX];
    bool overlapped; /* launches that wait by themselves begin while the one before them ends */
} kkt_program;

/* Loads a cubin, beside what is loaded already: `out` is zero at first. NULL: there is none, for
 * the plan calls a library alone. */
CUresult kkt_program_load(kkt_gpu *gpu, const void *cubin, kkt_program *out);
void kkt_program_unload(kkt_gpu *gpu, kkt_program *program);
/* Makes the plan and sets what its functions need (shared memory, carve-out, cluster). `what`
 * names the entry and the step that failed. */
CUresult kkt_program_prepare(kkt_gpu *gpu, kkt_program *program, const kkt_measure_request *request,
                             const kkt_values *problem, char *what, size_t size);
/* Appends launches of the module that was loaded last; what they need of it is set. CUresult's
 * INVALID_VALUE with `what` where there are more than a program can hold. */
CUresult kkt_program_append(kkt_gpu *gpu, kkt_program *program, const kkt_plan *plan, char *what,
                            size_t size);
/* Which steps of a plan. */
typedef enum kkt_program_steps {
    KKT_STEPS_BEFORE, /* untimed, before the first timed one */
    KKT_STEPS_TIMED,
    KKT_STEPS_ALL
} kkt_program_steps;

/* Whether there is anything to run before each timed run. */
bool kkt_program_prepares(const kkt_program *program);
/* Launches steps of the plan (asynchronous). */
CUresult kkt_program_launch(kkt_gpu *gpu, const kkt_program *program, const kkt_bindings *bindings,
                            kkt_program_steps steps);
/* The same steps as a graph; launched with driver.graph_launch. */
CUresult kkt_program_graph(kkt_gpu *gpu, const kkt_program *program, const kkt_bindings *bindings,
                           kkt_program_steps steps, CUgraphExec *out);

#endif
