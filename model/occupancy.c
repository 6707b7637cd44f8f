#include "model/occupancy.h"

#define WARP 32

static int64_t round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* Registers are given to warps, in units, out of the partition (sub-core) a warp lives in. The
 * launch check assumes that a block takes warps of all partitions alike. */
static int register_limit(const kkt_arch *arch, int registers, int warps) {
    int64_t per_warp = round_up((int64_t)registers * WARP, arch->register_allocation_unit);
    if (per_warp * round_up(warps, arch->register_partitions) > arch->registers_per_sm)
        return 0;
    int64_t warps_per_partition = arch->registers_per_sm / arch->register_partitions / per_warp;
    return (int)(warps_per_partition * arch->register_partitions / warps);
}

static int smem_limit(const kkt_arch *arch, int64_t bytes) {
    int64_t allocated = round_up(bytes + arch->smem_reserved_bytes, arch->smem_allocation_unit);
    if (allocated > (int64_t)arch->smem_optin_bytes + arch->smem_reserved_bytes)
        return 0;
    if (allocated == 0)
        return arch->max_blocks_per_sm;
    return (int)(arch->smem_per_sm_bytes / allocated);
}

void kkt_occupancy_compute(const kkt_arch *arch, const kkt_occupancy_request *request,
                           kkt_occupancy *out) {
    int warps = (request->threads + WARP - 1) / WARP;
    int barriers = request->barriers > 0 ? request->barriers : 1;
    out->limits[KKT_LIMIT_REGISTERS] = register_limit(arch, request->registers, warps);
    out->limits[KKT_LIMIT_SHARED_MEMORY] =
        smem_limit(arch, request->static_smem + request->dynamic_smem);
    out->limits[KKT_LIMIT_THREADS] =
        request->threads > arch->max_threads_per_block ? 0 : arch->max_warps_per_sm / warps;
    out->limits[KKT_LIMIT_BLOCKS] = arch->max_blocks_per_sm;
    out->limits[KKT_LIMIT_BARRIERS] =
        arch->barriers_per_block_slot == 0
            ? arch->max_blocks_per_sm
            : arch->barriers_per_block_slot * arch->max_blocks_per_sm / barriers;
    out->limiter = KKT_LIMIT_REGISTERS;
    for (int i = 1; i < KKT_OCCUPANCY_LIMITS; ++i)
        if (out->limits[i] < out->limits[out->limiter])
            out->limiter = (kkt_limiter)i;
    out->blocks_per_sm = out->limits[out->limiter];
    out->warps_per_sm = out->blocks_per_sm * warps;
}

static kkt_status check_range(const char *what, int64_t value, int64_t low, int64_t high,
                              kkt_error *err) {
    if (value >= low && value <= high)
        return KKT_OK;
    return kkt_fail(err, KKT_ERR_INPUT, 0, "%s %lld is out of range; it must be %lld to %lld", what,
                    (long long)value, (long long)low, (long long)high);
}

kkt_status kkt_occupancy_checked(const kkt_arch *arch, const kkt_occupancy_request *request,
                                 kkt_occupancy *out, kkt_error *err) {
    /* Bytes beyond this are no shared memory of anything and would only risk overflow. */
    const int64_t most_bytes = (int64_t)1 << 40;
    kkt_status status;
    if ((status = check_range("threads", request->threads, 1, 1024, err)) ||
        (status = check_range("registers", request->registers, 1, 255, err)) ||
        (status = check_range("shared memory bytes", request->dynamic_smem, 0, most_bytes, err)) ||
        (status =
             check_range("static shared memory bytes", request->static_smem, 0, most_bytes, err)) ||
        (status = check_range("barriers", request->barriers, 0, 16, err)))
        return status;
    kkt_occupancy_compute(arch, request, out);
    return KKT_OK;
}

const char *kkt_limiter_name(kkt_limiter limiter) {
    static const char *const names[KKT_LIMIT_COUNT] = {
        [KKT_LIMIT_REGISTERS] = "registers",
        [KKT_LIMIT_SHARED_MEMORY] = "shared_memory",
        [KKT_LIMIT_THREADS] = "threads",
        [KKT_LIMIT_BLOCKS] = "blocks",
        [KKT_LIMIT_BARRIERS] = "barriers",
        [KKT_LIMIT_HBM] = "hbm",
        [KKT_LIMIT_L2] = "l2",
        [KKT_LIMIT_SHARED_BANDWIDTH] = "shared_bandwidth",
        [KKT_LIMIT_TENSOR] = "tensor",
        [KKT_LIMIT_FP32] = "fp32",
        [KKT_LIMIT_ISSUE] = "issue",
        [KKT_LIMIT_LATENCY] = "latency",
    };
    return (unsigned)limiter < KKT_LIMIT_COUNT ? names[limiter] : "?";
}
