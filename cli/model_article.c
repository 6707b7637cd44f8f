#include "cli/model_article.h"

#include <stdio.h>

#include "base/text.h"
#include "model/layout.h"
#include "model/ledger.h"
#include "model/occupancy.h"
#include "model/style.h"

/* The article's three styles at its own values. Style A keeps three C x C fp32 tables in the
 * registers of 128 threads; B is 512 threads over the double-buffered layout; C is kkt_solve. */
#define TABLES 3
#define A_THREADS 128
#define B_THREADS 512
#define C_THREADS 128

/* What 512 threads are given at launch: the register file over the block. */
#define B_REGISTERS 128

static const char *const arch_names[] = {"sm80", "sm89", "sm90"};
#define ARCHS (sizeof arch_names / sizeof arch_names[0])

static const int64_t chunks[] = {16, 32, 64, 128};
#define CHUNKS (sizeof chunks / sizeof chunks[0])

static kkt_layout layout_at(const char *name, int64_t chunk, int buffers) {
    kkt_layout_query query = {
        .chunk = chunk, .dk = 128, .block_dv = 64, .element_bytes = 2, .buffers = buffers};
    kkt_layout layout = {0};
    kkt_layout_compute(kkt_layout_find(name), &query, &layout);
    return layout;
}

static double a_registers(int64_t chunk) {
    return TABLES * kkt_ledger_table_registers(chunk, A_THREADS);
}

/* The largest chunk whose tables a thread can hold. */
static int64_t a_limit(void) {
    int64_t limit = 0;
    for (size_t i = 0; i < CHUNKS; ++i)
        if (a_registers(chunks[i]) <= 255)
            limit = chunks[i];
    return limit;
}

static int64_t b_limit(const kkt_arch *arch) {
    int64_t limit = 0;
    for (size_t i = 0; i < CHUNKS; ++i) {
        kkt_layout layout = layout_at("seed_warp_specialized", chunks[i], 2);
        if (kkt_layout_blocks_per_sm(&layout, arch) > 0)
            limit = chunks[i];
    }
    return limit;
}

static int exact_blocks(const kkt_arch *arch, int threads, int registers, int64_t smem) {
    kkt_occupancy_request request = {
        .threads = threads, .registers = registers, .dynamic_smem = smem};
    kkt_occupancy occupancy;
    kkt_occupancy_compute(arch, &request, &occupancy);
    return occupancy.blocks_per_sm;
}

/* Style A's tables and a usual overhead, nothing else. */
static int a_blocks(const kkt_arch *arch, int64_t chunk) {
    double registers = a_registers(chunk) + kkt_style_get(KKT_STYLE_FRAGMENT)->register_overhead;
    return exact_blocks(arch, A_THREADS, registers > 255 ? 255 : (int)registers, 0);
}

static void row(kkt_table *table, const char *what, const char *a, const char *b, const char *c) {
    kkt_table_cell(table, "%s", what);
    kkt_table_cell(table, "%s", a);
    kkt_table_cell(table, "%s", b);
    kkt_table_cell(table, "%s", c);
}

static void growth_rows(kkt_table *table) {
    for (size_t i = 0; i < CHUNKS; ++i) {
        char what[40], a[60], b[60], c[60];
        kkt_layout layout = layout_at("seed_warp_specialized", chunks[i], 2);
        snprintf(what, sizeof what, "C = %lld", (long long)chunks[i]);
        snprintf(a, sizeof a, "%.0f regs a thread%s", a_registers(chunks[i]),
                 a_registers(chunks[i]) > 255 ? " > 255: spills" : "");
        snprintf(b, sizeof b, "%.1f KB", (double)layout.total / 1024);
        snprintf(c, sizeof c, "%lld B of T a token", (long long)(2 * chunks[i]));
        row(table, what, a, b, c);
    }
}

