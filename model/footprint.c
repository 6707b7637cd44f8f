#include "model/footprint.h"

#include <stdlib.h>

/* Descriptors size these arrays by construction: overflow is a bug of a kernel, not of its user. */
static void require(bool condition) {
    if (!condition)
        abort();
}

kkt_buffer *kkt_footprint_buffer(kkt_footprint *fp, kkt_place place, const char *name, int64_t rows,
                                 int64_t columns, int element_bytes) {
    require(fp->buffer_count < KKT_FOOTPRINT_BUFFERS);
    kkt_buffer *buffer = &fp->buffers[fp->buffer_count++];
    *buffer = (kkt_buffer){.name = name,
                           .place = place,
                           .rows = rows,
                           .columns = columns,
                           .element_bytes = element_bytes,
                           .stages = 1};
    return buffer;
}

kkt_role *kkt_footprint_role(kkt_footprint *fp, const char *name, int threads) {
    require(fp->role_count < KKT_FOOTPRINT_ROLES);
    kkt_role *role = &fp->roles[fp->role_count++];
    *role = (kkt_role){.name = name, .threads = threads};
    return role;
}

void kkt_footprint_step(kkt_footprint *fp, kkt_step_kind kind, double count, double elements) {
    require(fp->step_count < KKT_FOOTPRINT_STEPS);
    fp->steps[fp->step_count++] = (kkt_step){.kind = kind, .count = count, .elements = elements};
}

static int64_t round_up_16(int64_t bytes) {
    return (bytes + 15) / 16 * 16;
}

int64_t kkt_footprint_smem_bytes(const kkt_footprint *fp) {
    int64_t total = 0;
    for (int i = 0; i < fp->buffer_count; ++i) {
        const kkt_buffer *buffer = &fp->buffers[i];
        if (buffer->place != KKT_PLACE_SHARED)
            continue;
        if (buffer->overlays == 0) {
            total += round_up_16(kkt_buffer_bytes(buffer));
            continue;
        }
        require(buffer->overlays <= fp->buffer_count);
        const kkt_buffer *below = &fp->buffers[buffer->overlays - 1];
        require(below->place == KKT_PLACE_SHARED &&
                kkt_buffer_bytes(buffer) <= round_up_16(kkt_buffer_bytes(below)));
    }
    return total;
}
