/* Bounds and times (docs/model.md, section 7). Two readings of one footprint: with theoretical
 * peaks and least latencies it is a lower bound, with reached rates and usual latencies the
 * expected time. */
#include <math.h>
#include <string.h>

#include "model/predict.h"

/* Share of L2 that the last writes of a launch may still occupy, dirty, when it ends: their bytes
 * have not gone to memory yet. A copy on an H200 leaves about 24 of 60 MiB; half is safe. */
#define DIRTY_SHARE 0.5

/* Bytes a clock that an SM can take from L2 at the very most (the width of its port). */
#define L2_PORT_BYTES 64.0

#define LINE_BYTES 128.0

/* Cycles that no implementation of a step can undercut: substitution in registers is one dependent
 * FMA a row; a tensor product cannot return before its pipeline is through; a load from memory
 * takes longer than an L2 hit. Barriers and stores may be hidden entirely. */
static const double least_step_cycles[KKT_STEP_KIND_COUNT] = {
    [KKT_STEP_GLOBAL_LOAD] = 250, [KKT_STEP_SUBSTITUTION] = 4, [KKT_STEP_COUPLING] = 4,
    [KKT_STEP_MMA] = 16,          [KKT_STEP_PRODUCT] = 16,     [KKT_STEP_BARRIER] = 0,
    [KKT_STEP_STORE] = 0,
};

static double largest(const double *values, int count, int *at) {
    int best = 0;
    for (int i = 1; i < count; ++i)
        if (values[i] > values[best])
            best = i;
    *at = best;
    return values[best];
}

/* Efficiencies, launch, instruction_cycles and overlap: least squares of log(predicted / measured),
 * each family and style weighing alike, over 790 timed configurations of kkt_solve (chunks up to
 * 64), gemm, gemv and the warp-specialized Gated DeltaNet, 2026-11-30; start_share by pairs of
 * kkt_solve that differ in `persistent` alone, line_cycles by those that differ in `carveout`.
 * tests/unit/engine/test_time_model.c shows the errors that are left. fp32_efficiency was set by
 * hand; the latencies of steps are usual ones. counted_issue_efficiency and partition_exponent: 37
 * timed configurations of gdn_wu; spill_ and squeeze_instructions: 138 of gdn_fwd and gdn_fwd_t
 * with mma.sync. Where a device has no row of its own, these serve to rank. */
static const kkt_time_constants fitted = {
    .l2_efficiency = 0.68,
    .smem_efficiency = 0.83,
    .wgmma_efficiency = 0.74,
    .tensor_efficiency = 0.77,
    .fp32_efficiency = 0.5,
    .issue_efficiency = 0.5,
    .counted_issue_efficiency = 0.6,
    .launch_us = 3.05,
    .start_share = 0.3,
    .run_cost_bytes = 70,
    .load_latency_cycles = 700,
    .line_cycles = 1900,
    .step_cycles =
        {
            [KKT_STEP_GLOBAL_LOAD] = 0, /* load_latency_cycles */
            [KKT_STEP_SUBSTITUTION] = 40,
            [KKT_STEP_COUPLING] = 60,
            [KKT_STEP_MMA] = 60,
            [KKT_STEP_PRODUCT] = 60,
            [KKT_STEP_BARRIER] = 30,
            [KKT_STEP_STORE] = 300,
        },
    .fma_cycles = 2,
    .instruction_cycles = 11.4,
    .partition_exponent = 0.4,
    .spill_instructions = 10,
    .squeeze_instructions = 0.5,
    .overlap = 4.8,
};

/* Devices that constants were fitted on. */
static const struct {
    const char *device, *source;
    const kkt_time_constants *constants;
} fits[] = {
    {"h200", "fitted on recordings of an H200, 2026-11-30", &fitted},
};

