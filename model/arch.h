/* Architectures (compute capabilities) and devices as data. The rows are in arch_table.c and
 * device_table.c; adding one touches its file alone. Every number that can be doubted carries its
 * source. */
#ifndef KKT_MODEL_ARCH_H
#define KKT_MODEL_ARCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum kkt_source {
    KKT_SOURCE_UNCONFIRMED, /* taken from hearsay: shown with a question mark */
    KKT_SOURCE_DATASHEET,   /* the vendor's documents */
    KKT_SOURCE_QUERIED,     /* read from the driver on such a device */
    KKT_SOURCE_MEASURED     /* measured by a micro-benchmark on such a device */
} kkt_source;

typedef struct kkt_fact {
    double value;
    kkt_source source;
} kkt_fact;

/* Limits that hold for every device of one compute capability. */
typedef struct kkt_arch {
    const char *name;       /* "sm90" */
    const char *nvrtc_arch; /* "sm_90a": what the compiled tier asks NVRTC for */
    const char *generation; /* "Hopper" */
    const char *cupti_chip; /* "GH100" */
    int major, minor;
    int max_warps_per_sm;
    int max_blocks_per_sm;
    int max_threads_per_block;    /* 1024 */
    int registers_per_sm;         /* 65,536 */
    int max_registers_per_thread; /* 255 */
    int register_partitions;      /* 4 sub-cores */
    int register_allocation_unit; /* 256 per warp */
    int smem_per_sm_bytes;        /* largest carve-out */
    int smem_optin_bytes;         /* largest a block can have */
    int smem_static_bytes;        /* 48 KiB: largest without opt-in */
    int smem_reserved_bytes;      /* per block, by the driver: 1,024 */
    int smem_allocation_unit;     /* 128 */
    int l1_smem_bytes;            /* L1 and shared memory together */
    kkt_source l1_smem_source;    /* of the line above */
    int barriers_per_block_slot;  /* named barriers available = this * max blocks; 0: no limit */
    int tensor_memory_bytes;      /* tcgen05 tensor memory per SM; 0 where there is none */
    int has_cp_async, has_tma, has_wgmma;
    kkt_fact bf16_flop_per_clock_sm;     /* dense tensor rate; a device may override it */
    kkt_fact mma_sync_flop_per_clock_sm; /* what mma.sync reaches of it; 0: all of it */
    kkt_fact fp32_flop_per_clock_sm;     /* FMA counts two */
    kkt_fact l2_bytes_per_clock_sm; /* what an SM gets from L2 where all of them read; 0: the share
                                       of its port that an H200's SMs do */
} kkt_arch;

typedef struct kkt_device {
    const char *name;      /* "h200": what --device takes */
    const char *full_name; /* "NVIDIA H200": what the driver reports, or the start of it */
    const char *arch;      /* "sm90" */
    kkt_fact sm_count;
    kkt_fact clock_ghz; /* boost clock */
    kkt_fact hbm_gbps;  /* the vendor's figure, 1e9 bytes a second */
    kkt_fact peak_gbps; /* memory clock x bus width; 0 where unknown: hbm_gbps serves */
    kkt_fact copy_gbps; /* measured ceiling of a copy, read + written; 0 where unknown */
    kkt_fact read_gbps; /* measured ceiling of reading alone; 0 where unknown */
    kkt_fact l2_bytes;
    kkt_fact memory_gb;
    kkt_fact bf16_flop_per_clock_sm; /* 0: the architecture's */
    const char *note;                /* one line, or NULL */
} kkt_device;

/* The tables, in the order they are listed. */
const kkt_arch *kkt_archs(size_t *count);
const kkt_device *kkt_devices(size_t *count);

/* "sm90", "sm_90", "sm90a", "90", "9.0" alike. NULL where unknown; kkt_arch_parse gives the error
 * that lists what exists. */
const kkt_arch *kkt_arch_find(const char *text);
kkt_status kkt_arch_parse(const char *text, const kkt_arch **out, kkt_error *err);
/* Device by short name or full name (case-insensitive) within `arch` (NULL: any). */
kkt_status kkt_device_parse(const char *text, const kkt_arch *arch, const kkt_device **out,
                            kkt_error *err);
/* The first device row of an architecture; every architecture has one. */
const kkt_device *kkt_device_first(const kkt_arch *arch);
/* The row whose full name the driver's name starts with or equals, else NULL. */
const kkt_device *kkt_device_by_full_name(const char *driver_name);
const char *kkt_source_name(kkt_source source);

/* Theoretical peak of the memory, 1e9 bytes a second: what a lower bound divides by. */
double kkt_device_peak_gbps(const kkt_device *device);
/* Dense bf16 tensor rate of the device (its own where it differs from the architecture's). */
kkt_fact kkt_device_tensor_rate(const kkt_device *device, const kkt_arch *arch);
/* The same of mma.sync, which on Hopper does not keep the tensor cores busy. */
kkt_fact kkt_device_mma_sync_rate(const kkt_device *device, const kkt_arch *arch);

#endif
