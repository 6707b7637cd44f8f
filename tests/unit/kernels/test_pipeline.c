/* Pipelines over made-up kernels: how a problem is handed to the members, forms, chunk sizes. This
 * file brings its own lists of kernels and pipelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/pipeline.h"

#define TABLE(rows)                                                                                \
    { .what = "key", .params = (rows), .count = sizeof(rows) / sizeof *(rows) }

static const char *const producer_forms[] = {"t_scaled", "t", "t_beta"};
static const char *const consumer_forms[] = {"t", "t_beta"};

static const kkt_param whole_keys[] = {
    {.name = "tokens", .low = 1, .high = 1000, .fallback = 100},
    {.name = "dk", .low = 1, .high = 1000, .fallback = 128},
    {.name = "dv", .low = 1, .high = 1000, .fallback = 128},
};
static const kkt_param producer_keys[] = {
    {.name = "t_form", .count = 3, .values = {2, 0, 1}, .names = producer_forms, .fallback = 0},
    {.name = "dk", .low = 1, .high = 1000, .fallback = 64},
    {.name = "tokens", .low = 1, .high = 1000, .fallback = 1},
};
static const kkt_param consumer_keys[] = {
    {.name = "tokens", .low = 1, .high = 1000, .fallback = 1},
    {.name = "dv", .low = 1, .high = 1000, .fallback = 1},
    {.name = "splits", .low = 1, .high = 8, .fallback = 4},
    {.name = "t_form", .count = 2, .values = {0, 1}, .names = consumer_forms, .fallback = 0},
};
static const kkt_param wide_chunks[] = {
    {.name = "chunk", .count = 4, .values = {128, 32, 64, 16}, .fallback = 64}};
static const kkt_param narrow_chunks[] = {
    {.name = "chunk", .count = 2, .values = {64, 32}, .fallback = 64}};
static const kkt_param large_chunks[] = {
    {.name = "chunk", .count = 2, .values = {128, 64}, .fallback = 128}};

static const kkt_variant every = {.params = TABLE(wide_chunks), .source = "a.cu"};
static const kkt_variant some = {.params = TABLE(narrow_chunks)};
static const kkt_variant largest = {.params = TABLE(large_chunks), .source = "b.cu"};
static const kkt_variant predicted = {.params = TABLE(wide_chunks)};
static const kkt_variant *const wide[] = {&every};
static const kkt_variant *const split[] = {&some, &largest};
static const kkt_variant *const modelled[] = {&predicted};

static const kkt_kernel whole = {.name = "whole",
                                 .problem = TABLE(whole_keys),
                                 .variants = wide,
                                 .variant_count = 1,
                                 .chunk_param = "chunk"};
static const kkt_kernel producer = {.name = "producer",
                                    .problem = TABLE(producer_keys),
                                    .variants = wide,
                                    .variant_count = 1,
                                    .chunk_param = "chunk"};
static const kkt_kernel consumer = {.name = "consumer",
                                    .problem = TABLE(consumer_keys),
                                    .variants = split,
                                    .variant_count = 2,
                                    .chunk_param = "chunk"};
static const kkt_kernel sketch = {.name = "sketch",
                                  .problem = TABLE(whole_keys),
                                  .variants = modelled,
                                  .variant_count = 1,
                                  .chunk_param = "chunk"};
static const kkt_kernel *const kernels[] = {&whole, &producer, &consumer, &sketch};

const kkt_kernel *const *kkt_kernels(size_t *count) {
    *count = 4;
    return kernels;
}

kkt_status kkt_kernel_parse(const char *name, const kkt_kernel **out, kkt_error *err) {
    for (size_t i = 0; i < 4; i++)
        if (strcmp(kernels[i]->name, name) == 0) {
            *out = kernels[i];
            return KKT_OK;
        }
    return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown kernel '%s'", name);
}

static const kkt_pipeline joined = {
    .name = "joined", .whole = "whole", .members = {"producer", "consumer"}, .form_key = "t_form"};
static const kkt_pipeline lonely = {
    .name = "lonely", .whole = "whole", .members = {"producer", "sketch"}, .form_key = "t_form"};
static const kkt_pipeline broken = {
    .name = "broken", .whole = "whole", .members = {"producer", "absent"}};
static const kkt_pipeline *const pipelines[] = {&joined, &lonely, &broken};

const kkt_pipeline *const *kkt_pipelines(size_t *count) {
    *count = 3;
    return pipelines;
}

static kkt_pipeline_kernels open_pipeline(const char *name) {
    kkt_pipeline_kernels p;
    const kkt_pipeline *found = kkt_pipeline_find(name);
    assert_non_null(found);
    assert_true(kkt_pipeline_open(found, &p, NULL));
    return p;
}

static void finds_by_name(void **state) {
    (void)state;
    assert_ptr_equal(kkt_pipeline_find("lonely"), &lonely);
    assert_null(kkt_pipeline_find("lone"));
}

static void names_the_kernel_that_is_missing(void **state) {
    (void)state;
    kkt_pipeline_kernels p;
    const char *missing = NULL;
    assert_false(kkt_pipeline_open(&broken, &p, &missing));
    assert_string_equal(missing, "absent");
}

/* Values that only one side lists are no form, whatever their order. */
static void forms_are_what_all_members_know(void **state) {
    (void)state;
    char buffer[24];
    kkt_pipeline_kernels p = open_pipeline("joined");
    assert_int_equal(p.count, 2);
    assert_int_equal(p.forms, 2);
    assert_string_equal(kkt_pipeline_form_name(&p, 0, buffer), "t");
    assert_string_equal(kkt_pipeline_form_name(&p, 1, buffer), "t_beta");
    p = open_pipeline("lonely"); /* the consumer has no such key */
    assert_int_equal(p.forms, 1);
    assert_string_equal(kkt_pipeline_form_name(&p, 0, buffer), "");
}

