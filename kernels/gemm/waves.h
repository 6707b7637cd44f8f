/* Bytes of A and B that come from HBM, wave by wave. A *wave* is the tiles that run at one time;
 * they go along k in step, so that each row of tiles in it reads its rows of A once and each column
 * its columns of B, whoever asks first. What the wave before read too is still in L2 where little
 * was read in between. */
#ifndef KKT_KERNELS_GEMM_WAVES_H
#define KKT_KERNELS_GEMM_WAVES_H

#include <stdint.h>

typedef struct kkt_gemm_waves {
    int64_t m, n;          /* rows and columns of c */
    int64_t height, width; /* of c that one tile covers, or a cluster's tiles together */
    int64_t group;         /* rows of tiles that are gone down before the next column */
    int64_t at_once;       /* tiles of a wave; at least 1 */
    int64_t parts;         /* of k, one after the other */
    double line_bytes;     /* of a row of a, or a column of b, along all of k */
} kkt_gemm_waves;

/* Bytes, at least those of both matrices. `element_bytes` is one of c's, which passes through L2
 * as well. Takes time in proportion to the waves, of which it walks a thousand at most. */
double kkt_gemm_wave_reads(const kkt_gemm_waves *w, double l2_bytes, double element_bytes);

/* Share of what is in L2 that still is when `between_bytes` more have passed through it. */
double kkt_gemm_survivors(double between_bytes, double l2_bytes);

#endif
