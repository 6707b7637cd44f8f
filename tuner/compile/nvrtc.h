/* NVRTC opened at run time: the few functions used, and where the library was found. */
#ifndef KKT_TUNER_NVRTC_H
#define KKT_TUNER_NVRTC_H

#include <nvrtc.h>

#include "base/error.h"

typedef struct kkt_nvrtc {
    void *library, *builtins; /* dlopen handles; `builtins` may be NULL */
    int major, minor;
    nvrtcResult (*version)(int *major, int *minor);
    nvrtcResult (*create)(nvrtcProgram *program, const char *source, const char *name, int headers,
                          const char *const *contents, const char *const *names);
    nvrtcResult (*compile)(nvrtcProgram program, int count, const char *const *options);
    nvrtcResult (*cubin_size)(nvrtcProgram program, size_t *size);
    nvrtcResult (*cubin)(nvrtcProgram program, char *cubin);
    nvrtcResult (*log_size)(nvrtcProgram program, size_t *size);
    nvrtcResult (*log)(nvrtcProgram program, char *log);
    nvrtcResult (*destroy)(nvrtcProgram *program);
    const char *(*error_string)(nvrtcResult result);
} kkt_nvrtc;

/* Search order: compile.h. KKT_ERR_ENVIRONMENT says where it looked and what it found there. */
kkt_status kkt_nvrtc_open(kkt_nvrtc *out, kkt_error *err);
void kkt_nvrtc_close(kkt_nvrtc *nvrtc);

#endif