/* Style B by shared memory alone, as the article counts, and exactly. */
static void occupancy_rows(kkt_table *table) {
    for (size_t i = 0; i < ARCHS; ++i) {
        const kkt_arch *arch = kkt_arch_find(arch_names[i]);
        kkt_layout b32 = layout_at("seed_warp_specialized", 32, 2);
        kkt_layout b64 = layout_at("seed_warp_specialized", 64, 2);
        kkt_layout c64 = layout_at("flashqla_kkt_solve", 64, 1);
        kkt_layout c32 = layout_at("flashqla_kkt_solve", 32, 1);
        char what[60], a[60], b[120], c[60];
        snprintf(what, sizeof what, "%s blocks per SM, C = 32 / 64", arch->name);
        snprintf(a, sizeof a, "%d / %d by registers", a_blocks(arch, 32), a_blocks(arch, 64));
        snprintf(b, sizeof b, "%d / %d by smem, %d / %d exactly",
                 kkt_layout_blocks_per_sm(&b32, arch), kkt_layout_blocks_per_sm(&b64, arch),
                 exact_blocks(arch, B_THREADS, B_REGISTERS, b32.total),
                 exact_blocks(arch, B_THREADS, B_REGISTERS, b64.total));
        snprintf(c, sizeof c, "%d / %d by smem", kkt_layout_blocks_per_sm(&c32, arch),
                 kkt_layout_blocks_per_sm(&c64, arch));
        row(table, what, a, b, c);
        snprintf(what, sizeof what, "%s actual limit of C", arch->name);
        snprintf(a, sizeof a, "%lld", (long long)a_limit());
        snprintf(b, sizeof b, "%lld", (long long)b_limit(arch));
        row(table, what, a, b, "none on chip; the article takes 32");
    }
}

static void notes(void) {
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_layout b32 = layout_at("seed_warp_specialized", 32, 2);
    kkt_layout b64 = layout_at("seed_warp_specialized", 64, 1);
    printf("Where exact occupancy differs from the article:\n");
    printf(
        "- \"3 blocks per SM\" on sm90 at C = 32 counts shared memory alone. 512 threads at the "
        "launch allocation of %d\n  registers fill the file of %d: %d block. Three blocks need "
        "at most 40 registers a thread (%d), two at most 64 (%d).\n",
        B_REGISTERS, arch->registers_per_sm, exact_blocks(arch, B_THREADS, B_REGISTERS, b32.total),
        exact_blocks(arch, B_THREADS, 40, b32.total), exact_blocks(arch, B_THREADS, 64, b32.total));
    printf(
        "- A second block from single buffers at C = 64 (%.0f KB, %d by shared memory) fails for "
        "the same reason: %d exactly.\n",
        (double)b64.total / 1024, kkt_layout_blocks_per_sm(&b64, arch),
        exact_blocks(arch, B_THREADS, B_REGISTERS, b64.total));
    kkt_layout published = layout_at("flashqla_fwd", 64, 2);
    printf("- The published kernel of style B keeps its state tile as dk x block_dv, not C x dv: "
           "%.1f KB at C = 64, not %.1f.\n",
           (double)published.total / 1024,
           (double)layout_at("seed_warp_specialized", 64, 2).total / 1024);
    printf("- The cap of C = %lld on style A belongs to %d threads: at 256 threads three tables of "
           "C = 128 take %.0f registers.\n\n",
           (long long)a_limit(), A_THREADS, TABLES * kkt_ledger_table_registers(128, 256));
}

void kkt_model_print_article(void) {
    static const char *const headings[] = {"", "A: fragment", "B: warp_specialized",
                                           "C: materialized (kkt_solve)"};
    char a[24], b[24], c[24];
    const kkt_style *fragment = kkt_style_get(KKT_STYLE_FRAGMENT);
    const kkt_style *specialized = kkt_style_get(KKT_STYLE_WARP_SPECIALIZED);
    const kkt_style *materialized = kkt_style_get(KKT_STYLE_MATERIALIZED);
    printf("Three write styles side by side (the article's values: dk = 128, block_dv = 64, "
           "2-byte elements)\n");
    kkt_table *table = kkt_table_open(4, headings);
    snprintf(a, sizeof a, "%d", A_THREADS);
    snprintf(b, sizeof b, "%d", B_THREADS);
    snprintf(c, sizeof c, "%d", C_THREADS);
    row(table, "threads", a, b, c);
    row(table, "intermediates in", "registers (3 C^2 tables)", "shared memory, double-buffered",
        "HBM (T), registers inside");
    row(table, "bursts first", "registers: 255 a thread", "shared memory, then registers x threads",
        "HBM bandwidth of T");
    growth_rows(table);
    occupancy_rows(table);
    row(table, "secondary constraint", fragment->secondary, specialized->secondary,
        materialized->secondary);
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    notes();
}
