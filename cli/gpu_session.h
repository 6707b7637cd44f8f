/* A GPU (or the fake backend) and the compiler for it: what `run` and `verify` hold open. */
#ifndef KKT_CLI_GPU_SESSION_H
#define KKT_CLI_GPU_SESSION_H

#include "cli/command.h"
#include "tuner/compile/pool.h"
#include "tuner/measure/backend.h"

#define KKT_GPU_OPTIONS                                                                            \
    {"--gpu", "N", "index of the GPU; default: CUDA's first visible"}, {                           \
        "--cache", "DIR", "cubin cache; default $XDG_CACHE_HOME/kkttune"                           \
    }

typedef struct kkt_gpu_session {
    const kkt_backend_type *type;
    kkt_backend *backend;
    const kkt_arch *arch;
    const kkt_device *device;
    kkt_compile_pool *pool;
} kkt_gpu_session;

/* Opens --backend (cuda where it is not given or not an option). The architecture is the GPU's;
 * --arch, where given, must agree; the fake backend needs it. KKT_ERR_ENVIRONMENT where there is
 * no GPU or no compiler for it. Close it in any case. */
kkt_status kkt_gpu_session_open(const kkt_args *args, kkt_gpu_session *out, kkt_error *err);
void kkt_gpu_session_close(kkt_gpu_session *session);

/* Compiles one configuration (from the cache where it can be). KKT_ERR_MISSING with the
 * compiler's words where it does not compile. Backends that need no cubin get none. */
kkt_status kkt_gpu_session_compile(kkt_gpu_session *session, const kkt_kernel *kernel,
                                   const kkt_variant *variant, const kkt_values *problem,
                                   const kkt_values *config, kkt_compile_result *out,
                                   kkt_error *err);

#endif
