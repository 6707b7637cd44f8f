/* A compile that took too long is no final answer: another run tries it again, the same one does
 * not. Called with --worker compile this program is a compiler that never ends, or one that answers
 * at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/compile/cache.h"
#include "tuner/compile/frames.h"
#include "tuner/engine/session_internal.h"

static const char SLOW[] = "KKT_TEST_SLOW_COMPILER";

static int false_worker(void) {
    kkt_worker *worker;
    if (kkt_worker_open(&worker, NULL) != KKT_OK) {
        return 2;
    }
    kkt_frame frame;
    unsigned char cubin[] = "cubin";
    volatile int turns = 0;
    while (kkt_worker_receive(worker, &frame)) {
        while (getenv(SLOW)) {
            turns = !turns;
        }
        kkt_compile_result result = {.ok = true, .cubin = cubin, .cubin_size = sizeof cubin};
        kkt_packer out = {0};
        kkt_result_pack(&result, &out);
        kkt_worker_send(worker, KKT_FRAME_COMPILED, out.data, out.size);
        kkt_packer_free(&out);
        kkt_frame_free(&frame);
    }
    kkt_worker_close(worker);
    return 0;
}

static kkt_db *open_db(void) {
    kkt_db *db = NULL;
    assert_int_equal(kkt_db_open(":memory:", KKT_DB_WRITE, &db, NULL), KKT_OK);
    return db;
}

static kkt_compile_pool *open_pool(void) {
    kkt_compile_pool_options options = {
        .workers = 1, .job_seconds = 0.1, .cache = "/dev/null/none"};
    kkt_compile_pool *pool = NULL;
    assert_int_equal(kkt_compile_pool_open(&options, &pool, NULL), KKT_OK);
    return pool;
}

static kkt_session_options session_options(void) {
    kkt_session_options options = {.problem = "tokens=8192", .budget_evals = 3, .seed = 1};
    options.arch = kkt_arch_find("sm90");
    options.device = kkt_device_first(options.arch);
    kkt_policy_defaults(&options.policy);
    assert_int_equal(kkt_kernel_parse("kkt_solve", &options.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_search_parse("random", &options.search, NULL), KKT_OK);
    return options;
}

static kkt_session_counts run(kkt_db *db) {
    kkt_session_options options = session_options();
    kkt_compile_pool *pool = open_pool();
    kkt_session_summary summary;
    kkt_error err = {0};
    if (kkt_session_run(&options, db, pool, NULL, NULL, &summary, &err) != KKT_OK) {
        fail_msg("%s", err.message);
    }
    kkt_compile_pool_close(pool);
    return summary.counts;
}

static void another_run_tries_again(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool();
    bool unavailable = kkt_compile_pool_unavailable(pool) != NULL;
    kkt_compile_pool_close(pool);
    if (unavailable) {
        skip();
    }
    kkt_db *db = open_db();
    setenv(SLOW, "1", 1);
    for (int round = 0; round < 2; round++) {
        kkt_session_counts counts = run(db);
        assert_int_equal(counts.timed_out, 3);
        assert_int_equal(counts.compiled + counts.reused, 0);
    }
    unsetenv(SLOW);
    kkt_session_counts counts = run(db);
    assert_int_equal(counts.compiled, 3);
    assert_int_equal(counts.timed_out + counts.quarantined, 0);
    kkt_db_close(db);
}

/* What one session knows of the default configuration; with `outcome` it then builds it so, and
 * looks again. */
typedef struct looks {
    known first, second;
} looks;

static looks look(kkt_db *db, const kkt_compile_result *build) {
    kkt_session_options options = session_options();
    kkt_session_summary summary = {0};
    task one;
    kkt_compile_pool *pool = open_pool();
    session s = {.options = &options, .db = db, .pool = pool, .out = &summary, .tasks = &one};
    session_open(&s);
    const kkt_variant *variant = options.kernel->variants[0];
    assert_int_equal(session_add_task(&s, options.kernel, variant, options.problem, NULL), KKT_OK);
    kkt_point point;
    trial slot;
    assert_true(kkt_space_next(one.space, NULL, NULL, &point));
    assert_int_equal(session_slot_begin(&s, &one, &point, &slot, NULL), KKT_OK);
    looks out = {.first = slot.known};
    slot.compiled = true;
    slot.build = *build;
    assert_int_equal(session_store_build(&s, &slot, NULL), KKT_OK);
    assert_int_equal(session_slot_begin(&s, &one, &point, &slot, NULL), KKT_OK);
    out.second = slot.known;
    session_close(&s);
    kkt_compile_pool_close(pool);
    return out;
}

static void the_same_run_does_not(void **state) {
    (void)state;
    char log[] = "compiling took more than 20 s of processor time";
    const kkt_compile_result late = {.timed_out = true, .log = log}, wrong = {.log = log};
    kkt_db *db = open_db();
    for (int round = 0; round < 2; round++) {
        looks at = look(db, &late);
        assert_false(at.first.settled || at.first.failed);
        assert_true(at.second.settled && at.second.failed);
    }
    assert_false(look(db, &wrong).first.settled);
    assert_true(look(db, &wrong).first.settled); /* what does not compile stays so */
    kkt_db_close(db);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        return false_worker();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_run_tries_again),
        cmocka_unit_test(the_same_run_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
