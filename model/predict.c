#include "model/predict.h"

#include <math.h>
#include <stdio.h>

#define WARP 32

static int64_t round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* Bytes of the register tables that a role's threads share. */
static double role_table_bytes(const kkt_footprint *fp, int role) {
    double bytes = 0;
    for (int i = 0; i < fp->buffer_count; ++i)
        if (fp->buffers[i].place == KKT_PLACE_REGISTER && fp->buffers[i].role == role)
            bytes += (double)kkt_buffer_bytes(&fp->buffers[i]);
    return bytes;
}

/* The most a thread can be given: __launch_bounds__ holds every block to its share of the file,
 * taken in whole units of the allocation. */
static int register_cap(const kkt_footprint *fp, const kkt_arch *arch) {
    int64_t blocks = fp->min_blocks > 0 ? fp->min_blocks : 1;
    int64_t warps =
        round_up(round_up(fp->threads, WARP) / WARP * blocks, arch->register_partitions);
    int64_t unit = arch->register_allocation_unit / WARP;
    int64_t share = arch->registers_per_sm / (warps * WARP) / unit * unit;
    return share > arch->max_registers_per_thread ? arch->max_registers_per_thread : (int)share;
}

/* The role whose declaration setmaxnreg cannot take (a multiple of 8 from 24 to 256), or NULL. A
 * single role is held by its launch bounds instead, which take any number. */
static const kkt_role *undeclarable_role(const kkt_footprint *fp) {
    for (int r = 0; fp->role_count > 1 && r < fp->role_count; ++r) {
        int declared = fp->roles[r].declared_registers;
        if (declared != 0 && (declared % 8 != 0 || declared < 24 || declared > 256))
            return &fp->roles[r];
    }
    return NULL;
}

static int64_t declared_total(const kkt_footprint *fp) {
    int64_t total = 0;
    for (int r = 0; r < fp->role_count; ++r)
        total += (int64_t)fp->roles[r].declared_registers * fp->roles[r].threads;
    return total;
}

/* A thread of one role: what it would take, and what it may have. */
typedef struct share {
    double tables, demand, least; /* with fewer than `least` it spills */
    int limit;
} share;

static share share_of(const kkt_footprint *fp, int r, int cap) {
    const kkt_role *role = &fp->roles[r];
    share out = {.tables = role_table_bytes(fp, r) / 4 / role->threads,
                 .limit = role->declared_registers > 0 ? role->declared_registers : cap};
    out.demand = out.tables + role->extra_registers + kkt_style_get(fp->style)->register_overhead;
    out.least = role->least_registers > 0 ? role->least_registers : out.demand;
    return out;
}

/* Demand of the roles against what each may have. */
static void predict_demand(const kkt_footprint *fp, int cap, kkt_prediction *out) {
    out->table_registers = out->register_demand = 0;
    out->spills = out->at_the_cap = false;
    for (int r = 0; r < fp->role_count; ++r) {
        const share s = share_of(fp, r, cap);
        out->spills = out->spills || s.least > s.limit;
        out->at_the_cap = out->at_the_cap || fp->roles[r].enough_registers > s.limit;
        out->table_registers = fmax(out->table_registers, s.tables);
        out->register_demand = fmax(out->register_demand, s.demand);
    }
    out->at_the_cap = out->at_the_cap && !out->spills;
}

/* Fills the register fields; false where the roles' declarations cannot be met. */
static bool predict_registers(const kkt_footprint *fp, const kkt_arch *arch, kkt_prediction *out) {
    int cap = register_cap(fp, arch);
    predict_demand(fp, cap, out);
    int declaring = 0;
    for (int r = 0; r < fp->role_count; ++r)
        declaring += fp->roles[r].declared_registers > 0;
    if (declaring > 1) {
        /* setmaxnreg redistributes what the launch allocated, and that follows the launch bounds:
         * 512 threads get 128 registers each whatever the roles keep. */
        out->registers = cap;
        return !undeclarable_role(fp) && declared_total(fp) <= (int64_t)cap * fp->threads;
    }
    if (declaring == 1 && fp->roles[0].declared_registers < cap)
        cap = fp->roles[0].declared_registers > 0 ? fp->roles[0].declared_registers : cap;
    double demand = ceil(out->register_demand);
    out->registers = demand > cap ? cap : (int)demand;
    if (out->registers < 1)
        out->registers = 1;
    return true;
}

static bool is_chain(kkt_step_kind kind) {
    return kind == KKT_STEP_SUBSTITUTION || kind == KKT_STEP_COUPLING || kind == KKT_STEP_MMA;
}

