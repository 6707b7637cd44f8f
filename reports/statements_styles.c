/* Section 2.5 of the article: what stops each write style. */
#include <math.h>
#include <string.h>

#include "model/layout.h"
#include "model/ledger.h"
#include "model/occupancy.h"
#include "reports/statements_scene.h"

#define PUBLISHED "seed_warp_specialized" /* the article's layout */
#define KB 1024.0

kkt_limiter kkt_scene_blocks(const kkt_scene *scene, const kkt_entry *entry, int *blocks) {
    const kkt_occupancy_request request = {.threads = entry->threads,
                                           .registers = entry->registers,
                                           .dynamic_smem = entry->smem_bytes};
    kkt_occupancy occupancy = {.limiter = KKT_LIMIT_COUNT};
    *blocks = -1;
    if (kkt_occupancy_checked(scene->view->arch, &request, &occupancy, NULL) == KKT_OK)
        *blocks = occupancy.blocks_per_sm;
    return occupancy.limiter;
}

void kkt_scene_resources(const kkt_scene *scene, const kkt_entry *entry, kkt_text *out) {
    int blocks;
    kkt_limiter limiter = kkt_scene_blocks(scene, entry, &blocks);
    kkt_text_printf(out, "%d threads, %d registers, %.1f KB, ", entry->threads, entry->registers,
                    (double)entry->smem_bytes / KB);
    if (blocks < 0)
        kkt_text_add(out, "blocks unknown");
    else
        kkt_text_printf(out, "%d block%s (%s)", blocks, blocks == 1 ? "" : "s",
                        kkt_limiter_name(limiter));
}

static const char *style_name(kkt_style_id style) {
    return kkt_style_get(style)->name;
}

/* The kernels that hold the forward: of one launch, and of the consumer of T. */
static size_t consumers(const kkt_scene *scene, const char *out[2]) {
    size_t count = 0;
    if (scene->fused != NULL)
        out[count++] = kkt_scene_consumer(scene->fused);
    if (scene->with_t != NULL)
        out[count++] = kkt_scene_consumer(scene->with_t);
    return count;
}

/* ---- registers ---- */

/* The least that any compiled configuration spills; -1: none was compiled. */
static int64_t least_spill(const kkt_scene *scene, const char *kernel, int64_t chunk, int threads) {
    int64_t least = -1;
    for (size_t i = 0; i < scene->view->row_count; i++) {
        const kkt_entry *row = &scene->view->rows[i];
        if (row->chunk == chunk && row->threads == threads && row->spill_bytes >= 0 &&
            strcmp(row->kernel, kernel) == 0 &&
            strcmp(row->style, style_name(KKT_STYLE_FRAGMENT)) == 0 &&
            (least < 0 || row->spill_bytes < least))
            least = row->spill_bytes;
    }
    return least;
}

/* What is said of 128 threads; 256 halve the tables. */
void kkt_decide_register_cap(const kkt_scene *scene, kkt_decision *out) {
    static const struct {
        int64_t chunk;
        int threads;
        bool bursts; /* by the article, whose threads are 128 */
    } cases[] = {{64, 128, false}, {128, 128, true}, {128, 256, true}};
    const char *kernels[2];
    size_t hits = 0, total = 0, count = consumers(scene, kernels);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double tables = 3 * kkt_ledger_table_registers(cases[i].chunk, cases[i].threads);
        kkt_decision_say(out, "C = %lld, %d threads: three tables take %.0f registers",
                         (long long)cases[i].chunk, cases[i].threads, tables);
        for (size_t k = 0; k < count; k++) {
            int64_t spill = least_spill(scene, kernels[k], cases[i].chunk, cases[i].threads);
            if (spill < 0)
                continue;
            total++;
            hits += (spill > 0) == cases[i].bursts;
            kkt_decision_say(out, "%s spills %lld B at least", kernels[k], (long long)spill);
        }
    }
    out->compiled = total > 0;
    kkt_decision_count(out, hits, total);
}

/* ---- shared memory ---- */

static bool published(int64_t chunk, kkt_layout *out) {
    const kkt_layout_query query = {
        .chunk = chunk, .dk = 128, .block_dv = 64, .element_bytes = 2, .buffers = 2};
    const kkt_layout_source *source = kkt_layout_find(PUBLISHED);
    return source != NULL && kkt_layout_compute(source, &query, out);
}

/* Blocks with the registers that its threads take from the file counted as well. */
static int with_registers(const kkt_layout *layout, const kkt_arch *arch) {
    const kkt_occupancy_request request = {.threads = layout->threads,
                                           .registers = arch->registers_per_sm / layout->threads,
                                           .dynamic_smem = layout->total};
    kkt_occupancy occupancy;
    kkt_occupancy_compute(arch, &request, &occupancy);
    return occupancy.blocks_per_sm;
}

