/* Which configuration a look-up gives for a problem, over a database and over an export read back.
 */
#include "fixture.h"

#include <math.h>

#include "model/predict.h"
#include "reports/canonical.h"
#include "reports/lookup.h"

static void add_some(fixture *f) {
    add_measured(f, "", "chunk=64,threads=128,inverse=recursive", 99, 100, 101);
    add_measured(f, "", "chunk=64,threads=256,inverse=recursive", 100.5, 102, 104);
    add_measured(f, "", "chunk=32,threads=128,inverse=recursive", 70, 71, 72);
    add_measured(f, "tokens=8192", "chunk=64,threads=64,inverse=flat", 30, 31, 32);
}

static kkt_lookup find(fixture *f, const kkt_view *view, const char *problem, int64_t chunk) {
    kkt_values values;
    kkt_lookup found = {.tier = KKT_LOOKUP_DEFAULT};
    kkt_params_defaults(&f->kernel->problem, &values);
    if (kkt_params_parse(&f->kernel->problem, problem, &values, NULL, &f->error) != KKT_OK ||
        kkt_lookup_find(view, view == NULL ? 0 : 1, f->kernel, &values, chunk, f->arch, f->device,
                        f->arena, &found, &f->error) != KKT_OK)
        fail_msg("%s", f->error.message);
    return found;
}

static void assert_lookups(fixture *f, const kkt_view *view) {
    kkt_lookup found = find(f, view, "", 0);
    assert_int_equal(found.tier, KKT_LOOKUP_EXACT);
    assert_int_equal(found.entry.chunk, 64);
    assert_int_equal(lround(found.entry.time_us), 100);
    found = find(f, view, "", 32);
    assert_int_equal(lround(found.entry.time_us), 71);
    /* A factor of two in the tokens and in the heads, and another ratio of heads. */
    found = find(f, view, "tokens=16384,heads_v=32", 0);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST);
    assert_true(fabs(found.distance - (2 + KKT_LOOKUP_QUOTIENT)) < 1e-12);
    found = find(f, view, "tokens=4096", 0);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST);
    assert_true(fabs(found.distance - 1) < 1e-12);
    assert_int_equal(lround(found.entry.time_us), 31);
    found = find(f, view, "dtype=fp16", 0); /* nothing of another data type is reused */
    assert_int_equal(found.tier, KKT_LOOKUP_MODEL);
    found = find(f, view, "tokens=100", 128);
    assert_int_equal(found.tier, KKT_LOOKUP_MODEL);
    assert_int_equal(found.entry.chunk, 128);
}

static void test_lookup(void **state) {
    fixture *f = *state;
    add_some(f);
    kkt_view view = make_view(f), read;
    assert_lookups(f, &view);
    assert_int_equal(find(f, NULL, "", 0).tier, KKT_LOOKUP_MODEL);

    /* The export read back answers the same. */
    char path[128];
    kkt_text text = render(f, &view, "json");
    snprintf(path, sizeof path, "%s/k.json", f->folder);
    assert_int_equal(kkt_file_write(path, text.data, text.length, &f->error), KKT_OK);
    kkt_text_free(&text);
    assert_int_equal(kkt_view_read(path, f->arena, &read, &f->error), KKT_OK);
    assert_lookups(f, &read);
    assert_string_equal(find(f, &read, "", 0).entry.driver, "580.159");

    kkt_values values;
    kkt_lookup found;
    kkt_params_defaults(&f->kernel->problem, &values);
    assert_int_equal(kkt_lookup_find(&view, 1, f->kernel, &values, 48, f->arch, f->device, f->arena,
                                     &found, &f->error),
                     KKT_ERR_INPUT);
    assert_non_null(strstr(f->error.message, "48"));
}

