#include "cli/pool_open.h"

#include <stdio.h>

kkt_status kkt_pool_open(const char *cache, int workers, kkt_compile_pool **out, kkt_error *err) {
    const kkt_compile_pool_options options = {.cache = cache, .workers = workers};
    kkt_status status = kkt_compile_pool_open(&options, out, err);
    const char *note = status == KKT_OK ? kkt_compile_pool_cache_note(*out) : NULL;
    if (note != NULL)
        fprintf(stderr,
                "kkttune: what is compiled is not kept: %s; name a folder that can be written to "
                "with --cache\n",
                note);
    return status;
}
