/* Two databases side by side: the best time of each kernel, problem and chunk size in either, and
 * whether the second is slower. For a gate in continuous integration. */
#ifndef KKT_REPORTS_COMPARE_H
#define KKT_REPORTS_COMPARE_H

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "db/store.h"

typedef enum kkt_compare_verdict {
    KKT_COMPARE_SAME,      /* the intervals overlap */
    KKT_COMPARE_FASTER,    /* B's interval lies below A's */
    KKT_COMPARE_SLOWER,    /* above it, but within the limit */
    KKT_COMPARE_REGRESSED, /* above it, and the median by more than the limit */
    KKT_COMPARE_FAILED,    /* A has a time, B tried and has none */
    KKT_COMPARE_ABSENT,    /* A has a time, B did not try */
    KKT_COMPARE_NEW,       /* B alone has a time */
    KKT_COMPARE_COUNT
} kkt_compare_verdict;
const char *kkt_compare_verdict_name(kkt_compare_verdict verdict); /* "regressed" */

/* The best measured or replayed result of one side; staleness does not matter, for the two may be
 * of different sources on purpose. */
typedef struct kkt_compare_side {
    bool tried; /* anything was built or run */
    bool timed;
    bool noisy;   /* no better one has a narrow interval */
    bool made_up; /* by the fake backend: nothing was measured */
    double time_us, low_us, high_us;
    int64_t samples;
    const char *style, *config; /* NULL where nothing was timed */
} kkt_compare_side;

typedef struct kkt_compare_row {
    const char *arch, *device, *kernel, *problem;
    int64_t chunk; /* 0: the kernel has none */
    kkt_compare_side a, b;
    double ratio; /* time of B over time of A; NaN unless both have one */
    kkt_compare_verdict verdict;
} kkt_compare_row;

typedef struct kkt_compared {
    double limit_percent;
    size_t row_count;
    kkt_compare_row *rows; /* sorted: kernel, arch, device, problem, chunk; all have a time of A
                              or of B */
    size_t counts[KKT_COMPARE_COUNT];
    size_t left_out[2]; /* made-up times of A and of B that times of a GPU stand in for */
    size_t made_up[2];  /* rows whose time of A, or of B, is made up: there is no other */
} kkt_compared;

/* `kernel` NULL: all. Times that the fake backend made up count only for devices of which that
 * database holds no time of a GPU, as in reports. Everything lives in `arena`. */
kkt_status kkt_compare(kkt_db *a, kkt_db *b, const char *kernel, double limit_percent,
                       kkt_arena *arena, kkt_compared *out, kkt_error *err);
/* Rows that are to fail a gate: regressed or failed. */
size_t kkt_compare_failures(const kkt_compared *comparison);
/* One sentence on a row: "12.5 us, was 10.0 us: 1.25 times, beyond the limit of 3 %". */
void kkt_compare_sentence(const kkt_compared *comparison, const kkt_compare_row *row,
                          kkt_text *out);

/* What to know of made-up times, a line each: those left out, and those that a comparison rests on
 * because a database has no others. Nothing where there are none. */
void kkt_compare_caution(const kkt_compared *comparison, kkt_text *out);

/* Schema kkttune.compare/1 into an object. */
void kkt_compare_json(const kkt_compared *comparison, kkt_json *root);
/* A JUnit report, XML 1.0 in UTF-8: a test case a row; absent and new rows are skipped ones. What
 * XML cannot hold becomes '?'. */
void kkt_compare_junit(const kkt_compared *comparison, kkt_text *out);

#endif