/* A neighbour's configuration, with the launch and the prediction of the problem asked. */
static void test_nearest_is_of_the_problem_asked(void **state) {
    fixture *f = *state;
    add_measured(f, "", "chunk=32,threads=128,kload=cp_async", 70, 71, 72);
    add_measured(f, "", "chunk=32,threads=128,heads_per_block=4", 71, 72, 73); /* ties */
    add_measured(f, "tokens=8192", "chunk=64,threads=64,heads_per_block=4", 30, 31, 32);
    kkt_view view = make_view(f);
    kkt_values problem, config;
    kkt_plan plan;
    kkt_footprint footprint;
    kkt_prediction prediction;
    kkt_lookup found = find(f, &view, "dk=256,heads_v=32", 32);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST);
    assert_int_equal(lround(found.entry.time_us), 71);
    kkt_params_defaults(&f->kernel->problem, &problem);
    kkt_params_defaults(&f->variant->params, &config);
    assert_int_equal(
        kkt_params_parse(&f->kernel->problem, "dk=256,heads_v=32", &problem, NULL, NULL), KKT_OK);
    assert_int_equal(kkt_params_parse(&f->variant->params, found.entry.config, &config, NULL, NULL),
                     KKT_OK);
    f->variant->plan(&problem, &config, f->arch, &plan);
    assert_int_equal(found.entry.smem_bytes, plan.launches[0].dynamic_smem_bytes);
    assert_int_equal(found.entry.threads, plan.launches[0].block[0]);
    memset(&footprint, 0, sizeof footprint);
    f->variant->footprint(&problem, &config, f->arch, &footprint);
    kkt_predict(&footprint, f->arch, f->device, NULL, &prediction);
    assert_true(fabs(found.entry.predicted_us - prediction.predicted_us) < 1e-9);
    assert_int_equal(found.entry.registers, prediction.registers); /* not the other binary's 96 */
    assert_int_equal(found.entry.tie_count, 0); /* four heads a block do not divide two */
    assert_int_equal(find(f, &view, "", 32).entry.tie_count, 1);

    /* Another number of tokens needs the same binary: what its compiler said holds. */
    found = find(f, &view, "tokens=30000", 32);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST);
    assert_int_equal(found.entry.registers, 96);
    assert_int_equal(found.entry.tie_count, 1);

    /* No neighbour's configuration applies: the model answers for this problem. */
    found = find(f, &view, "tokens=8192,heads_v=16", 64);
    assert_int_equal(found.tier, KKT_LOOKUP_MODEL);
    assert_int_equal(kkt_pair_integer(found.entry.config, "heads_per_block", 0), 1);
}

/* A neighbour's configuration that the model would not take is shown with the model's own. */
static void test_model_pick(void **state) {
    fixture *f = *state;
    kkt_values problem;
    kkt_entry pick;
    add_measured(f, "tokens=8192", "chunk=64,threads=128,inverse=row", 30, 31, 32);
    kkt_view view = make_view(f);
    kkt_params_defaults(&f->kernel->problem, &problem);
    kkt_lookup found = find(f, &view, "", 64);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST);
    assert_true(
        kkt_lookup_model_pick(&found, f->kernel, &problem, f->arch, f->device, f->arena, &pick));
    assert_true(pick.predicted_us * KKT_LOOKUP_SLOW < found.entry.predicted_us);
    assert_int_equal(pick.provenance, KKT_PREDICTED);
    assert_int_equal(pick.chunk, 64);
    /* Nothing is to be said where the neighbour has the model's own, nor of the problem itself. */
    add_measured(f, "tokens=8192", pick.config, 20, 21, 22);
    view = make_view(f);
    found = find(f, &view, "", 64);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST);
    assert_int_equal(lround(found.entry.time_us), 21);
    assert_false(
        kkt_lookup_model_pick(&found, f->kernel, &problem, f->arch, f->device, f->arena, &pick));
    add_measured(f, "", "chunk=64,threads=128,inverse=row", 99, 100, 101);
    view = make_view(f);
    found = find(f, &view, "", 64);
    assert_int_equal(found.tier, KKT_LOOKUP_EXACT);
    assert_false(
        kkt_lookup_model_pick(&found, f->kernel, &problem, f->arch, f->device, f->arena, &pick));
}

/* Where nothing can launch: the kernel's defaults, marked as such. */
static void test_nothing_can_launch(void **state) {
    fixture *f = *state;
    kkt_values problem;
    kkt_lookup found;
    const kkt_arch *arch = kkt_arch_find("sm75"); /* no asynchronous copies, no bf16 products */
    kkt_params_defaults(&f->kernel->problem, &problem);
    assert_int_equal(kkt_lookup_find(NULL, 0, f->kernel, &problem, 0, arch, kkt_device_first(arch),
                                     f->arena, &found, &f->error),
                     KKT_OK);
    assert_int_equal(found.tier, KKT_LOOKUP_DEFAULT);
    assert_string_equal(found.entry.config,
                        canonical(f, &f->variant->params, "couple=bf16x3,threads=32"));
    assert_non_null(strstr(found.entry.reason, "sm75 has neither cp.async")); /* and why */
}

