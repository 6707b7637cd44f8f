/* Winners by energy and by error, their ties, and the Pareto front. */
#include "fixture.h"

#include <math.h>

#include "reports/canonical.h"
#include "reports/report.h"

/* A measured row with an interval of 1 us, an energy (0: none) and an error. */
static void add(fixture *f, const char *config, double time_us, double energy_mj, double rel_fro) {
    kkt_identity id = identity(f, "", config);
    int64_t run;
    kkt_run_record record = {.provenance = KKT_MEASURED,
                             .outcome = KKT_OUTCOME_OK,
                             .gpu = "NVIDIA H200",
                             .date = "2026-07-01T10:00:00Z",
                             .time_us = time_us,
                             .time_low_us = time_us - 0.5,
                             .time_high_us = time_us + 0.5,
                             .sample_count = 60,
                             .rel_fro = rel_fro,
                             .tolerance = 4e-3,
                             .hbm_bytes_counted = KKT_UNKNOWN_REAL,
                             .energy_mj = energy_mj};
    int64_t build = add_build(f, &id, f->hash);
    assert_int_equal(kkt_db_put_run(f->db, build, &record, &run, &f->error), KKT_OK);
}

static kkt_view view_by(fixture *f, kkt_objective objective) {
    kkt_view view;
    assert_int_equal(kkt_view_make_by(f->db, &f->freshness, f->arch, f->device, NULL, objective,
                                      f->arena, &view, &f->error),
                     KKT_OK);
    return view;
}

static bool threads_are(const char *config, const char *value) {
    return kkt_pair_is(config, "threads", value);
}

static void fill(fixture *f) {
    add(f, "chunk=64,threads=32", 100, 60, 2e-3);
    add(f, "chunk=64,threads=64", 100.2, 80, 2e-3);
    add(f, "chunk=64,threads=128", 110, 50, 3e-3);
    add(f, "chunk=64,threads=256", 120, 50.5, 1e-3);
    add(f, "chunk=64,inverse=flat", 90, 0, 3.5e-3); /* nobody measured its energy */
}

static void winners_by_objective(void **state) {
    fixture *f = *state;
    fill(f);
    kkt_view view = view_by(f, KKT_OBJECTIVE_TIME);
    assert_true(entry_at(f, &view, "", 64)->time_us == 90);
    assert_true(isnan(entry_at(f, &view, "", 64)->energy_mj));
    view = view_by(f, KKT_OBJECTIVE_ENERGY);
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_true(threads_are(entry->config, "128"));
    assert_true(entry->energy_mj == 50);
    assert_int_equal(entry->tie_count, 1); /* 50.5 mJ: within 2 % */
    assert_true(threads_are(entry->ties[0], "256"));
    view = view_by(f, KKT_OBJECTIVE_ERROR);
    entry = entry_at(f, &view, "", 64);
    assert_true(threads_are(entry->config, "256"));
    assert_int_equal(entry->tie_count, 0);
}

/* Equal errors: the fastest wins, the others are ties. */
static void equal_errors_break_by_time(void **state) {
    fixture *f = *state;
    add(f, "chunk=64,threads=64", 120, 0, 1e-3);
    add(f, "chunk=64,threads=128", 100, 0, 1e-3);
    add(f, "chunk=64,threads=256", 90, 0, 1.0001e-3);
    kkt_view view = view_by(f, KKT_OBJECTIVE_ERROR);
    const kkt_entry *entry = entry_at(f, &view, "", 64);
    assert_true(threads_are(entry->config, "128"));
    assert_int_equal(entry->tie_count, 1);
    assert_true(threads_are(entry->ties[0], "64"));
}

static void the_front(void **state) {
    fixture *f = *state;
    fill(f);
    add(f, "chunk=128,threads=128", 110, 50, 3e-3); /* equal to one of C = 64: one of them stays */
    add(f, "chunk=32,threads=32", 130, 70, 3e-3);   /* beaten */
    kkt_view view = view_by(f, KKT_OBJECTIVE_TIME);
    assert_null(view.pareto);
    kkt_view_add_pareto(&view, f->arena);
    static const double times[] = {90, 100, 110, 120};
    assert_int_equal(view.pareto_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(view.pareto[i]->time_us == times[i]);
}

/* No front without measurements, and an export that says what it was made by. */
static void exports_say_it(void **state) {
    fixture *f = *state;
    kkt_view view = view_by(f, KKT_OBJECTIVE_TIME);
    kkt_view_add_pareto(&view, f->arena);
    assert_int_equal(view.pareto_count, 0);
    fill(f);
    view = view_by(f, KKT_OBJECTIVE_TIME);
    kkt_text plain = render(f, &view, "json");
    assert_null(strstr(plain.data, "\"objective\""));
    assert_null(strstr(plain.data, "\"pareto\""));
    kkt_text_free(&plain);
    view = view_by(f, KKT_OBJECTIVE_ENERGY);
    kkt_view_add_pareto(&view, f->arena);
    kkt_text json = render(f, &view, "json");
    kkt_json *root = NULL;
    assert_int_equal(kkt_json_parse(json.data, json.length, "export", &root, NULL), KKT_OK);
    assert_string_equal(kkt_json_string(root, "objective"), "energy");
    assert_int_equal(kkt_json_count(kkt_json_get(root, "pareto")), 4);
    double energy = 0;
    const kkt_json *last = NULL;
    for (const kkt_json *row = kkt_json_first(kkt_json_get(root, "pareto")); row;
         row = kkt_json_next(row))
        last = kkt_json_real(row, "energy_mj", &energy) ? row : last;
    assert_non_null(last);
    assert_true(energy == 50.5);
    kkt_json_close(root);
    kkt_text_free(&json);
    kkt_text markdown = render(f, &view, "markdown");
    assert_non_null(strstr(markdown.data, "time, energy and error"));
    assert_non_null(strstr(markdown.data, "chosen by the energy of a launch"));
    kkt_text_free(&markdown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(winners_by_objective, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_errors_break_by_time, setup, teardown),
        cmocka_unit_test_setup_teardown(the_front, setup, teardown),
        cmocka_unit_test_setup_teardown(exports_say_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
