/* Ablations on the fake backend: what is stored, reused and chosen as the base. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tuner/engine/ablate.h"

typedef struct request {
    kkt_db *db;
    const char *fake; /* options of the fake backend; NULL: no backend */
    const char *start;
    const char *arch; /* NULL: sm90 */
    int64_t chunk;
    double seconds;
    bool retry;
} request;

static kkt_db *open_db(void) {
    kkt_db *db = NULL;
    assert_int_equal(kkt_db_open(":memory:", KKT_DB_WRITE, &db, NULL), KKT_OK);
    return db;
}

static kkt_status ablate(const request *r, kkt_ablate_result *out, kkt_error *err) {
    kkt_ablate_options options = {.start = r->start, .chunk = r->chunk};
    options.session.problem = "tokens=8192";
    options.session.arch = kkt_arch_find(r->arch ? r->arch : "sm90");
    options.session.device = kkt_device_first(options.session.arch);
    options.session.seed = 1;
    options.session.budget_seconds = r->seconds;
    options.session.retry = r->retry;
    kkt_policy_defaults(&options.session.policy);
    assert_int_equal(kkt_kernel_parse("kkt_solve", &options.session.kernel, NULL), KKT_OK);
    const kkt_backend_type *type = NULL;
    kkt_backend *backend = NULL;
    if (r->fake) {
        kkt_backend_options fake = {.fake = r->fake};
        type = kkt_backend_find("fake");
        assert_int_equal(type->open(&fake, &backend, err), KKT_OK);
    }
    kkt_status status = kkt_ablate_run(&options, r->db, NULL, type, backend, out, err);
    if (backend) {
        type->close(backend);
    }
    return status;
}

typedef struct tally {
    int64_t rows, timed, moves, bases, failed, counted;
    char base[512];
} tally;

static kkt_status visit(void *context, const kkt_result *result, kkt_error *err) {
    (void)err;
    tally *t = context;
    const char *policy = result->has_run && result->run.policy ? result->run.policy : "";
    t->rows++;
    t->timed += result->has_run && isfinite(result->run.time_us);
    t->failed += result->has_run && !isfinite(result->run.time_us);
    t->moves += strstr(policy, "ablation=move") != NULL;
    t->counted += result->has_run && isfinite(result->run.hbm_bytes_counted);
    if (strstr(policy, "ablation=base") || strstr(policy, "ablation=given")) {
        t->bases++;
        snprintf(t->base, sizeof t->base, "%s", result->id.config);
    }
    return KKT_OK;
}

static tally tally_of(kkt_db *db) {
    tally t = {0};
    kkt_result_filter filter = {0};
    assert_int_equal(kkt_db_results(db, &filter, NULL, visit, &t, NULL), KKT_OK);
    return t;
}

static int64_t runs_of(kkt_db *db) {
    kkt_db_info info;
    assert_int_equal(kkt_db_get_info(db, &info, NULL), KKT_OK);
    return info.runs;
}

static void times_all_moves_with_their_base(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .fake = "seed=3", .chunk = 64};
    kkt_ablate_result out;
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.origin, KKT_ABLATE_PREDICTED);
    assert_int_equal(out.summary.tier, KKT_TIER_MEASURED);
    assert_int_equal(kkt_params_get(&out.variant->params, &out.base, "chunk"), 64);
    assert_true(out.summary.counts.rejected > 0);
    tally t = tally_of(db);
    assert_int_equal(t.bases, 1);
    assert_int_equal(t.moves, t.timed - 1);
    assert_int_equal(t.timed, out.summary.counts.enumerated - out.summary.counts.rejected);
    assert_int_equal(t.counted, t.timed);       /* the fake backend has counters */
    assert_int_equal(runs_of(db), 2 * t.timed); /* checked, then timed together */
    kkt_db_close(db);
}

static void repeats_nothing(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .fake = "seed=3", .chunk = 32};
    kkt_ablate_result first;
    kkt_ablate_result second;
    assert_int_equal(ablate(&r, &first, NULL), KKT_OK);
    int64_t runs = runs_of(db);
    assert_int_equal(ablate(&r, &second, NULL), KKT_OK);
    assert_int_equal(runs_of(db), runs);
    assert_int_equal(second.origin, KKT_ABLATE_EARLIER);
    assert_true(kkt_values_equal(&first.variant->params, &first.base, &second.base));
    assert_int_equal(second.summary.counts.measured, 0);
    assert_int_equal(second.summary.counts.reused,
                     first.summary.counts.enumerated - first.summary.counts.rejected);
    kkt_db_close(db);
}

/* Stopped at once by its budget, then resumed: nothing is checked twice, and the times that count
 * are of one interleaved round. */