void kkt_decide_shared_blocks(const kkt_scene *scene, kkt_decision *out) {
    const char *kernels[2];
    size_t hits = 0, total = 0, count = consumers(scene, kernels);
    bool compiled = true;
    for (int64_t chunk = 32; chunk <= 64; chunk *= 2) {
        kkt_layout layout;
        if (!published(chunk, &layout))
            return;
        int promised = kkt_layout_blocks_per_sm(&layout, scene->view->arch);
        kkt_decision_say(out, "C = %lld: %.0f KB leave room for %d", (long long)chunk,
                         (double)layout.total / KB, promised);
        for (size_t k = 0; k < count; k++) {
            const kkt_entry *entry =
                kkt_scene_entry(scene, kernels[k], style_name(KKT_STYLE_WARP_SPECIALIZED), chunk);
            int blocks = -1;
            kkt_text resources = {0};
            if (entry == NULL)
                continue;
            kkt_scene_blocks(scene, entry, &blocks);
            kkt_scene_resources(scene, entry, &resources);
            kkt_decision_say(out, "%s: %s", kernels[k], kkt_text_get(&resources));
            kkt_text_free(&resources);
            total++;
            hits += blocks == promised;
            compiled = compiled && entry->provenance != KKT_PREDICTED;
        }
    }
    out->compiled = compiled && total > 0;
    kkt_decision_count(out, hits, total);
}

/* The article's table of three generations, by shared memory alone and with registers counted. */
void kkt_decide_small_cards(const kkt_scene *scene, kkt_decision *out) {
    static const struct {
        const char *arch;
        int blocks[2]; /* at C = 32 and 64, as printed there */
    } said[] = {{"sm89", {1, 0}}, {"sm80", {2, 1}}, {"sm90", {3, 1}}};
    size_t hits = 0, total = 0;
    (void)scene;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        const kkt_arch *arch = kkt_arch_find(said[i].arch);
        int alone[2], counted[2];
        for (int c = 0; c < 2; c++) {
            kkt_layout layout;
            if (arch == NULL || !published(c == 0 ? 32 : 64, &layout))
                return;
            alone[c] = kkt_layout_blocks_per_sm(&layout, arch);
            counted[c] = with_registers(&layout, arch);
            total += 2;
            hits +=
                (size_t)(alone[c] == said[i].blocks[c]) + (size_t)(counted[c] == said[i].blocks[c]);
        }
        kkt_decision_say(out,
                         "%s: %d and %d by shared memory, %d and %d with the registers of its "
                         "512 threads",
                         said[i].arch, alone[0], alone[1], counted[0], counted[1]);
    }
    kkt_decision_count(out, hits, total);
}

/* Doubling C: between a constant and a square, nearer to the line. */
void kkt_decide_linear_growth(const kkt_scene *scene, kkt_decision *out) {
    const char *kernels[2];
    size_t hits = 0, total = 0, count = consumers(scene, kernels);
    kkt_layout small, large;
    bool compiled = true;
    if (published(32, &small) && published(64, &large)) {
        total++;
        hits += (double)large.total / (double)small.total <= 2.5;
        kkt_decision_say(out, "the published layout: %.0f to %.0f KB, %.2f times",
                         (double)small.total / KB, (double)large.total / KB,
                         (double)large.total / (double)small.total);
    }
    for (size_t k = 0; k < count; k++) {
        const char *style = style_name(KKT_STYLE_WARP_SPECIALIZED);
        const kkt_entry *a = kkt_scene_entry(scene, kernels[k], style, 32);
        const kkt_entry *b = kkt_scene_entry(scene, kernels[k], style, 64);
        if (a == NULL || b == NULL || a->smem_bytes <= 0)
            continue;
        double ratio = (double)b->smem_bytes / (double)a->smem_bytes;
        total++;
        hits += ratio >= 1.5 && ratio <= 2.5;
        compiled = compiled && a->provenance != KKT_PREDICTED && b->provenance != KKT_PREDICTED;
        kkt_decision_say(out, "%s: %.1f to %.1f KB, %.2f times", kernels[k],
                         (double)a->smem_bytes / KB, (double)b->smem_bytes / KB, ratio);
    }
    out->compiled = compiled && total > 1;
    kkt_decision_count(out, hits, total);
}

/* ---- the solver ---- */