void kkt_time_defaults(const kkt_arch *arch, const kkt_device *device, kkt_time_constants *out) {
    /* The share of an H200's peak that a copy reaches serves where no copy was measured. */
    const double usual_copy_share = 4280.0 / 4916.736;
    double peak = kkt_device_peak_gbps(device);
    (void)arch;
    *out = fitted;
    out->source = "those of an H200, which serve to rank";
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        if (strcmp(fits[i].device, device->name) == 0) {
            *out = *fits[i].constants;
            out->source = fits[i].source;
            out->calibrated = true;
        }
    }
    out->hbm_efficiency =
        device->copy_gbps.value > 0 ? device->copy_gbps.value / peak : usual_copy_share;
}

/* Bytes a clock that an SM gets from L2 while all of them read. */
static double l2_rate(const kkt_arch *arch, const kkt_time_constants *k) {
    const double known = arch->l2_bytes_per_clock_sm.value;
    return known > 0 ? known : L2_PORT_BYTES * k->l2_efficiency;
}

/* Work of the busiest SM over the mean: blocks come whole. Blocks that stay take whole turns, which
 * even out where an SM has several. */
static double imbalance(const kkt_footprint *fp, double sms) {
    double blocks = (double)fp->blocks, all = fp->all_chunks;
    if (blocks <= 0)
        return 1;
    if (all <= 0)
        return ceil(blocks / sms) * sms / blocks;
    return (blocks > sms ? ceil(all / sms) : (double)fp->chunks_per_block) * sms / all;
}

/* Local memory traffic of what does not fit in registers: stored and loaded once a chunk. */
static double spill_bytes(const kkt_footprint *fp, const kkt_prediction *prediction) {
    double excess = prediction->register_demand - prediction->registers;
    if (!prediction->spills || excess <= 0)
        return 0;
    return 2 * 4 * excess * fp->threads * (double)fp->blocks * (double)fp->chunks_per_block;
}

/* Blocks per SM at the very most. Registers count only where the kernel declares them: the
 * compiler may need fewer than the model expects, so expected registers are no bound. */
static int most_resident(const kkt_footprint *fp, const kkt_prediction *prediction) {
    bool declared = fp->role_count > 0 && fp->roles[0].declared_registers > 0;
    const int *limits = prediction->occupancy.limits;
    int resident = limits[KKT_LIMIT_SHARED_MEMORY];
    for (int i = 0; i < KKT_OCCUPANCY_LIMITS; ++i)
        if ((i != KKT_LIMIT_REGISTERS || declared) && limits[i] < resident)
            resident = limits[i];
    return resident > 0 ? resident : 1;
}

static int most_stages(const kkt_footprint *fp) {
    int stages = 1;
    for (int i = 0; i < fp->buffer_count; ++i)
        if (fp->buffers[i].place == KKT_PLACE_SHARED && fp->buffers[i].stages > stages)
            stages = fp->buffers[i].stages;
    return stages;
}

/* Share of a later chunk's load latency that is hidden: the style's, if there is a second slot to
 * load into while the first is being used. */
static double overlap(const kkt_footprint *fp) {
    return most_stages(fp) > 1 ? kkt_style_get(fp->style)->latency_overlap : 0;
}

/* Least cycles of a block from its first load to its last store. Of a later chunk's load no more
 * counts than what its style does not hide, and no more than the time between two of as many loads
 * as there are slots to load into: all of them may be on their way. */
static double least_chain_cycles(const kkt_footprint *fp) {
    double chain = 0, load = 0;
    for (int i = 0; i < fp->step_count; ++i) {
        const kkt_step *step = &fp->steps[i];
        *(step->kind == KKT_STEP_GLOBAL_LOAD ? &load : &chain) +=
            step->count * least_step_cycles[step->kind];
    }
    const double seen = fmin(1 - overlap(fp), 1.0 / most_stages(fp));
    const double chunks = (double)fp->chunks_per_block;
    return chunks > 0 ? load + chunks * chain + (chunks - 1) * load * seen : 0;
}

