// The register layout of a 16 x 8 fp32 accumulator of mma.sync, which the CUDA-core code of this
// folder uses as well. Lane l holds four elements:
//
//                column 0   1   2   3   4   5   6   7
//     row 0             l0      l1      l2      l3          value[0], value[1] of lanes 0..3
//     row 1             l4      l5      l6      l7
//      ...                                                  row = l / 4
//     row 7             l28     l29     l30     l31         column = 2 (l % 4), + 1 for value[1]
//     row 8..15         the same lanes again                value[2], value[3]
//
// The upper eight rows (value[0..1]) and the lower eight (value[2..3]) are 8 x 8 sub-blocks.
#pragma once

#include "device/types.cuh"

struct Fragment {
    float value[4];
};

KKT_DEVICE int fragment_row(int lane) {
    return lane / 4;
}

KKT_DEVICE int fragment_column(int lane) {
    return 2 * (lane % 4);
}

KKT_DEVICE void fragment_clear(Fragment &f) {
    f.value[0] = f.value[1] = f.value[2] = f.value[3] = 0.0f;
}
