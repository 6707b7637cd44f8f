/* row_sum with problem keys that bear the names a generated function might want for itself, with a
 * chunk size and a condition of its rows, so that every part of the look-up is written. The sizes
 * are the first two keys, as in row_sum; the others change nothing. */
#define kkt_kernel_row_sum row_sum_of_clash
extern const struct kkt_kernel row_sum_of_clash;
#include "../unit/kernels/toy_kernel/row_sum.c" // NOLINT(bugprone-suspicious-include)

extern const kkt_kernel kkt_kernel_clash;

#define KEY(text)                                                                                  \
    { .name = (text), .help = "a name", .low = 1, .high = 4096, .fallback = 64 }
static const kkt_param clashing_keys[] = {
    KEY("rows"),      KEY("count"),    KEY("best"),     KEY("row"),   KEY("apart"),
    KEY("nearest"),   KEY("tier"),     KEY("i"),        KEY("exact"), KEY("chunk_wanted"),
    KEY("best_tier"), KEY("standing"), KEY("distance"),
};

static const char *const clashing_problems[] = {"rows=4096", NULL};
static const char *const needs[] = {"rows >= kkt_row->threads", NULL};

static const kkt_variant clashing = {
    .style = KKT_STYLE_FRAGMENT,
    .params = {.what = "parameter", .params = params, .count = 2},
    .source = "row_sum/row_sum.cu",
    .sources = sources,
    .row_needs = needs,
    .applicable = applicable,
    .footprint = footprint,
    .plan = plan,
    .tolerance = tolerance,
};

static const kkt_variant *const clashing_variants[] = {&clashing};

const kkt_kernel kkt_kernel_clash = {
    .name = "clash",
    .summary = "sums of rows, with awkward names",
    .problem = {.what = "problem key",
                .params = clashing_keys,
                .count = sizeof clashing_keys / sizeof clashing_keys[0]},
    .default_problems = clashing_problems,
    .chunk_param = "rows_per_thread",
    .variants = clashing_variants,
    .variant_count = 1,
    .tensors = tensors,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .check_problem = check_problem,
    .make_inputs = make_inputs,
    .check_inputs = check_inputs,
    .part_count = part_count,
    .part_regions = part_regions,
    .reference = reference,
};
