/* Curves of pipelines: totals, the weakest provenance, the choice of C, and what exports and
 * look-ups make of it. This file brings its own list of pipelines. */
#include <math.h>

#include "fixture.h"
#include "kernels/pipeline.h"
#include "reports/curve.h"
#include "reports/lookup.h"
#include "schema.h"

#define FIRST "tokens=32768,heads_k=16,heads_v=64"
#define SECOND "tokens=8192,heads_k=16,heads_v=64"
#define RARE "tokens=2048,heads_k=16,heads_v=64"
#define CONTESTED "tokens=4096,heads_k=16,heads_v=64"

static const char *const problems[] = {FIRST, SECOND, RARE, NULL};
static const kkt_pipeline alone = {.name = "alone",
                                   .summary = "one kernel",
                                   .whole = "kkt_solve",
                                   .members = {"kkt_solve"},
                                   .problems = problems,
                                   .main_problems = 2};
static const kkt_pipeline pair = {.name = "pair",
                                  .summary = "a kernel that is measured and one that is not",
                                  .whole = "gdn_fwd",
                                  .members = {"kkt_solve", "gdn_fwd"},
                                  .problems = problems,
                                  .main_problems = 1};
static const char *const contested[] = {CONTESTED, NULL};
static const kkt_pipeline again = {.name = "again",
                                   .summary = "the same kernel in another pipeline",
                                   .whole = "kkt_solve",
                                   .members = {"kkt_solve"},
                                   .problems = contested,
                                   .main_problems = 1};
static const kkt_pipeline *const pipelines[] = {&alone, &pair, &again};

const kkt_pipeline *const *kkt_pipelines(size_t *count) {
    *count = sizeof pipelines / sizeof *pipelines;
    return pipelines;
}

static const kkt_curve *curve_of(fixture *f, const kkt_view *view, const char *name,
                                 const char *problem) {
    const char *text = canonical(f, &f->kernel->problem, problem);
    for (size_t i = 0; i < view->curve_count; i++)
        if (strcmp(view->curves[i].pipeline->name, name) == 0 &&
            strcmp(view->curves[i].problem, text) == 0)
            return &view->curves[i];
    return NULL;
}

static const kkt_curve_point *point_of(const kkt_curve *curve, int64_t chunk) {
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].chunk == chunk)
            return &curve->points[i];
    fail_msg("no point at %lld", (long long)chunk);
    return NULL;
}

typedef struct timing {
    const char *problem, *hash, *gpu, *pipeline;
    int64_t chunk;
    kkt_launch_order order;
    double us;
} timing;

