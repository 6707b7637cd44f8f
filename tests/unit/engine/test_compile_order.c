/* What a run without a GPU compiles: every chunk size has its share, the most promising first.
 * Called with --worker compile this program is a compiler that answers at once. */
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

static int false_worker(void) {
    kkt_worker *worker;
    if (kkt_worker_open(&worker, NULL) != KKT_OK) {
        return 2;
    }
    kkt_frame frame;
    unsigned char cubin[] = "cubin";
    while (kkt_worker_receive(worker, &frame)) {
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

enum { MOST = 16 };

typedef struct compiled {
    int64_t chunks[MOST];
    double predicted_us[MOST];
    size_t count;
} compiled;

static kkt_status visit(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    compiled *c = context;
    if (result->has_build && c->count < MOST) {
        kkt_kernel const *kernel;
        kkt_values config;
        assert_int_equal(kkt_kernel_parse("gdn_state", &kernel, NULL), KKT_OK);
        const kkt_style *style = kkt_style_find(result->id.style);
        const kkt_param_table *table = &kkt_kernel_variant(kernel, style->id)->params;
        kkt_params_defaults(table, &config);
        assert_int_equal(kkt_params_parse(table, result->id.config, &config, NULL, NULL), KKT_OK);
        c->chunks[c->count] = kkt_params_get(table, &config, kernel->chunk_param);
        c->predicted_us[c->count++] = result->prediction.predicted_us;
    }
    return KKT_OK;
}

/* A run of so many candidates of one kernel and problem, in a database of its own. */
static compiled run(int64_t evals) {
    kkt_compile_pool_options pool_options = {.workers = 1, .cache = "/dev/null/none"};
    kkt_session_options options = {.problem = "tokens=8192", .budget_evals = evals, .seed = 1};
    kkt_session_summary summary;
    kkt_compile_pool *pool = NULL;
    kkt_db *db = NULL;
    compiled out = {0};
    options.arch = kkt_arch_find("sm80");
    options.device = kkt_device_first(options.arch);
    kkt_policy_defaults(&options.policy);
    assert_int_equal(kkt_kernel_parse("gdn_state", &options.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_search_parse("model", &options.search, NULL), KKT_OK);
    assert_int_equal(kkt_db_open(":memory:", KKT_DB_WRITE, &db, NULL), KKT_OK);
    assert_int_equal(kkt_compile_pool_open(&pool_options, &pool, NULL), KKT_OK);
    if (!kkt_compile_pool_unavailable(pool)) {
        kkt_error err = {0};
        kkt_result_filter filter = {.kernel = "gdn_state"};
        if (kkt_session_run(&options, db, pool, NULL, NULL, &summary, &err) != KKT_OK) {
            fail_msg("%s", err.message);
        }
        assert_int_equal(kkt_db_results(db, &filter, NULL, visit, &out, NULL), KKT_OK);
    }
    kkt_compile_pool_close(pool);
    kkt_db_close(db);
    return out;
}

static void each_chunk_size_has_its_share(void **state) {
    (void)state;
    compiled one = run(1), two = run(2), all = run(4);
    if (all.count == 0) {
        skip();
    }
    assert_int_equal(one.count, 1);
    assert_int_equal(two.count, 2);
    assert_int_equal(all.count, 4);
    double least = all.predicted_us[0];
    for (size_t i = 0; i < all.count; i++) {
        least = all.predicted_us[i] < least ? all.predicted_us[i] : least;
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(all.chunks[i], all.chunks[j]);
        }
    }
    assert_int_not_equal(one.chunks[0], 16);
    assert_true(one.predicted_us[0] <= least);
    assert_int_not_equal(two.chunks[0], two.chunks[1]);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--worker") == 0) {
        return false_worker();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_size_has_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
