/* The device sources as the build embeds them (cmake/embed_sources.cmake). Used by kernel.c alone;
 * everyone else asks kkt_device_source. */
#ifndef KKT_KERNELS_EMBEDDED_H
#define KKT_KERNELS_EMBEDDED_H

#include <stddef.h>

typedef struct kkt_embedded_file {
    const char *path;           /* relative to kernels/ */
    const unsigned char *bytes; /* NUL-terminated */
    size_t length;              /* without the NUL */
} kkt_embedded_file;

/* Sorted by path; ends in a row whose path is NULL. */
extern const kkt_embedded_file kkt_embedded_files[];

#endif
