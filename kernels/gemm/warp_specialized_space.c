/* Parameters and constraints of the warp-specialized gemm. */
#include <stdio.h>

#include "base/integer.h"
#include "kernels/gemm/warp_specialized.h"

enum { COOPERATIVE, PING_PONG };
enum { WARPS, TMA };

enum {
    LAUNCH_REGISTERS = 65536 / KKT_GEMM_WS_THREADS / 8 * 8,
    RASTER = 8,           /* where no other is asked for */
    CLUSTER_MAX = 4,      /* what resident_blocks knows of */
    ACCUMULATOR_MAX = 128 /* registers of a thread that are sums: operands and addresses need the
                              rest of what it can have */
};

static const char *const consumer_names[] = {"cooperative", "ping_pong"};
static const char *const store_names[] = {"tma", "warps"};

const kkt_param kkt_gemm_ws_params[KKT_GEMM_WS_PARAMS] = {
    [KKT_GEMM_BM] = {.name = "bm",
                     .macro = "KKT_BM",
                     .help = "rows of c of a tile",
                     .count = 3,
                     .values = {128, 256, 64},
                     .fallback = 128},
    [KKT_GEMM_BN] = {.name = "bn",
                     .macro = "KKT_BN",
                     .help = "columns of c of a tile",
                     .count = 3,
                     .values = {256, 128, 64},
                     .fallback = 256},
    [KKT_GEMM_BK] = {.name = "bk",
                     .macro = "KKT_BK",
                     .help = "terms of a step along k",
                     .count = 2,
                     .values = {64, 128},
                     .fallback = 64},
    [KKT_GEMM_SPLIT_K] = {.name = "split_k",
                          .macro = "KKT_SPLIT_K",
                          .help = "parts of k whose sums go through memory",
                          .count = 3,
                          .values = {1, 2, 4},
                          .fallback = 1},
    [KKT_GEMM_WS_STAGES] = {.name = "stages",
                            .macro = "KKT_STAGES",
                            .help = "steps along k in flight",
                            .count = 7,
                            .values = {3, 4, 5, 6, 8, 7, 2},
                            .fallback = 3},
    [KKT_GEMM_WS_CLUSTER_M] = {.name = "cluster_m",
                               .macro = "KKT_CLUSTER_M",
                               .help =
                                   "tiles below one another in a cluster, which share loads of b",
                               .count = 2,
                               .values = {2, 1},
                               .fallback = 2},
    [KKT_GEMM_WS_CLUSTER_N] = {.name = "cluster_n",
                               .macro = "KKT_CLUSTER_N",
                               .help = "tiles side by side in a cluster, which share loads of a",
                               .count = 2,
                               .values = {1, 2},
                               .fallback = 1},
    [KKT_GEMM_WS_CLUSTER_K] = {.name = "cluster_k",
                               .macro = "KKT_CLUSTER_K",
                               .help = "blocks of a cluster that share k and add up their sums",
                               .count = 2,
                               .values = {1, 2},
                               .fallback = 1},
    [KKT_GEMM_WS_CONSUMERS] = {.name = "consumers",
                               .macro = "KKT_PING_PONG",
                               .help = "the two warpgroups that multiply: a tile together, or one "
                                       "each in turns",
                               .count = 2,
                               .values = {COOPERATIVE, PING_PONG},
                               .names = consumer_names,
                               .fallback = COOPERATIVE},
    [KKT_GEMM_WS_STORE] = {.name = "store",
                           .macro = "KKT_BULK_STORE",
                           .help = "who writes staged rows of c: their warp, or TMA",
                           .count = 2,
                           .values = {TMA, WARPS},
                           .names = store_names,
                           .fallback = TMA},
    [KKT_GEMM_WS_STORE_PANELS] = {.name = "store_panels",
                                  .macro = "KKT_STORE_PANELS",
                                  .help = "64 x 64 of c that a warpgroup stages at a time",
                                  .count = 3,
                                  .values = {4, 2, 1},
                                  .fallback = 4},
    [KKT_GEMM_WS_RASTER] = {.name = "raster",
                            .macro = "KKT_RASTER",
                            .help = "rows of clusters' tiles that are gone down before the next "
                                    "column",
                            .count = 4,
                            .values = {RASTER, 16, 4, 1},
                            .fallback = RASTER},
    [KKT_GEMM_WS_PROMOTION] = {.name = "promotion",
                               .help = "bytes that a load of a or b makes L2 fetch at least",
                               .count = 2,
                               .values = {128, 256},
                               .fallback = 128},
    [KKT_GEMM_WS_PERSISTENT] = {.name = "persistent",
                                .help = "1: a block an SM, which takes tile after tile; 0: a block "
                                        "a tile",
                                .count = 2,
                                .values = {1, 0},
                                .fallback = 1},
    [KKT_GEMM_WS_REGISTERS] = {.name = "consumer_registers",
                               .macro = "KKT_CONSUMER_REGISTERS",
                               .help = "of a thread that multiplies; the warpgroup that loads has "
                                       "what is left",
                               .count = 2,
                               .values = {232, 240},
                               .fallback = 232},
};

