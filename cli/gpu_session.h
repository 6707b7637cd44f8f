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
    const char *source_text; /* what is compiled instead of the embedded source; NULL: that */
} kkt_gpu_session;

/* Opens --backend (cuda where it is not given or not an option). The architecture is the GPU's;
 * --arch, where given, must agree; the fake backend needs it. KKT_ERR_ENVIRONMENT where there is
 * no GPU or no compiler for it. Close it in any case. */
kkt_status kkt_gpu_session_open(const kkt_args *args, kkt_gpu_session *out, kkt_error *err);
void kkt_gpu_session_close(kkt_gpu_session *session);

/* Queues one configuration for the compiler; `tag` comes back with it. Backends that need no cubin
 * queue nothing, nor does a variant that calls a library alone. */
kkt_status kkt_gpu_session_submit(kkt_gpu_session *session, const kkt_kernel *kernel,
                                  const kkt_variant *variant, const kkt_values *problem,
                                  const kkt_values *config, int64_t tag, kkt_error *err);
/* Waits for the next queued configuration, in the order in which they are done. What does not
 * compile is a result (ok false); no compiler at all is KKT_ERR_ENVIRONMENT. The caller frees the
 * result. */
kkt_status kkt_gpu_session_next(kkt_gpu_session *session, int64_t *tag, kkt_compile_result *out,
                                kkt_error *err);

#endif