void kkt_predict(const kkt_footprint *footprint, const kkt_arch *arch, const kkt_device *device,
                 const kkt_time_constants *constants, kkt_prediction *out) {
    kkt_time_constants defaults;
    if (!constants) {
        kkt_time_defaults(arch, device, &defaults);
        constants = &defaults;
    }
    out->infeasible = KKT_FEASIBLE;
    out->calibrated = constants->calibrated;
    bool registers_fit = predict_registers(footprint, arch, out);
    out->dynamic_smem_bytes = kkt_footprint_smem_bytes(footprint);
    out->smem_bytes = out->dynamic_smem_bytes + footprint->static_smem_bytes;
    out->most_smem_bytes =
        footprint->static_smem_bytes + (footprint->most_smem_bytes > out->dynamic_smem_bytes
                                            ? footprint->most_smem_bytes
                                            : out->dynamic_smem_bytes);
    out->hbm_bytes = footprint->hbm_read_bytes + footprint->hbm_write_bytes;
    out->hbm_bytes_per_token =
        out->hbm_bytes / (double)(footprint->tokens > 0 ? footprint->tokens : 1);
    out->chain_steps = 0;
    for (int i = 0; i < footprint->step_count; ++i)
        if (is_chain(footprint->steps[i].kind))
            out->chain_steps += footprint->steps[i].count;

    kkt_occupancy_request request = {.threads = footprint->threads,
                                     .registers = out->registers,
                                     .dynamic_smem = out->dynamic_smem_bytes,
                                     .static_smem = footprint->static_smem_bytes,
                                     .barriers = footprint->barriers};
    kkt_occupancy_compute(arch, &request, &out->occupancy);
    if (footprint->threads > arch->max_threads_per_block)
        out->infeasible = KKT_TOO_MANY_THREADS;
    else if (out->most_smem_bytes > arch->smem_optin_bytes)
        out->infeasible = KKT_TOO_MUCH_SMEM;
    else if (!registers_fit || out->occupancy.limits[KKT_LIMIT_REGISTERS] == 0)
        out->infeasible = KKT_TOO_MANY_REGISTERS;
    if (out->infeasible != KKT_FEASIBLE) {
        static const kkt_limiter stopped_by[] = {
            [KKT_TOO_MUCH_SMEM] = KKT_LIMIT_SHARED_MEMORY,
            [KKT_TOO_MANY_THREADS] = KKT_LIMIT_THREADS,
            [KKT_TOO_MANY_REGISTERS] = KKT_LIMIT_REGISTERS,
        };
        out->limiter = stopped_by[out->infeasible];
        out->lower_bound_us = out->predicted_us = INFINITY;
        return;
    }
    kkt_time_predict(footprint, arch, device, constants, out);
}

static void infeasible_reason(const kkt_footprint *fp, const kkt_arch *arch,
                              const kkt_prediction *prediction, char *out, size_t size) {
    const kkt_role *role = undeclarable_role(fp);
    if (prediction->infeasible == KKT_TOO_MUCH_SMEM)
        snprintf(out, size, "needs %lld bytes of shared memory a block; %s allows %d",
                 (long long)prediction->most_smem_bytes, arch->name, arch->smem_optin_bytes);
    else if (prediction->infeasible == KKT_TOO_MANY_THREADS)
        snprintf(out, size, "%d threads a block; at most %d can be launched", fp->threads,
                 arch->max_threads_per_block);
    else if (role)
        snprintf(out, size,
                 "role '%s' declares %d registers; setmaxnreg takes multiples of 8 from 24 to 256",
                 role->name, role->declared_registers);
    else
        snprintf(out, size,
                 "its roles declare %lld registers a block; the launch allocates %d x %d = %lld",
                 (long long)declared_total(fp), prediction->registers, fp->threads,
                 (long long)prediction->registers * fp->threads);
}

/* Which role spills, the one that lacks most, by its own figures: the launch's are others. */
static void spill_reason(const kkt_footprint *fp, const kkt_arch *arch, char *out, size_t size) {
    const int cap = register_cap(fp, arch);
    double lacked = 0, wanted = 0;
    int which = 0, limit = 0;
    for (int r = 0; r < fp->role_count; ++r) {
        const share s = share_of(fp, r, cap);
        const double most = fmax(s.least, s.demand);
        if (s.least > s.limit && most - s.limit > lacked) {
            lacked = most - s.limit;
            wanted = most;
            which = r;
            limit = s.limit;
        }
    }
    if (fp->role_count == 1)
        snprintf(out, size, "; spills: it wants %.0f registers a thread and has %d", ceil(wanted),
                 limit);
    else
        snprintf(out, size, "; spills: role '%.20s' wants %.0f registers a thread and has %d",
                 fp->roles[which].name, ceil(wanted), limit);
}

void kkt_prediction_reason(const kkt_footprint *footprint, const kkt_arch *arch,
                           const kkt_device *device, const kkt_prediction *prediction, char *out,
                           size_t size) {
    if (prediction->infeasible != KKT_FEASIBLE) {
        infeasible_reason(footprint, arch, prediction, out, size);
        return;
    }
    /* Loads that go through L1 wait there too: a kernel without shared memory may be held up. */
    static const char pipe[] = " (the pipe of L1 and shared memory)";
    char spill[96] = "";
    if (prediction->at_the_cap)
        snprintf(spill, sizeof spill, "; at its limit of registers: it may spill up to %d bytes",
                 KKT_CAP_SPILL_BYTES);
    if (prediction->spills)
        spill_reason(footprint, arch, spill, sizeof spill);
    snprintf(out, size,
             "%s%s takes the time (%.1f us predicted, at least %.1f us on %s); %d block%s per SM, "
             "another is stopped by %s%s",
             kkt_limiter_name(prediction->limiter),
             prediction->limiter == KKT_LIMIT_SHARED_BANDWIDTH ? pipe : "",
             prediction->predicted_us, prediction->lower_bound_us, device->full_name,
             prediction->occupancy.blocks_per_sm,
             prediction->occupancy.blocks_per_sm == 1 ? "" : "s",
             kkt_limiter_name(prediction->occupancy.limiter), spill);
}