/* Stopped by bandwidth: four fifths of what a copy of the same bytes reaches. */
void kkt_decide_solver_bandwidth(const kkt_scene *scene, kkt_decision *out) {
    const kkt_device *device = scene->view->device;
    const char *solver = kkt_scene_solver(scene->with_t);
    double roof =
        device->copy_gbps.value > 0 ? device->copy_gbps.value : kkt_device_peak_gbps(device);
    size_t hits = 0, total = 0;
    for (int64_t chunk = 16; chunk <= 128; chunk *= 2) {
        const kkt_entry *entry = kkt_scene_entry(scene, solver, NULL, chunk);
        if (entry == NULL)
            continue;
        if (!kkt_entry_measured(entry)) {
            kkt_decision_say(out, "C = %lld: not measured; the model's limiter is %s",
                             (long long)chunk, entry->limiter != NULL ? entry->limiter : "unknown");
            continue;
        }
        double share = entry->hbm_bytes / entry->time_us / 1e3 / roof;
        total++;
        hits += share >= 0.8;
        kkt_decision_say(out, "C = %lld: %.4g us, %.0f %% of the bytes a copy would move",
                         (long long)chunk, entry->time_us, 100 * share);
    }
    out->measured = total > 0;
    kkt_decision_count(out, hits, total);
}

/* ---- all three ---- */

/* A style of a kernel at the C at which it is fastest; NULL: it was not measured at two at least.
 */
static const kkt_entry *best_of_style(const kkt_scene *scene, const char *kernel,
                                      const char *style) {
    const kkt_entry *best = NULL;
    size_t measured = 0;
    for (int64_t chunk = 16; kernel != NULL && chunk <= 128; chunk *= 2) {
        const kkt_entry *entry = kkt_scene_entry(scene, kernel, style, chunk);
        if (entry == NULL || !kkt_entry_measured(entry))
            continue;
        measured++;
        if (best == NULL || entry->time_us < best->time_us)
            best = entry;
    }
    return measured > 1 ? best : NULL;
}

void kkt_decide_range(const kkt_scene *scene, kkt_decision *out) {
    const char *kernels[3];
    size_t hits = 0, total = 0, styles, count = consumers(scene, kernels);
    const kkt_style *all = kkt_styles(&styles);
    const char *solver = kkt_scene_solver(scene->with_t);
    if (solver != NULL)
        kernels[count++] = solver;
    for (size_t k = 0; k < count; k++)
        for (size_t s = 0; s < styles; s++) {
            const kkt_entry *best = best_of_style(scene, kernels[k], all[s].name);
            if (best == NULL)
                continue;
            total++;
            hits += best->chunk == 32 || best->chunk == 64;
            kkt_decision_say(out, "%s %s: C = %lld (%.4g us)", kernels[k], all[s].name,
                             (long long)best->chunk, best->time_us);
        }
    out->measured = total > 0;
    kkt_decision_count(out, hits, total);
}

/* What stops another block of a style at C = 64, or of the solver what takes its time. */
static void say_limiter(const kkt_scene *scene, const char *kernel, const char *style,
                        kkt_limiter said, kkt_decision *out, size_t *hits, size_t *total) {
    const kkt_entry *entry = kkt_scene_entry(scene, kernel, style, 64);
    int blocks;
    if (entry == NULL)
        return;
    bool of_time = said >= KKT_LIMIT_HBM;
    kkt_limiter limiter = kkt_scene_blocks(scene, entry, &blocks);
    const char *found = of_time ? entry->limiter : kkt_limiter_name(limiter);
    if (found == NULL || blocks < 0)
        return;
    (*total)++;
    *hits += strcmp(found, kkt_limiter_name(said)) == 0;
    out->compiled = out->compiled && entry->provenance != KKT_PREDICTED;
    kkt_decision_say(out, "%s %s at C = 64: %s", kernel, entry->style, found);
}

void kkt_decide_three_resources(const kkt_scene *scene, kkt_decision *out) {
    const char *kernels[2];
    size_t hits = 0, total = 0, count = consumers(scene, kernels);
    out->compiled = true;
    for (size_t k = 0; k < count; k++) {
        say_limiter(scene, kernels[k], style_name(KKT_STYLE_FRAGMENT), KKT_LIMIT_REGISTERS, out,
                    &hits, &total);
        say_limiter(scene, kernels[k], style_name(KKT_STYLE_WARP_SPECIALIZED),
                    KKT_LIMIT_SHARED_MEMORY, out, &hits, &total);
    }
    if (scene->with_t != NULL)
        say_limiter(scene, kkt_scene_solver(scene->with_t), NULL, KKT_LIMIT_HBM, out, &hits,
                    &total);
    out->compiled = out->compiled && total > 0;
    kkt_decision_count(out, hits, total);
}