static void goes_on_where_it_stopped(void **state) {
    (void)state;
    kkt_db *whole_db = open_db();
    kkt_db *parts_db = open_db();
    request whole = {.db = whole_db, .fake = "seed=4", .chunk = 64};
    request parts = {.db = parts_db, .fake = "seed=4", .chunk = 64, .seconds = 1e-9};
    kkt_ablate_result expected;
    kkt_ablate_result out;
    assert_int_equal(ablate(&whole, &expected, NULL), KKT_OK);
    assert_int_equal(ablate(&parts, &out, NULL), KKT_OK);
    assert_true(out.summary.counts.measured < expected.summary.counts.measured);
    assert_int_equal(tally_of(parts_db).moves, 0);
    parts.seconds = 0;
    assert_int_equal(ablate(&parts, &out, NULL), KKT_OK);
    assert_true(kkt_values_equal(&out.variant->params, &out.base, &expected.base));
    tally a = tally_of(whole_db);
    tally b = tally_of(parts_db);
    assert_int_equal(runs_of(parts_db), runs_of(whole_db));
    assert_int_equal(a.moves, b.moves);
    assert_string_equal(a.base, b.base);
    kkt_db_close(whole_db);
    kkt_db_close(parts_db);
}

/* A run lost from the round (here: measured anew without a mark) has all timed together again. */
static void times_all_again_where_one_is_missing(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .fake = "seed=5", .chunk = 64};
    kkt_ablate_result out;
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    int64_t timed = tally_of(db).timed;
    int64_t runs = runs_of(db);
    r.start = "couple=tf32,threads=256"; /* another base: most of its moves are new */
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.origin, KKT_ABLATE_GIVEN);
    assert_int_equal(kkt_params_get(&out.variant->params, &out.base, "chunk"), 64);
    assert_int_equal(kkt_params_get(&out.variant->params, &out.base, "threads"), 256);
    assert_true(runs_of(db) > runs);
    tally t = tally_of(db);
    assert_true(t.timed > timed);
    assert_int_equal(t.moves + t.bases, t.timed);
    kkt_db_close(db);
}

static void keeps_failures_as_results(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .fake = "seed=3,fault=wrong+hang", .chunk = 64, .start = ""};
    kkt_ablate_result out;
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    const kkt_session_counts *c = &out.summary.counts;
    assert_true(c->wrong_result + c->timed_out >= 2);
    tally t = tally_of(db);
    assert_int_equal(t.failed, c->wrong_result + c->timed_out);
    assert_int_equal(t.timed + t.failed, c->enumerated - c->rejected);
    /* Not tried again until asked; then they are well, for nothing is injected any more. */
    r.fake = "seed=3";
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(tally_of(db).failed, t.failed);
    assert_int_equal(out.summary.counts.quarantined, t.failed);
    r.retry = true;
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.summary.counts.measured, t.failed);
    assert_int_equal(tally_of(db).failed, 0);
    assert_int_equal(tally_of(db).moves + 1, tally_of(db).timed);
    kkt_db_close(db);
}

static void predicts_without_a_backend(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .chunk = 16};
    kkt_ablate_result out;
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.summary.tier, KKT_TIER_PREDICTED);
    assert_int_equal(runs_of(db), 0);
    assert_true(tally_of(db).rows > 1);
    kkt_db_close(db);
}

/* One fake measurement of a configuration, as a tuning run would have stored it. */
static void put_run(kkt_db *db, const char *config, double time_us, kkt_provenance provenance) {
    kkt_identity id = {"kkt_solve",
                       "materialized",
                       "sm90",
                       kkt_device_first(kkt_arch_find("sm90"))->name,
                       "batch=1,dk=128,dtype=bf16,gated=1,heads_k=16,heads_v=64,sequences=1,"
                       "t_form=t,tokens=8192",
                       NULL};
    const kkt_kernel *kernel = NULL;
    kkt_values values;
    kkt_text text = {0};
    char hash[65];
    assert_int_equal(kkt_kernel_parse("kkt_solve", &kernel, NULL), KKT_OK);
    kkt_params_defaults(&kernel->variants[0]->params, &values);
    assert_int_equal(kkt_params_parse(&kernel->variants[0]->params, "couple=tf32,threads=128",
                                      &values, NULL, NULL),
                     KKT_OK);
    assert_int_equal(kkt_params_parse(&kernel->variants[0]->params, config, &values, NULL, NULL),
                     KKT_OK);
    kkt_params_format(&kernel->variants[0]->params, &values, &text);
    id.config = kkt_text_get(&text);
    kkt_variant_hash(kernel->variants[0], hash);
    int64_t candidate;
    int64_t build;
    int64_t run;
    kkt_build_record b = {.kernel_hash = hash, .outcome = KKT_OUTCOME_COMPILED, .registers = -1};
    kkt_run_record r = {.provenance = provenance,
                        .outcome = KKT_OUTCOME_OK,
                        .gpu = "fake",
                        .date = "1970-01-01T00:00:00Z",
                        .policy = "x=1",
                        .time_us = time_us,
                        .time_low_us = time_us,
                        .time_high_us = time_us};
    assert_int_equal(kkt_db_candidate(db, &id, &candidate, NULL), KKT_OK);
    assert_int_equal(kkt_db_put_build(db, candidate, &b, &build, NULL), KKT_OK);
    assert_int_equal(kkt_db_put_run(db, build, &r, &run, NULL), KKT_OK);
    kkt_text_free(&text);
}