/* Three parameters that must change together: a matrix by columns of an odd number. */
static void test_far_from_defaults(void **state) {
    fixture *f = *state;
    const kkt_kernel *gemv;
    kkt_values problem, config;
    kkt_lookup found;
    char reason[320];
    assert_int_equal(kkt_kernel_parse("gemv", &gemv, &f->error), KKT_OK);
    kkt_params_defaults(&gemv->problem, &problem);
    assert_int_equal(kkt_params_parse(&gemv->problem, "layout=t,m=4099", &problem, NULL, &f->error),
                     KKT_OK);
    assert_int_equal(kkt_lookup_find(NULL, 0, gemv, &problem, 0, f->arch, f->device, f->arena,
                                     &found, &f->error),
                     KKT_OK);
    assert_int_equal(found.tier, KKT_LOOKUP_MODEL);
    const kkt_variant *variant = kkt_kernel_variant(gemv, kkt_style_find(found.entry.style)->id);
    kkt_params_defaults(&variant->params, &config);
    assert_int_equal(
        kkt_params_parse(&variant->params, found.entry.config, &config, NULL, &f->error), KKT_OK);
    if (!variant->applicable(&problem, &config, f->arch, reason, sizeof reason))
        fail_msg("%s: %s", found.entry.config, reason);
}

/* What a GPU's L2 gives keeps tiles from being so small that each is read again and again. */
static void test_tiles_are_large_enough(void **state) {
    fixture *f = *state;
    static const char *const devices[] = {"rtx5090", "rtxpro6000", "b200", "b300", "h200", "a100"};
    const kkt_kernel *gemm;
    kkt_values problem;
    assert_int_equal(kkt_kernel_parse("gemm", &gemm, &f->error), KKT_OK);
    kkt_params_defaults(&gemm->problem, &problem);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        const kkt_device *device;
        kkt_lookup found;
        assert_int_equal(kkt_device_parse(devices[i], NULL, &device, &f->error), KKT_OK);
        assert_int_equal(kkt_lookup_find(NULL, 0, gemm, &problem, 0, kkt_arch_find(device->arch),
                                         device, f->arena, &found, &f->error),
                         KKT_OK);
        if (kkt_pair_integer(found.entry.config, "bm", 0) *
                kkt_pair_integer(found.entry.config, "bn", 0) <
            64 * 128)
            fail_msg("%s: %s", devices[i], found.entry.config);
    }
}

/* Where no device is named, the results say which one is meant. */
static void test_own_device(void **state) {
    fixture *f = *state;
    kkt_view *views;
    size_t count = 0;
    const kkt_device *h100;
    assert_int_equal(kkt_device_parse("h100", f->arch, &h100, &f->error), KKT_OK);
    assert_int_equal(kkt_lookup_views(f->db, &f->freshness, f->arch, f->device, f->kernel->name,
                                      f->arena, &views, &count, &f->error),
                     KKT_OK);
    assert_true(count > 1);
    assert_ptr_equal(kkt_lookup_own_device(views, count), f->device); /* nothing measured */

    kkt_identity id = identity(f, "", "chunk=64,threads=128");
    id.device = "h100";
    add_run(f, &id, f->hash, KKT_MEASURED, KKT_OUTCOME_OK, NULL, 119, 120, 121);
    assert_int_equal(kkt_lookup_views(f->db, &f->freshness, f->arch, f->device, f->kernel->name,
                                      f->arena, &views, &count, &f->error),
                     KKT_OK);
    kkt_values problem;
    kkt_lookup found;
    kkt_params_defaults(&f->kernel->problem, &problem);
    assert_int_equal(kkt_lookup_find(views, count, f->kernel, &problem, 64, f->arch, f->device,
                                     f->arena, &found, &f->error),
                     KKT_OK);
    assert_int_equal(found.tier, KKT_LOOKUP_NEAREST); /* of an H200 it would be another device's */
    assert_true(fabs(found.distance - KKT_LOOKUP_OTHER_DEVICE) < 1e-12);
    assert_ptr_equal(kkt_lookup_own_device(views, count), h100);
    assert_ptr_equal(views[0].device, h100);
    for (size_t i = 1; i < count; i++)
        assert_ptr_not_equal(views[i].device, h100);
    assert_int_equal(kkt_lookup_find(views, count, f->kernel, &problem, 64, f->arch, h100, f->arena,
                                     &found, &f->error),
                     KKT_OK);
    assert_int_equal(found.tier, KKT_LOOKUP_EXACT);
}