static double lower_bound(const kkt_footprint *fp, const kkt_arch *arch, const kkt_device *device,
                          const kkt_prediction *prediction) {
    double clock_mhz = device->clock_ghz.value * 1e3; /* cycles a microsecond */
    double sms = device->sm_count.value;
    double busy = fmin((double)fp->blocks, sms);
    double cycles_sm = clock_mhz * (busy > 0 ? busy : 1);
    double tensor_rate = kkt_device_tensor_rate(device, arch).value;
    double mma_sync_rate = kkt_device_mma_sync_rate(device, arch).value;
    double in_l2 = fmin(fp->hbm_write_bytes, DIRTY_SHARE * device->l2_bytes.value);
    double slots = sms * most_resident(fp, prediction);
    double rounds = fmax((double)fp->blocks / slots, fp->blocks > 0 ? 1 : 0);
    double bounds[] = {
        (fp->hbm_read_bytes - fp->hbm_again_bytes + fp->hbm_write_bytes - in_l2) /
            (kkt_device_peak_gbps(device) * 1e3),
        fp->l2_read_bytes / (L2_PORT_BYTES * cycles_sm),
        (fp->smem_wavefronts + fp->wgmma_wavefronts) / cycles_sm,
        ((fp->tensor_flop + 2 * fp->tf32_flop) / tensor_rate + fp->mma_sync_flop / mma_sync_rate) /
            cycles_sm,
        fp->fp32_flop / (arch->fp32_flop_per_clock_sm.value * cycles_sm),
        fp->instructions / (arch->register_partitions * cycles_sm),
        rounds * least_chain_cycles(fp) / clock_mhz,
    };
    int at;
    return largest(bounds, (int)(sizeof bounds / sizeof bounds[0]), &at);
}

/* Cycles of a block from its first load to its last store, by its dependent steps. */
static double chain_cycles(const kkt_footprint *fp, const kkt_time_constants *k) {
    double chain = fp->chain_wait_cycles, load = 0;
    for (int i = 0; i < fp->step_count; ++i) {
        const kkt_step *step = &fp->steps[i];
        if (step->kind == KKT_STEP_GLOBAL_LOAD)
            load += step->count * k->load_latency_cycles;
        else
            chain += step->count * (k->step_cycles[step->kind] + step->elements * k->fma_cycles);
    }
    double visible = load * (1 - overlap(fp));
    double chunks = (double)fp->chunks_per_block;
    /* Nothing hides the first load; the style hides its share of the later ones. */
    return load + chunks * chain + (chunks > 1 ? (chunks - 1) * visible : 0);
}

/* Warps that share one partition of an SM, of the blocks that are there at one time; not below 1:
 * a warp that has a partition to itself is no faster for the others that are empty. */
static double partition_warps(const kkt_footprint *fp, const kkt_arch *arch, double sms,
                              const kkt_prediction *prediction) {
    double resident =
        fmin(fmax(prediction->occupancy.blocks_per_sm, 1), ceil((double)fp->blocks / sms));
    return fmax(1, resident * ceil(fp->threads / 32.0) / arch->register_partitions);
}

/* Cycles from one instruction of a warp to its next. Where nothing is known of a kernel the
 * registers of a thread tell: the more it has, the more of its work is independent, and the fewer
 * warps share the SM; their square root fits what was measured. */
static double instruction_gap(const kkt_footprint *fp, const kkt_arch *arch, double sms,
                              const kkt_prediction *prediction, const kkt_time_constants *k) {
    if (fp->instruction_cycles <= 0)
        return k->instruction_cycles * sqrt(64.0 / prediction->registers);
    return fp->instruction_cycles *
           pow(partition_warps(fp, arch, sms, prediction), k->partition_exponent);
}

static double issue_share(const kkt_footprint *fp, const kkt_time_constants *k) {
    return fp->instruction_cycles > 0 ? k->counted_issue_efficiency : k->issue_efficiency;
}