static void chunks_are_shared_and_ascend(void **state) {
    (void)state;
    static const int64_t shared[] = {64, 128};
    static const int64_t expected[] = {16, 32, 64, 128};
    kkt_pipeline_kernels p = open_pipeline("joined");
    assert_true(p.device_code);
    assert_int_equal(p.chunk_count, 2); /* what the model alone knows of at 32 does not count */
    assert_memory_equal(p.chunks, shared, sizeof shared);
    p = open_pipeline("lonely"); /* of a kernel without device code all styles do */
    assert_false(p.device_code);
    assert_int_equal(p.chunk_count, 4);
    assert_memory_equal(p.chunks, expected, sizeof expected);
}

static void members_get_the_keys_they_have(void **state) {
    (void)state;
    kkt_pipeline_kernels p = open_pipeline("joined");
    const kkt_values problem = {{500, 96, 80}};
    kkt_values own;
    kkt_pipeline_member_problem(&p, 0, &problem, 1, &own);
    assert_int_equal(own.v[0], 1); /* t_beta */
    assert_int_equal(own.v[1], 96);
    assert_int_equal(own.v[2], 500);
    assert_true(kkt_pipeline_serves(&p, 0, &own, &problem));
    own.v[0] = 0; /* another form serves it as well */
    assert_true(kkt_pipeline_serves(&p, 0, &own, &problem));
    own.v[1] = 64;
    assert_false(kkt_pipeline_serves(&p, 0, &own, &problem));
    kkt_pipeline_member_problem(&p, 1, &problem, 0, &own);
    assert_int_equal(own.v[0], 500);
    assert_int_equal(own.v[1], 80);
    assert_int_equal(own.v[2], 4); /* a key of its own keeps its default */
    assert_int_equal(own.v[3], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_by_name),
        cmocka_unit_test(names_the_kernel_that_is_missing),
        cmocka_unit_test(forms_are_what_all_members_know),
        cmocka_unit_test(chunks_are_shared_and_ascend),
        cmocka_unit_test(members_get_the_keys_they_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
