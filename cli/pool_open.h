/* The compile pool as commands open it. */
#ifndef KKT_CLI_POOL_OPEN_H
#define KKT_CLI_POOL_OPEN_H

#include "tuner/compile/pool.h"

/* With `cache` as --cache gives it (NULL: the default) and `workers` as in the pool's options. A
 * cache that keeps nothing is one warning on standard error. */
kkt_status kkt_pool_open(const char *cache, int workers, kkt_compile_pool **out, kkt_error *err);

#endif
