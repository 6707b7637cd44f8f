/* Write styles: how a kernel is written, where its intermediates live. A style is a tag and a few
 * general rules over a footprint; styles are listed once, in style.c. */
#ifndef KKT_MODEL_STYLE_H
#define KKT_MODEL_STYLE_H

#include <stddef.h>

typedef enum kkt_style_id {
    KKT_STYLE_FRAGMENT,
    KKT_STYLE_PIPELINED,
    KKT_STYLE_WARP_SPECIALIZED,
    KKT_STYLE_MATERIALIZED,
    KKT_STYLE_CONTEXT_PARALLEL,
    KKT_STYLE_LIBRARY,
    KKT_STYLE_COUNT
} kkt_style_id;

typedef struct kkt_style {
    kkt_style_id id;
    const char *name;         /* "warp_specialized" */
    const char *summary;      /* one line */
    const char *first_limit;  /* what bursts first, in words */
    const char *secondary;    /* the secondary constraint, in words */
    double register_overhead; /* registers a thread beyond the tables: addresses, indices,
                                 temporaries; calibrated on compiled variants */
    double latency_overlap;   /* share of a block's own load latency hidden by its style:
                                 0 none (serial), 1 all (deep ring or producer warps) */
} kkt_style;

const kkt_style *kkt_styles(size_t *count);
const kkt_style *kkt_style_get(kkt_style_id id);
const kkt_style *kkt_style_find(const char *name); /* NULL where unknown */

#endif