static void add_timing(fixture *f, const timing *t) {
    char config[32];
    int64_t id = 0;
    snprintf(config, sizeof config, "chunk=%lld", (long long)t->chunk);
    kkt_pipeline_record record = {.pipeline = t->pipeline ? t->pipeline : "alone",
                                  .arch = "sm90",
                                  .device = "h200",
                                  .problem = canonical(f, &f->kernel->problem, t->problem),
                                  .chunk = t->chunk,
                                  .order = t->order,
                                  .member_count = 1,
                                  .run = {.provenance = KKT_MEASURED,
                                          .outcome = KKT_OUTCOME_OK,
                                          .gpu = t->gpu ? t->gpu : "NVIDIA H200",
                                          .date = "2026-07-01T10:00:00Z",
                                          .time_us = t->us,
                                          .time_low_us = t->us - 1,
                                          .time_high_us = t->us + 1,
                                          .sample_count = 60,
                                          .rel_fro = 2e-3,
                                          .tolerance = 4e-3}};
    kkt_identity member = identity(f, t->problem, config);
    record.members[0].build_id = add_build(f, &member, t->hash ? t->hash : f->hash);
    if (kkt_db_put_pipeline_run(f->db, &record, &id, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
}

static void add_sample(fixture *f, const char *problem, int chunk, double us) {
    char config[32];
    snprintf(config, sizeof config, "chunk=%d", chunk);
    add_measured(f, problem, config, us - 1, us, us + 1);
}

static int64_t standing(fixture *f, const kkt_view *view, const char *problem) {
    return kkt_view_chunk(view, "kkt_solve", canonical(f, &f->kernel->problem, problem))->chunk;
}

static void predicted_until_all_is_measured(void **state) {
    fixture *f = *state;
    kkt_view view = make_view(f);
    const kkt_curve *curve = curve_of(f, &view, "alone", FIRST);
    assert_int_equal(curve->count, 4);
    assert_int_equal(curve->points[0].chunk, 16);
    assert_int_equal(curve->points[3].chunk, 128);
    assert_true(isnan(curve->points[2].time_us) && curve->points[2].predicted_us > 0);
    assert_string_equal(kkt_curve_provenance(&curve->points[2]), "predicted");
    assert_null(curve->best);
    assert_int_equal(kkt_curve_chunk(curve), 64);
    assert_int_equal(standing(f, &view, FIRST), 64);
    assert_null(curve_of(f, &view, "alone", RARE)); /* not of the main job, nothing measured */
    assert_non_null(strstr(kkt_curve_why(curve, f->arena), "C = 64 stands"));
}

/* One member is measured, the other is not: the weaker word, and no time. */
static void the_weakest_member_names_the_point(void **state) {
    fixture *f = *state;
    add_sample(f, FIRST, 32, 100);
    add_sample(f, FIRST, 64, 100);
    kkt_view view = make_view(f);
    size_t at = 0;
    while (strcmp(view.curves[at].pipeline->name, "pair") != 0)
        at++;
    const kkt_curve_point *point = point_of(&view.curves[at], 32);
    assert_string_equal(kkt_entry_provenance(point->members[0]), "measured");
    assert_string_equal(kkt_curve_provenance(point), "predicted");
    assert_true(isnan(point->time_us));
    assert_true(point->predicted_us > point->members[0]->predicted_us);
    assert_null(view.curves[at].best);
}

static void sums_choose_until_all_is_timed_as_one(void **state) {
    fixture *f = *state;
    add_sample(f, FIRST, 32, 100);
    add_sample(f, FIRST, 64, 120);
    kkt_view view = make_view(f);
    const kkt_curve *curve = curve_of(f, &view, "alone", FIRST);
    assert_true(curve->by_members);
    assert_int_equal(curve->best->chunk, 32);
    assert_int_equal(standing(f, &view, FIRST), 32);
    assert_int_equal(standing(f, &view, SECOND), 64);
    /* One of the two end to end: its total is shown, and the sums still choose. */
    add_timing(f, &(timing){.problem = FIRST, .chunk = 64, .us = 90});
    view = make_view(f);
    curve = curve_of(f, &view, "alone", FIRST);
    assert_true(point_of(curve, 64)->time_us == 90 && point_of(curve, 64)->members_us == 120);
    assert_int_equal(curve->best->chunk, 32);
    assert_non_null(strstr(kkt_curve_why(curve, f->arena),
                           "100 us at C = 32 against 120 us at C = 64, the next best (its kernels' "
                           "own times added up"));
    /* Both: like with like. */
    add_timing(f, &(timing){.problem = FIRST, .chunk = 32, .us = 140});
    add_timing(f, &(timing){.problem = FIRST, .chunk = 32, .us = 130, .order = KKT_OVERLAPPED});
    view = make_view(f);
    curve = curve_of(f, &view, "alone", FIRST);
    assert_false(curve->by_members);
    assert_int_equal(curve->best->chunk, 64);
    const kkt_curve_point *point = point_of(curve, 32);
    assert_true(point->time_us == 130 && point->run->order == KKT_OVERLAPPED);
    assert_true(point->runs[KKT_IN_ORDER]->time_us == 140);
    assert_non_null(strstr(kkt_curve_why(curve, f->arena), "90 us at C = 64 against 130 us"));
}

/* One pipeline chose by sums and one by totals: their sums say which is faster. */
static void pipelines_are_compared_like_with_like(void **state) {
    fixture *f = *state;
    add_sample(f, CONTESTED, 32, 100);
    add_sample(f, CONTESTED, 64, 120);
    add_timing(f, &(timing){.problem = CONTESTED, .chunk = 64, .us = 99});
    add_timing(f, &(timing){.pipeline = "again", .problem = CONTESTED, .chunk = 32, .us = 150});
    add_timing(f, &(timing){.pipeline = "again", .problem = CONTESTED, .chunk = 64, .us = 95});
    kkt_view view = make_view(f);
    const kkt_curve *sums = curve_of(f, &view, "alone", CONTESTED);
    const kkt_curve *totals = curve_of(f, &view, "again", CONTESTED);
    assert_true(sums->by_members && sums->best->chunk == 32);
    assert_true(!totals->by_members && totals->best->chunk == 64);
    assert_int_equal(standing(f, &view, CONTESTED), 32);
}

static void stale_and_made_up_runs_step_back(void **state) {
    fixture *f = *state;
    add_timing(f, &(timing){.problem = FIRST, .chunk = 16, .us = 10, .hash = OLD_HASH});
    kkt_view view = make_view(f);
    const kkt_curve *curve = curve_of(f, &view, "alone", FIRST);
    assert_string_equal(kkt_curve_provenance(point_of(curve, 16)), "stale");
    assert_null(curve->best); /* one chunk size is no choice */
    assert_non_null(strstr(kkt_curve_why(curve, f->arena), "at one chunk size alone"));
    add_timing(f, &(timing){.problem = FIRST, .chunk = 32, .us = 12, .hash = OLD_HASH});
    view = make_view(f);
    assert_int_equal(curve_of(f, &view, "alone", FIRST)->best->chunk, 16); /* stale, but a choice */
    add_timing(f, &(timing){.problem = FIRST, .chunk = 64, .us = 90});
    add_timing(f, &(timing){.problem = FIRST, .chunk = 64, .us = 5, .gpu = "fake"});
    view = make_view(f);
    curve = curve_of(f, &view, "alone", FIRST);
    assert_true(point_of(curve, 64)->time_us == 90);
    assert_int_equal(curve->best->chunk, 64);
    assert_null(strstr(kkt_curve_why(curve, f->arena), "next best")); /* the others are stale */
}

static void other_problems_have_curves_once_timed(void **state) {
    fixture *f = *state;
    add_timing(f, &(timing){.problem = RARE, .chunk = 64, .us = 20});
    add_timing(f, &(timing){.problem = "tokens=96,heads_k=1,heads_v=1", .chunk = 16, .us = 3});
    add_timing(f, &(timing){.problem = "tokens=96,heads_k=1,heads_v=1", .chunk = 32, .us = 4});
    kkt_view view = make_view(f);
    assert_int_equal(curve_of(f, &view, "alone", RARE)->problem_rank, 2);
    const kkt_curve *curve = curve_of(f, &view, "alone", "tokens=96,heads_k=1,heads_v=1");
    assert_int_equal(curve->best->chunk, 16);
    assert_ptr_equal(view.curves + 3, curve); /* behind those of the list */
}

/* ---- exports ---- */

static void choose_differently(fixture *f) {
    add_sample(f, FIRST, 32, 100);
    add_sample(f, FIRST, 64, 120);
    add_sample(f, SECOND, 16, 40);
    add_sample(f, SECOND, 64, 30);
    add_timing(f, &(timing){.problem = FIRST, .chunk = 32, .us = 101});
    add_timing(f, &(timing){.problem = FIRST, .chunk = 64, .us = 121, .order = KKT_OVERLAPPED});
}

static void the_export_has_the_whole_curve(void **state) {
    fixture *f = *state;
    choose_differently(f);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "json");
    kkt_json *root = NULL, *schema = NULL;
    if (kkt_json_parse(text.data, text.length, "export", &root, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    char *file = NULL;
    size_t length = 0;
    assert_int_equal(kkt_file_read(KKT_TEST_DATA "/../docs/schemas/kkttune.config-1.schema.json",
                                   1 << 20, &file, &length, &f->error),
                     KKT_OK);
    assert_int_equal(kkt_json_parse(file, length, "schema", &schema, &f->error), KKT_OK);
    schema_check check = {.root = schema};
    if (!schema_validate(&check, schema, root, "root"))
        fail_msg("%s", check.message);
    const kkt_json *choice = kkt_json_first(kkt_json_get(root, "chunk_choice"));
    while (strcmp(kkt_json_string(choice, "pipeline"), "alone") != 0)
        choice = kkt_json_next(choice);
    int64_t best = 0;
    assert_true(kkt_json_int(choice, "best", &best) && best == 32);
    const kkt_json *point = kkt_json_next(kkt_json_first(kkt_json_get(choice, "curve")));
    double us = 0;
    assert_true(kkt_json_int(point, "chunk", &best) && best == 32);
    assert_true(kkt_json_real(point, "time_us", &us) && us == 101);
    assert_true(kkt_json_real(point, "members_us", &us) && us == 100);
    assert_string_equal(kkt_json_string(kkt_json_get(point, "end_to_end_us"), "launch"),
                        "in_order");
    assert_string_equal(kkt_json_string(point, "provenance"), "measured");
    kkt_json_close(root);
    kkt_json_close(schema);
    free(file);
    kkt_text_free(&text);
}

static void macros_take_the_pipelines_chunk(void **state) {
    fixture *f = *state;
    choose_differently(f);
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "header");
    assert_non_null(strstr(text.data, "#define KKTTUNE_SM90_KKT_SOLVE_CHUNK 32\n"));
    assert_non_null(strstr(text.data, "kkt_chunk_wanted : kkt_standing[kkt_i]"));
    assert_non_null(strstr(text.data, "static const int kkt_standing[] = {32, 32, 32, 32, 64,"));
    kkt_text_free(&text);
}

/* Where all problems agree the header has one number, as ever. */
static void one_chunk_for_all_is_one_number(void **state) {
    fixture *f = *state;
    kkt_view view = make_view(f);
    kkt_text text = render(f, &view, "header");
    assert_null(strstr(text.data, "standing"));
    assert_non_null(strstr(text.data, "kkt_chunk_wanted : 64)"));
    kkt_text_free(&text);
}

static int64_t look_up(fixture *f, const kkt_view *view, const char *problem) {
    kkt_values values;
    kkt_lookup found;
    kkt_params_defaults(&f->kernel->problem, &values);
    assert_int_equal(kkt_params_parse(&f->kernel->problem, problem, &values, NULL, &f->error),
                     KKT_OK);
    if (kkt_lookup_find(view, 1, f->kernel, &values, 0, f->arch, f->device, f->arena, &found,
                        &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    return found.entry.chunk;
}

static void look_ups_take_it_too(void **state) {
    fixture *f = *state;
    choose_differently(f);
    kkt_view view = make_view(f), back;
    kkt_text text = render(f, &view, "json");
    if (kkt_view_parse(text.data, text.length, "export", f->arena, &back, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    const kkt_view *const both[] = {&view, &back};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(look_up(f, both[i], FIRST), 32);
        assert_int_equal(look_up(f, both[i], SECOND), 64);
        assert_int_equal(look_up(f, both[i], "tokens=30000,heads_k=16,heads_v=64"), 32);
    }
    kkt_text_free(&text);
}

/* A view of one kernel chooses as the view of all does. */
static void a_filtered_view_chooses_alike(void **state) {
    fixture *f = *state;
    choose_differently(f);
    kkt_view view;
    assert_int_equal(kkt_view_make(f->db, &f->freshness, f->arch, f->device, "kkt_solve", f->arena,
                                   &view, &f->error),
                     KKT_OK);
    assert_int_equal(standing(f, &view, FIRST), 32);
    for (size_t i = 0; i < view.entry_count; i++)
        assert_string_equal(view.entries[i].kernel, "kkt_solve");
    for (size_t i = 0; i < view.row_count; i++)
        assert_string_equal(view.rows[i].kernel, "kkt_solve");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(predicted_until_all_is_measured, setup, teardown),
        cmocka_unit_test_setup_teardown(the_weakest_member_names_the_point, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_choose_until_all_is_timed_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(pipelines_are_compared_like_with_like, setup, teardown),
        cmocka_unit_test_setup_teardown(stale_and_made_up_runs_step_back, setup, teardown),
        cmocka_unit_test_setup_teardown(other_problems_have_curves_once_timed, setup, teardown),
        cmocka_unit_test_setup_teardown(the_export_has_the_whole_curve, setup, teardown),
        cmocka_unit_test_setup_teardown(macros_take_the_pipelines_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(one_chunk_for_all_is_one_number, setup, teardown),
        cmocka_unit_test_setup_teardown(look_ups_take_it_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_filtered_view_chooses_alike, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