/* What a warp issues besides where registers do not fit: stores, loads, and waiting for these. */
static double spill_instructions(const kkt_footprint *fp, const kkt_prediction *prediction,
                                 const kkt_time_constants *k) {
    double excess = prediction->register_demand - prediction->registers;
    if (fp->instruction_cycles <= 0 || excess <= 0)
        return 0;
    return (prediction->spills ? k->spill_instructions : k->squeeze_instructions) * excess *
           (double)fp->chunks_per_block;
}

/* The same by what its warps issue, one instruction after the other. */
static double warp_cycles(const kkt_footprint *fp, const kkt_arch *arch, double sms,
                          const kkt_prediction *prediction, const kkt_time_constants *k) {
    double warps = fp->busy_warps > 0 ? fp->busy_warps : ceil(fp->threads / 32.0);
    if (warps <= 0 || fp->blocks <= 0)
        return 0;
    double of_block =
        fp->block_instructions > 0 ? fp->block_instructions : fp->instructions / (double)fp->blocks;
    double of_warp = of_block / warps + spill_instructions(fp, prediction, k);
    return k->load_latency_cycles + of_warp * instruction_gap(fp, arch, sms, prediction, k) +
           fp->wait_cycles * (double)fp->chunks_per_block;
}

/* Times of resources that are used at once, yet not wholly: more than the longest of them. */
static double together(const double *times, int count, double exponent, double longest) {
    double sum = 0;
    for (int i = 0; i < count; ++i)
        sum += pow(times[i] / longest, exponent);
    return longest * pow(sum, 1 / exponent);
}

/* What a time is made of: the resources, places in L1 and, last, the latency. */
enum { RESOURCES = 8, LATENCY = RESOURCES - 1 };

/* Of the last turn of blocks that stay, the part of them that have anything to do. Not above 0
 * where chunks_per_block counts something finer than turns (steps of a tile): those turns are not
 * known. */
static double last_turn(const kkt_footprint *fp) {
    return fp->all_chunks / (double)fp->blocks - (double)(fp->chunks_per_block - 1);
}

/* Several blocks an SM that stay take as many turns as their shares have, and in the last one only
 * some of them have anything to do: less is asked of each resource, yet a turn is as long for a
 * block as ever. */
static double by_turns(const kkt_footprint *fp, const double times[RESOURCES], double exponent) {
    const double turns = (double)fp->chunks_per_block, share = (double)fp->blocks / fp->all_chunks;
    const double filled = last_turn(fp);
    double whole[RESOURCES], partial[RESOURCES];
    int at;
    for (int i = 0; i < RESOURCES; ++i) {
        whole[i] = i == LATENCY ? times[i] / turns : times[i] * share;
        partial[i] = i == LATENCY ? whole[i] : whole[i] * filled;
    }
    const double all = together(whole, RESOURCES, exponent, largest(whole, RESOURCES, &at));
    return (turns - 1) * all +
           together(partial, RESOURCES, exponent, largest(partial, RESOURCES, &at));
}

/* Blocks that come and go begin in step: all of them load, then all of them compute, and a share of
 * the first round overlaps with nothing. The more blocks an SM has, the sooner they part. Blocks
 * that stay fetch the next chunk while they work, so theirs is one load. */
static double start_us(double round_us, int resident, const kkt_time_constants *k) {
    return round_us * k->start_share * sqrt(4.0 / resident);
}

/* Memory is read page by page: short runs spread over many pages cost more than their bytes. */
static double run_factor(const kkt_footprint *fp, const kkt_time_constants *k) {
    return fp->run_bytes > 0 ? 1 + k->run_cost_bytes / fp->run_bytes : 1;
}

/* Shared memory that the driver sets aside: the least choice that holds the resident blocks, or all
 * that there can be. The choices of all architectures (the CUDA programming guide's tables of
 * compute capabilities), as far as an architecture goes. */