static void put_time(kkt_db *db, const char *config, double time_us) {
    put_run(db, config, time_us, KKT_MEASURED);
}

/* The best one known; an earlier base until a tuned candidate is faster. */
static void chooses_the_base(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .fake = "seed=6", .chunk = 64};
    kkt_ablate_result out;
    put_time(db, "chunk=64,threads=64", 50);
    put_time(db, "chunk=32,threads=64", 1); /* of another chunk */
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.origin, KKT_ABLATE_MEASURED);
    assert_int_equal(kkt_params_get(&out.variant->params, &out.base, "threads"), 64);
    /* Slower than the base: it stays. */
    put_time(db, "chunk=64,threads=256,heads_per_block=2", 1e6);
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.origin, KKT_ABLATE_EARLIER);
    assert_int_equal(kkt_params_get(&out.variant->params, &out.base, "threads"), 64);
    /* Faster: it takes over. */
    put_time(db, "chunk=64,threads=256,heads_per_block=4", 0.001);
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.origin, KKT_ABLATE_MEASURED);
    assert_int_equal(kkt_params_get(&out.variant->params, &out.base, "heads_per_block"), 4);
    kkt_db_close(db);
    r.db = open_db();
    put_run(r.db, "chunk=64,threads=64", 50, KKT_REPLAYED);
    assert_int_equal(ablate(&r, &out, NULL), KKT_OK);
    assert_int_equal(out.origin, KKT_ABLATE_REPLAYED);
    assert_string_equal(kkt_ablate_origin_name(out.origin), "replayed");
    kkt_db_close(r.db);
}

static void refuses_what_cannot_be_had(void **state) {
    (void)state;
    kkt_db *db = open_db();
    request r = {.db = db, .fake = "seed=1", .start = "heads_per_block=3"};
    kkt_ablate_result out;
    kkt_error error;
    assert_int_equal(ablate(&r, &out, &error), KKT_ERR_INPUT);
    assert_non_null(strstr(error.message, "heads_per_block=3"));
    r.start = "nonsense=1";
    assert_int_equal(ablate(&r, &out, &error), KKT_ERR_INPUT);
    assert_non_null(strstr(error.message, "nonsense"));
    r.start = NULL;
    r.chunk = 17;
    assert_int_equal(ablate(&r, &out, &error), KKT_ERR_INPUT);
    assert_non_null(strstr(error.message, "17"));
    r.chunk = 32;
    r.arch = "sm75"; /* has no asynchronous copies */
    assert_int_equal(ablate(&r, &out, &error), KKT_ERR_MISSING);
    assert_non_null(strstr(error.message, "with the chunk asked for"));
    assert_non_null(strstr(error.message, "sm75 has neither cp.async"));
    assert_int_equal(runs_of(db), 0);
    kkt_db_close(db);
}

static kkt_status check_chunk(const char *style, const char *problem, int64_t chunk,
                              kkt_error *error) {
    kkt_ablate_options o = {.chunk = chunk};
    o.session.problem = problem;
    o.session.arch = kkt_arch_find("sm90");
    o.session.device = kkt_device_first(o.session.arch);
    assert_int_equal(kkt_kernel_parse("gdn_fwd", &o.session.kernel, NULL), KKT_OK);
    o.variant = kkt_kernel_variant(o.session.kernel, kkt_style_find(style)->id);
    return kkt_ablate_check_chunk(&o, error);
}

/* What a base needs is known before any work, and said by its cause. */
static void knows_which_chunks_can_be_had(void **state) {
    (void)state;
    kkt_error error;
    for (int64_t chunk = 16; chunk <= 64; chunk *= 2) {
        assert_int_equal(check_chunk("warp_specialized", "tokens=8192", chunk, &error), KKT_OK);
    }
    assert_int_equal(check_chunk("warp_specialized", "tokens=8192", 128, &error), KKT_ERR_MISSING);
    assert_non_null(strstr(error.message, "warp_specialized can be had at chunk=128"));
    assert_non_null(strstr(error.message, "holds 320 registers"));
    assert_int_equal(check_chunk("warp_specialized", "tokens=8192", 17, &error), KKT_ERR_INPUT);
    assert_non_null(strstr(error.message, "17"));
    assert_int_equal(check_chunk("fragment", "heads_k=3,heads_v=4", 64, &error), KKT_ERR_INPUT);
    assert_non_null(strstr(error.message, "heads_v 4 is no multiple of heads_k 3"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_all_moves_with_their_base),
        cmocka_unit_test(repeats_nothing),
        cmocka_unit_test(goes_on_where_it_stopped),
        cmocka_unit_test(times_all_again_where_one_is_missing),
        cmocka_unit_test(keeps_failures_as_results),
        cmocka_unit_test(predicts_without_a_backend),
        cmocka_unit_test(chooses_the_base),
        cmocka_unit_test(refuses_what_cannot_be_had),
        cmocka_unit_test(knows_which_chunks_can_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
