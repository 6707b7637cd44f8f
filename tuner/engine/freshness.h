/* What a stored result must match to be fresh: the sources, options and compiler of this program.
 */
#ifndef KKT_TUNER_FRESHNESS_H
#define KKT_TUNER_FRESHNESS_H

#include "base/arena.h"
#include "db/store.h"

/* `compiler` ("nvrtc 13.0") may be NULL: then it is not compared. The object, its cache of source
 * hashes and the strings it hands out live in `arena`. */
const kkt_freshness *kkt_freshness_make(kkt_arena *arena, const char *compiler);

#endif