/* ---- sizes ---- */

/* One block an SM. The SMs of a GPC that make no whole cluster stay idle: of an H200, 66 clusters
 * of two are resident and 30 of four (cuOccupancyMaxActiveClusters). The device is the
 * architecture's first; on one with fewer SMs the rest waits. */
static int64_t resident_blocks(const kkt_arch *arch, int64_t cluster) {
    const int64_t sms = (int64_t)kkt_device_first(arch)->sm_count.value;
    return cluster > 2 ? sms * 30 / 33 / cluster * cluster : sms / cluster * cluster;
}

kkt_gemm_ws kkt_gemm_ws_sizes(const kkt_values *problem, const kkt_values *config,
                              const kkt_arch *arch) {
    const int64_t *p = problem->v, *c = config->v;
    kkt_gemm_ws s = {.bm = c[KKT_GEMM_BM],
                     .bn = c[KKT_GEMM_BN],
                     .bk = c[KKT_GEMM_BK],
                     .stages = c[KKT_GEMM_WS_STAGES],
                     .store_panels = c[KKT_GEMM_WS_STORE_PANELS],
                     .promotion = c[KKT_GEMM_WS_PROMOTION],
                     .raster = c[KKT_GEMM_WS_RASTER],
                     .registers = c[KKT_GEMM_WS_REGISTERS],
                     .split_k = c[KKT_GEMM_SPLIT_K],
                     .cluster_m = c[KKT_GEMM_WS_CLUSTER_M],
                     .cluster_n = c[KKT_GEMM_WS_CLUSTER_N],
                     .cluster_k = c[KKT_GEMM_WS_CLUSTER_K],
                     .ping_pong = c[KKT_GEMM_WS_CONSUMERS] == PING_PONG,
                     .bulk_store = c[KKT_GEMM_WS_STORE] == TMA,
                     .persistent = c[KKT_GEMM_WS_PERSISTENT] != 0,
                     .a_along_k = kkt_gemm_a(problem).along_k,
                     .b_along_k = kkt_gemm_b(problem).along_k};
    s.load_registers = 3 * LAUNCH_REGISTERS - KKT_GEMM_WS_GROUPS * s.registers;
    s.cluster = s.cluster_m * s.cluster_n * s.cluster_k;
    s.group_rows = s.ping_pong ? s.bm : s.bm / KKT_GEMM_WS_GROUPS;
    s.resident = resident_blocks(arch, s.cluster);
    s.rows = kkt_divide_up(p[KKT_GEMM_M], s.bm * s.cluster_m);
    s.columns = kkt_divide_up(p[KKT_GEMM_N], s.bn * s.cluster_n);
    s.tiles = s.rows * s.columns * s.cluster * s.split_k;
    s.grid = s.persistent && s.tiles > s.resident ? s.resident : s.tiles;
    s.k_steps = kkt_divide_up(p[KKT_GEMM_K], s.bk);
    s.steps = kkt_divide_up(s.k_steps, s.cluster_k * s.split_k);
    return s;
}

/* ---- constraints ---- */

static bool tile_fits(const kkt_gemm_ws *s, char *reason, size_t size) {
    const long long sums = s->group_rows * s->bn / KKT_GEMM_WARPGROUP;
    if (s->group_rows % KKT_GEMM_PANEL != 0) {
        kkt_reason(reason, size, "bm %lld: a warpgroup multiplies 64 rows at a time, and has %lld",
                   (long long)s->bm, (long long)s->group_rows);
        return false;
    }
    if (sums <= ACCUMULATOR_MAX)
        return true;
    kkt_reason(reason, size,
               "bm %lld, bn %lld: %lld sums a thread, above the %d that leave room for the rest",
               (long long)s->bm, (long long)s->bn, sums, ACCUMULATOR_MAX);
    return false;
}

/* What a block loads for the others: whole panels, or groups of eight rows within a panel. */
static bool share_fits(int64_t extent, int64_t shares, bool along_k, const char *what,
                       const char *key, char *reason, size_t size) {
    const int64_t unit = along_k ? 8 : KKT_GEMM_PANEL;
    if (extent % (shares * unit) == 0)
        return true;
    kkt_reason(reason, size, "%s %lld: a share of %s is no multiple of %lld", key,
               (long long)shares, what, (long long)unit);
    return false;
}

