#include "kernels/common/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

bool kkt_shape_valid(const kkt_shape *shape, int64_t tokens, int64_t widest, char *reason,
                     size_t size) {
    if (shape->heads_v % shape->heads_k != 0) {
        kkt_reason(reason, size, "heads_v %" PRId64 " is no multiple of heads_k %" PRId64,
                   shape->heads_v, shape->heads_k);
        return false;
    }
    if (shape->sequences > 1 && shape->batch > 1) {
        kkt_reason(reason, size,
                   "batch is %" PRId64 " with %" PRId64
                   " sequences: sequences of unequal length need batch 1",
                   shape->batch, shape->sequences);
        return false;
    }
    if (tokens % shape->batch != 0) {
        kkt_reason(reason, size, "tokens %" PRId64 " (in total) is no multiple of batch %" PRId64,
                   tokens, shape->batch);
        return false;
    }
    if (shape->dk % 16 != 0) { /* what one tensor-core instruction takes of K K^T */
        kkt_reason(reason, size, "dk %" PRId64 " is no multiple of 16", shape->dk);
        return false;
    }
    if (shape->dv % 16 != 0) {
        kkt_reason(reason, size, "dv %" PRId64 " is no multiple of 16", shape->dv);
        return false;
    }
    /* Kept far from 2^63 so that byte counts and offsets cannot overflow. */
    if ((double)tokens * fmax((double)(shape->heads_k * shape->dk), (double)widest) > 0x1p44) {
        kkt_reason(reason, size, "a tensor of this problem has more than 2^44 elements");
        return false;
    }
    return true;
}

int64_t kkt_sequence_count(const kkt_shape *shape, const kkt_host_tensor *cu) {
    return cu && cu->data ? shape->sequences : 1;
}

int64_t kkt_sequence_start(const kkt_shape *shape, const kkt_host_tensor *cu, int64_t sequence) {
    if (cu && cu->data)
        return (int64_t)kkt_dtype_load(cu->tensor.dtype, cu->data, (size_t)sequence);
    return sequence == 0 ? 0 : shape->length;
}

static int64_t chunks_of(const kkt_shape *shape, const kkt_host_tensor *cu, int64_t chunk,
                         int64_t sequence) {
    const int64_t length =
        kkt_sequence_start(shape, cu, sequence + 1) - kkt_sequence_start(shape, cu, sequence);
    return (length + chunk - 1) / chunk;
}

/* The cursor, fit for these inputs: counting all chunks of many sequences for every part would
 * make the work grow with their square. */
static kkt_part_cursor *cursor_of(const kkt_shape *shape, int64_t chunk, const kkt_host_tensor *cu,
                                  kkt_host_tensors *inputs) {
    kkt_part_cursor *cursor = &inputs->cursor;
    if (cursor->data && cu && cursor->data == cu->data && cursor->chunk == chunk)
        return cursor;
    *cursor = (kkt_part_cursor){.data = cu ? cu->data : NULL, .chunk = chunk};
    for (int64_t s = 0; s < kkt_sequence_count(shape, cu); s++)
        cursor->total += chunks_of(shape, cu, chunk, s);
    return cursor;
}

int64_t kkt_chunk_count(const kkt_shape *shape, int64_t chunk, kkt_host_tensors *inputs) {
    const kkt_host_tensor *cu = kkt_host_tensor_find(inputs, "cu_seqlens");
    return shape->batch * cursor_of(shape, chunk, cu, inputs)->total;
}

bool kkt_chunk_at(const kkt_shape *shape, int64_t chunk, kkt_host_tensors *inputs, int64_t index,
                  kkt_chunk_part *out) {
    const kkt_host_tensor *cu = kkt_host_tensor_find(inputs, "cu_seqlens");
    const int64_t heads = shape->heads_v;
    kkt_part_cursor *cursor = cursor_of(shape, chunk, cu, inputs);
    if (index < 0 || index >= cursor->total * heads * shape->batch)
        return false;
    const int64_t slot = index / heads, at = slot % cursor->total;
    out->head = index % heads;
    out->batch = slot / cursor->total;
    if (at < cursor->before)
        cursor->sequence = cursor->before = 0;
    int64_t chunks = chunks_of(shape, cu, chunk, cursor->sequence);
    while (at - cursor->before >= chunks) {
        if (cursor->sequence + 1 >= kkt_sequence_count(shape, cu))
            return false; /* boundaries that check_inputs would have refused */
        cursor->before += chunks;
        chunks = chunks_of(shape, cu, chunk, ++cursor->sequence);
    }
    const int64_t first = kkt_sequence_start(shape, cu, cursor->sequence);
    const int64_t length = kkt_sequence_start(shape, cu, cursor->sequence + 1) - first;
    const int64_t row = (at - cursor->before) * chunk;
    out->sequence = cursor->sequence;
    out->index = at - cursor->before;
    out->token = first + row;
    out->rows = length - row < chunk ? length - row : chunk;
    return true;
}
