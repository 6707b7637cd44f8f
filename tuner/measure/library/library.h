/* Libraries whose routines are steps of a plan (kernels/library.h), opened with dlopen in the GPU
 * worker when the first such step comes, and kept until the process ends. A library is a const
 * descriptor, listed in library.c. */
#ifndef KKT_TUNER_MEASURE_LIBRARY_H
#define KKT_TUNER_MEASURE_LIBRARY_H

#include "tuner/measure/gpu.h"

/* An argument of a call as the step's arguments give it. */
typedef union kkt_call_value {
    CUdeviceptr pointer; /* of a tensor; 0: absent */
    int64_t integer;
} kkt_call_value;

typedef struct kkt_routine {
    const char *name; /* as steps name it */
    int args;
    /* Enqueues the call on the stream that the library was opened for. 0, or the library's own
     * status. */
    int (*call)(void *state, const kkt_call_value *args);
} kkt_routine;

typedef struct kkt_library_type {
    const char *name;
    /* Makes what all calls share (handles, a workspace); `version` receives "13.1.0".
     * KKT_ERR_MISSING in one line where the library is not there or does not work. */
    kkt_status (*open)(kkt_gpu *gpu, void **state, char *version, size_t size, kkt_error *err);
    const char *(*error_text)(const void *state, int status);
    const kkt_routine *routines;
    size_t routine_count;
} kkt_library_type;

struct kkt_library {
    const kkt_library_type *type;
    void *state; /* NULL: not there, for the reason in `error` */
    char version[KKT_LIBRARY_VERSION_BYTES];
    kkt_error error;
};

/* Opens a library unless that was tried before. KKT_ERR_MISSING: it is not there. `*out` lives as
 * long as `gpu`. */
kkt_status kkt_library_open(kkt_gpu *gpu, const char *name, const kkt_library **out,
                            kkt_error *err);
/* The routine of a step. False: `what` says what is missing. */
bool kkt_library_routine(kkt_gpu *gpu, const kkt_launch *step, const kkt_library **library,
                         const kkt_routine **routine, char *what, size_t size);
/* Makes the call. A failure leaves its words in gpu->library_error. */
CUresult kkt_library_call(kkt_gpu *gpu, const kkt_library *library, const kkt_routine *routine,
                          const kkt_call_value *args);
/* Forgets what was opened, which ends with the process. */
void kkt_libraries_close(kkt_gpu *gpu);

/* A function of a library: its name, and where in a struct its address goes. */
typedef struct kkt_library_symbol {
    const char *name;
    size_t at;
} kkt_library_symbol;

/* Opens the first of `sets` that is found whole: files that belong together, each in the order in
 * which they load ({"libcublasLt.so.13", "libcublas.so.13", NULL}); sets end with NULL. They are
 * looked for in KKTTUNE_CUDA, CUDA_HOME, CUDA_PATH, /usr/local/cuda (each: the folder itself,
 * lib64, lib, and where NVIDIA's wheels put them), then by the loader; all of a set in one of
 * these. `handles` has room for the longest. False: `looked` says where it was looked for. */
bool kkt_library_dlopen(const char *const *const *sets, void **handles, kkt_text *looked);
/* Resolves `count` functions into `out`; the name of the first that is missing, or NULL. */
const char *kkt_library_resolve(void *handle, const kkt_library_symbol *symbols, size_t count,
                                void *out);

extern const kkt_library_type kkt_library_cublas;

#endif
