/* What makes a stored row stale against the kernels of this program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernel.h"
#include "tuner/engine/freshness.h"

typedef struct seen {
    char reason[200];
    size_t rows;
} seen;

static kkt_status look(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    seen *s = context;
    snprintf(s->reason, sizeof s->reason, "%s", result->stale_reason ? result->stale_reason : "");
    s->rows++;
    return KKT_OK;
}

/* Why one build of the row, with the present hash, is stale; "" where it is not. */
static seen staleness(const char *problem, const char *config) {
    char folder[] = "/tmp/kkt_freshness_XXXXXX";
    char path[64];
    char hash[65];
    kkt_error error;
    kkt_db *db;
    int64_t candidate;
    int64_t build;
    seen s = {.rows = 0};
    const kkt_kernel *kernel;
    kkt_arena *arena = kkt_arena_open();
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/k.db", folder);
    assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, &error), KKT_OK);
    assert_int_equal(kkt_kernel_parse("kkt_solve", &kernel, &error), KKT_OK);
    kkt_variant_hash(kernel->variants[0], hash);
    const kkt_identity id = {.kernel = kernel->name,
                             .style = kkt_style_get(kernel->variants[0]->style)->name,
                             .arch = "sm90",
                             .device = "h200",
                             .problem = problem,
                             .config = config};
    const kkt_build_record record = {.kernel_hash = hash, .outcome = KKT_OUTCOME_COMPILED};
    assert_int_equal(kkt_db_candidate(db, &id, &candidate, &error), KKT_OK);
    assert_int_equal(kkt_db_put_build(db, candidate, &record, &build, &error), KKT_OK);
    assert_int_equal(kkt_db_results(db, NULL, kkt_freshness_make(arena, NULL), look, &s, &error),
                     KKT_OK);
    kkt_db_close(db);
    unlink(path);
    rmdir(folder);
    kkt_arena_close(arena);
    return s;
}

static void a_readable_row_is_fresh(void **state) {
    (void)state;
    seen s = staleness("tokens=1024", "chunk=64");
    assert_int_equal(s.rows, 1);
    assert_string_equal(s.reason, "");
}

static void an_unreadable_row_is_stale(void **state) {
    (void)state;
    static const char reason[] = "configuration is no longer one of the kernel's";
    assert_string_equal(staleness("tokens=1024", "chunk=48").reason, reason);
    assert_string_equal(staleness("tokens=1024", "chunk=64,bygone=1").reason, reason);
    assert_string_equal(staleness("tokens=1024,bygone=1", "chunk=64").reason, reason);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_readable_row_is_fresh),
        cmocka_unit_test(an_unreadable_row_is_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
