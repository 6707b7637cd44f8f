/* Shared-memory layouts as data: the published ones (the model is tested on them) and, from a
 * footprint, any kernel's own. Sources and totals: docs/model.md, section 3. */
#ifndef KKT_MODEL_LAYOUT_H
#define KKT_MODEL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/arch.h"
#include "model/footprint.h"

#define KKT_LAYOUT_PARTS (KKT_FOOTPRINT_BUFFERS + 1)

typedef struct kkt_layout_part {
    const char *name;
    int64_t bytes;      /* all stages; 0 for a buffer that reuses another's space */
    const char *reuses; /* the buffer whose space it takes, or NULL */
} kkt_layout_part;

typedef struct kkt_layout {
    const char *name; /* "seed_warp_specialized" */
    int64_t chunk, block_dv;
    int buffers; /* copies of the streamed operands: 2 is double buffering */
    int threads; /* of a block */
    int part_count;
    kkt_layout_part parts[KKT_LAYOUT_PARTS];
    int64_t total; /* bytes */
} kkt_layout;

/* What a published layout is asked for. */
typedef struct kkt_layout_query {
    int64_t chunk, dk, block_dv;
    int element_bytes;
    int buffers;
} kkt_layout_query;

typedef struct kkt_layout_source {
    const char *name;
    const char *summary; /* where it was published */
    const int *buffers;  /* the values of `buffers` that were published, 0-terminated */
    bool (*applies)(const kkt_layout_query *query);
    void (*fill)(const kkt_layout_query *query, kkt_layout *out);
} kkt_layout_source;

/* The published layouts, in the order they are listed. */
const kkt_layout_source *kkt_layouts(size_t *count);
const kkt_layout_source *kkt_layout_find(const char *name); /* NULL where unknown */
/* Builds one; false where the layout does not exist for these values (`out` is then unset). */
bool kkt_layout_compute(const kkt_layout_source *source, const kkt_layout_query *query,
                        kkt_layout *out);
/* The SHARED buffers of a footprint, with its static bytes as a part of their own. `name` is
 * borrowed, as are the buffers' names. */
void kkt_layout_from_footprint(const char *name, const kkt_footprint *footprint, int64_t block_dv,
                               int buffers, kkt_layout *out);
/* Blocks per SM by shared memory alone, the driver's reserve counted; 0 above the opt-in limit. */
int kkt_layout_blocks_per_sm(const kkt_layout *layout, const kkt_arch *arch);

#endif