static void test_hostile_exports(void **state) {
    fixture *f = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{}", "kkttune.config/1"},
        {"[1]", "kkttune.config/1"},
        {"{\"schema\": \"kkttune.config/1\", \"arch\": \"sm1\"}", "sm1"},
        {"{\"schema\": \"kkttune.config/1\", \"arch\": \"sm90\", \"device\": {\"name\": \"h200\"}}",
         "entries"},
        {"{\"schema\": \"kkttune.config/1\", \"arch\": \"sm90\", \"device\": {\"name\": \"h200\"}, "
         "\"entries\": [{\"kernel\": 3}]}",
         "kernel"},
        {"{\"schema\": \"kkttune.config/1\", \"arch\": \"sm90\", \"device\": {\"name\": \"h200\"}, "
         "\"entries\": [{\"kernel\": \"k\", \"style\": \"s\", \"problem\": {}, \"config\": [1]}]}",
         "config"},
        {"{\"schema\": \"kkttune.config/1\", \"arch\": \"sm90\", \"device\": {\"name\": \"h200\"}, "
         "\"entries\": [{\"kernel\": \"k\", \"style\": \"s\", \"problem\": {}, \"config\": {}, "
         "\"provenance\": \"dreamt\"}]}",
         "provenance"},
        {"{\"schema\"", "k.json"},
    };
    char path[128];
    snprintf(path, sizeof path, "%s/k.json", f->folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kkt_view view;
        assert_int_equal(kkt_file_write(path, cases[i].text, strlen(cases[i].text), &f->error),
                         KKT_OK);
        assert_int_equal(kkt_view_read(path, f->arena, &view, &f->error), KKT_ERR_INPUT);
        if (strstr(f->error.message, cases[i].says) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].says, f->error.message);
    }
}

/* Reads an export of one entry: the good one with `from` replaced by `to`. */
static kkt_status read_changed(fixture *f, const char *from, const char *to) {
    static const char good[] =
        "{\"schema\":\"kkttune.config/1\",\"arch\":\"sm90\",\"device\":{\"name\":\"h200\"},"
        "\"entries\":[{\"kernel\":\"kkt_solve\",\"style\":\"materialized\","
        "\"problem\":{\"tokens\":8192},\"config\":{\"chunk\":64,\"couple\":\"bf16x3\"},"
        "\"launch\":{\"threads\":64,\"smem_bytes\":4096,\"registers\":96},"
        "\"provenance\":\"measured\",\"time_us\":{\"median\":5,\"low\":4,\"high\":6,\"samples\":9},"
        "\"measured_on\":{\"gpu\":\"NVIDIA H200\"},\"predicted_us\":7,\"noisy\":false}]}";
    const char *at = strstr(good, from);
    char text[1024];
    kkt_view view;
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    return kkt_view_parse(text, strlen(text), "k.json", f->arena, &view, &f->error);
}

static void test_senseless_entries(void **state) {
    fixture *f = *state;
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"kkt_solve\"", "\"../k\"", "kernel is '../k'"},
        {"\"materialized\"", "\"s\"", "style is 's', which kkt_solve does not have"},
        {"8192", "-1", "problem key 'tokens' cannot be '-1'"},
        {"\"tokens\"", "\"tokns\"", "'tokns'"},
        {"\"chunk\":64", "\"chunk\":63", "config: parameter 'chunk'"},
        {"\"chunk\":64", "\"chunk\":\"big\"", "config: parameter 'chunk'"},
        {"\"couple\"", "\"cuple\"", "'cuple'"},
        {"\"threads\":64", "\"threads\":-5", "launch.threads is -5, not 1 to 1024"},
        {"\"threads\":64", "\"threads\":\"64\"", "launch.threads is no integer"},
        {"4096", "1000000000", "launch.smem_bytes is 1000000000"},
        {"4096", "1e9", "launch.smem_bytes is"},
        {"\"registers\":96", "\"registers\":0", "launch.registers is 0"},
        {"\"median\":5", "\"median\":-5", "time_us.median is -5"},
        {"\"median\":5", "\"median\":\"x\"", "time_us.median is no number"},
        {"\"median\":5,", "", "time_us.median is missing"},
        {"\"low\":4", "\"low\":5.5", "time_us.median is 5, outside"},
        {"\"samples\":9", "\"samples\":-1", "time_us.samples is -1"},
        {"\"predicted_us\":7", "\"predicted_us\":null", "predicted_us is no number"},
        {"\"NVIDIA H200\"", "7", "measured_on.gpu is no text"},
        {"{\"gpu\":\"NVIDIA H200\"}", "[]", "measured_on is no object"},
        {"false", "0", "noisy is neither"},
    };
    if (read_changed(f, "false", "true") != KKT_OK)
        fail_msg("%s", f->error.message);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(read_changed(f, cases[i].from, cases[i].to), KKT_ERR_INPUT);
        if (strstr(f->error.message, "k.json: entry 1: ") == NULL ||
            strstr(f->error.message, cases[i].says) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].says, f->error.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lookup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model_pick, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nearest_is_of_the_problem_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_can_launch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_far_from_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tiles_are_large_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_exports, setup, teardown),
        cmocka_unit_test_setup_teardown(test_senseless_entries, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