static bool cluster_fits(const kkt_gemm_ws *s, char *reason, size_t size) {
    if (s->cluster > CLUSTER_MAX) {
        kkt_reason(reason, size, "a cluster of %lld blocks is above the limit of %d",
                   (long long)s->cluster, CLUSTER_MAX);
        return false;
    }
    return share_fits(s->bm, s->cluster_n, s->a_along_k, "bm", "cluster_n", reason, size) &&
           share_fits(s->bn, s->cluster_m, s->b_along_k, "bn", "cluster_m", reason, size);
}

static bool parts_fit(const kkt_gemm_ws *s, char *reason, size_t size) {
    const long long in_cluster = s->cluster_k, parts = in_cluster * s->split_k;
    if (parts > 1 && parts > s->k_steps) {
        kkt_reason(reason, size,
                   "k has %lld steps, fewer than the %lld parts of cluster_k, split_k",
                   (long long)s->k_steps, parts);
        return false;
    }
    if (in_cluster == 1)
        return true;
    if (s->ping_pong || s->grid < s->tiles) {
        kkt_reason(reason, size, "cluster_k %lld needs %s: a block sends its sums once", in_cluster,
                   s->ping_pong ? "both warpgroups at one tile" : "persistent=0");
        return false;
    }
    if (s->bn % (in_cluster * KKT_GEMM_PANEL) != 0) {
        kkt_reason(reason, size, "cluster_k %lld leaves a block no whole 64 of bn %lld columns",
                   in_cluster, (long long)s->bn);
        return false;
    }
    return true;
}

static bool store_fits(const kkt_values *problem, const kkt_gemm_ws *s, char *reason, size_t size) {
    const long long panels = s->store_panels, row_bytes = problem->v[KKT_GEMM_N] * 2;
    if (s->split_k * s->cluster_k > 1 && panels > 1) {
        kkt_reason(reason, size,
                   "store_panels %lld: sums of parts of k are staged one by one or not", panels);
        return false;
    }
    if (panels * KKT_GEMM_PANEL > s->bn) {
        kkt_reason(reason, size,
                   "store_panels %lld is more than the %lld that a row of the tile has", panels,
                   (long long)s->bn / KKT_GEMM_PANEL);
        return false;
    }
    if (s->bulk_store && (s->split_k > 1 || row_bytes % 16 != 0)) {
        if (s->split_k > 1)
            kkt_reason(reason, size, "store tma: sums of parts of k are not staged");
        else
            snprintf(
                reason, size,
                "store tma: rows of c, %lld bytes, are no multiple of 16; store=warps takes any",
                row_bytes);
        return false;
    }
    return true;
}

static bool grid_fits(const kkt_gemm_ws *s, char *reason, size_t size) {
    if (!s->persistent && s->tiles <= s->resident) {
        kkt_reason(reason, size, "persistent=0 changes nothing: there are %lld tiles, one a block",
                   (long long)s->tiles);
        return false;
    }
    if (s->raster != RASTER && s->raster >= s->rows && s->rows <= RASTER) {
        kkt_reason(reason, size, "raster %lld does as %d: there are %lld rows of clusters' tiles",
                   (long long)s->raster, RASTER, (long long)s->rows);
        return false;
    }
    if (s->raster != RASTER && s->columns == 1) {
        kkt_reason(reason, size, "raster %lld does as %d: there is one column of clusters' tiles",
                   (long long)s->raster, RASTER);
        return false;
    }
    if (!s->persistent && s->cluster > 2) {
        kkt_reason(
            reason, size,
            "persistent=0: the device holds %lld blocks in clusters of %lld, and the next ones "
            "wait for a whole tile",
            (long long)s->resident, (long long)s->cluster);
        return false;
    }
    return true;
}

bool kkt_gemm_ws_applicable(const kkt_values *problem, const kkt_values *config,
                            const kkt_arch *arch, char *reason, size_t size) {
    if (!arch->has_wgmma || !arch->has_tma) {
        kkt_reason(reason, size, "%s has no wgmma; this style is written for sm_90a", arch->name);
        return false;
    }
    const kkt_gemm_ws s = kkt_gemm_ws_sizes(problem, config, arch);
    return kkt_gemm_applicable(problem, config, arch, reason, size) &&
           tile_fits(&s, reason, size) && cluster_fits(&s, reason, size) &&
           parts_fit(&s, reason, size) && store_fits(problem, &s, reason, size) &&
           grid_fits(&s, reason, size);
}