static int64_t set_aside_bytes(const kkt_footprint *fp, const kkt_arch *arch,
                               const kkt_prediction *prediction) {
    static const short kib[] = {8, 16, 32, 64, 100, 132, 164, 196};
    const int64_t need = (prediction->smem_bytes + arch->smem_reserved_bytes) *
                         (int64_t)prediction->occupancy.blocks_per_sm;
    for (size_t i = 0; fp->carveout_percent < 100 && i < sizeof kib / sizeof *kib; i++)
        if (need <= kib[i] * INT64_C(1024) && kib[i] * INT64_C(1024) < arch->smem_per_sm_bytes)
            return kib[i] * INT64_C(1024);
    return arch->smem_per_sm_bytes;
}

/* Lines on their way keep a place in L1, which is what shared memory leaves: with few places loads
 * wait for one another. */
static double places_us(const kkt_footprint *fp, const kkt_arch *arch, const kkt_device *device,
                        const kkt_prediction *prediction, const kkt_time_constants *k) {
    const int64_t left = arch->l1_smem_bytes - set_aside_bytes(fp, arch, prediction);
    if (fp->l1_lines <= 0 || left <= 0)
        return 0;
    const double places = (double)left / LINE_BYTES * device->sm_count.value;
    return fp->l1_lines * k->line_cycles / places / (device->clock_ghz.value * 1e3);
}

void kkt_time_predict(const kkt_footprint *footprint, const kkt_arch *arch,
                      const kkt_device *device, const kkt_time_constants *constants,
                      kkt_prediction *prediction) {
    const kkt_footprint *fp = footprint;
    const kkt_time_constants *k = constants;
    double clock_mhz = device->clock_ghz.value * 1e3;
    double sms = device->sm_count.value;
    double cycles = clock_mhz * sms / imbalance(fp, sms);
    double tensor_rate = kkt_device_tensor_rate(device, arch).value;
    double mma_sync_rate = kkt_device_mma_sync_rate(device, arch).value;
    int resident =
        prediction->occupancy.blocks_per_sm > 0 ? prediction->occupancy.blocks_per_sm : 1;
    double waves = fmax((double)fp->blocks / (sms * resident), fp->blocks > 0 ? 1 : 0);
    double times[] = {
        prediction->hbm_bytes * run_factor(fp, k) /
            (kkt_device_peak_gbps(device) * k->hbm_efficiency * 1e3),
        (fp->l2_read_bytes + spill_bytes(fp, prediction)) / (l2_rate(arch, k) * sms * clock_mhz),
        ((fp->smem_wavefronts + fp->global_wavefronts) / k->smem_efficiency +
         fp->wgmma_wavefronts / k->wgmma_efficiency) /
            cycles,
        ((fp->tensor_flop + 2 * fp->tf32_flop) / tensor_rate + fp->mma_sync_flop / mma_sync_rate) /
            (cycles * k->tensor_efficiency),
        fp->fp32_flop / (arch->fp32_flop_per_clock_sm.value * cycles * k->fp32_efficiency),
        fp->instructions / (arch->register_partitions * cycles * issue_share(fp, k)),
        places_us(fp, arch, device, prediction, k),
        waves * fmax(chain_cycles(fp, k), warp_cycles(fp, arch, sms, prediction, k)) / clock_mhz,
    };
    _Static_assert(sizeof times / sizeof times[0] == RESOURCES, "a time for each resource");
    int at;
    double longest = largest(times, RESOURCES, &at);
    /* Waiting for a place in L1 is waiting, too. */
    prediction->limiter = at < LATENCY - 1 ? (kkt_limiter)(KKT_LIMIT_HBM + at) : KKT_LIMIT_LATENCY;
    double launches = fp->launches > 0 ? fp->launches : 1;
    double expected = longest > 0 ? together(times, RESOURCES, k->overlap, longest) : 0;
    if (fp->all_chunks > 0 && fp->chunks_per_block > 1 && (double)fp->blocks > sms &&
        last_turn(fp) > 0)
        expected = by_turns(fp, times, k->overlap);
    if (fp->chunks_per_block == 1)
        expected += start_us(expected / waves, resident, k);
    prediction->lower_bound_us = lower_bound(fp, arch, device, prediction);
    prediction->predicted_us = fmax(expected + launches * k->launch_us, prediction->lower_bound_us);
}
