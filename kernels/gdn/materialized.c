#include "kernels/gdn/materialized.h"

#include <math.h>

int64_t kkt_gdn_chunk_part_count(const kkt_values *problem, int64_t chunk,
                                 kkt_host_tensors *inputs) {
    const kkt_shape shape = kkt_gdn_shape(problem);
    return kkt_chunk_count(&shape, chunk, inputs) * shape.heads_v;
}

kkt_region kkt_gdn_chunk_region(const kkt_shape *shape, const kkt_chunk_part *part, int tensor,
                                int64_t columns) {
    const int64_t row = part->batch * shape->length + part->token;
    return (kkt_region){.tensor = tensor,
                        .offset = (row * shape->heads_v + part->head) * columns,
                        .rows = part->rows,
                        .columns = columns,
                        .row_stride = shape->heads_v * columns};
}

kkt_region kkt_gdn_slots_region(const kkt_values *problem, int64_t chunk, kkt_host_tensors *inputs,
                                const kkt_gdn_part *part, int tensor) {
    const kkt_shape s = kkt_gdn_shape(problem);
    int64_t count;
    const int64_t first = kkt_gdn_slot_range(problem, chunk, inputs, part, &count);
    return (kkt_region){.tensor = tensor,
                        .offset = (first * s.heads_v + part->head) * s.dk * s.dv + part->column,
                        .rows = count * s.dk,
                        .columns = KKT_GDN_COLUMNS,
                        .row_stride = s.dv,
                        .group_rows = s.dk,
                        .group_stride = s.heads_v * s.dk * s.dv};
}

double kkt_gdn_meeting_cycles(int64_t warps) {
    return 3.7 * sqrt(warps > 4 ? (double)warps / 4 : 1);
}

enum { GRID_ROWS = 32768 }; /* of the grid's y, below its limit of 65,535 */

kkt_launch *kkt_gdn_plan_begin(const char *entry, const kkt_footprint *footprint, int64_t x,
                               kkt_plan *out) {
    const int64_t others = footprint->blocks / x;
    const int64_t rows = others < GRID_ROWS ? others : GRID_ROWS;
    *out = (kkt_plan){.launch_count = 1};
    out->launches[0] =
        (kkt_launch){.entry = entry,
                     .grid = {(uint32_t)x, (uint32_t)rows, (uint32_t)((others + rows - 1) / rows)},
                     .block = {(uint32_t)footprint->threads, 1, 1},
                     .dynamic_smem_bytes = kkt_footprint_smem_bytes(footprint),
                     .carveout_percent = -1};
    return &out->launches[0];
}
