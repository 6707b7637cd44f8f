/* The list of pipelines that ship. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/pipeline.h"

static void names_differ_from_each_other_and_from_kernels(void **state) {
    (void)state;
    size_t count;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        const kkt_kernel *kernel = NULL;
        assert_ptr_equal(kkt_pipeline_find(all[i]->name), all[i]);
        assert_int_equal(kkt_kernel_parse(all[i]->name, &kernel, NULL), KKT_ERR_INPUT);
        assert_non_null(all[i]->members[0]);
        assert_null(all[i]->members[KKT_MEMBERS_MAX]);
    }
}

/* Problems are texts: a wrong key would show up in a run alone. */
static void problems_are_possible_and_differ(void **state) {
    (void)state;
    size_t count;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    for (size_t i = 0; i < count; i++) {
        const kkt_kernel *whole = NULL;
        kkt_values seen[32];
        size_t problems = 0;
        assert_int_equal(kkt_kernel_parse(all[i]->whole, &whole, NULL), KKT_OK);
        for (const char *const *text = all[i]->problems; *text; text++) {
            kkt_error err = {0};
            char reason[320] = "";
            kkt_values *problem = &seen[problems];
            assert_true(problems < sizeof seen / sizeof *seen);
            kkt_params_defaults(&whole->problem, problem);
            if (kkt_params_parse(&whole->problem, *text, problem, NULL, &err) != KKT_OK)
                fail_msg("%s: %s", all[i]->name, err.message);
            if (!kkt_kernel_problem_valid(whole, problem, reason, sizeof reason))
                fail_msg("%s, %s: %s", all[i]->name, *text, reason);
            for (size_t j = 0; j < problems; j++)
                assert_false(kkt_values_equal(&whole->problem, problem, &seen[j]));
            problems++;
        }
        assert_true(all[i]->main_problems > 0 && all[i]->main_problems <= problems);
        for (const char *const *text = whole->default_problems; *text; text++) {
            kkt_values problem;
            bool found = false;
            kkt_params_defaults(&whole->problem, &problem);
            kkt_params_parse(&whole->problem, *text, &problem, NULL, NULL);
            for (size_t j = 0; j < problems; j++)
                found = found || kkt_values_equal(&whole->problem, &problem, &seen[j]);
            assert_true(found); /* what the kernel is tuned for is timed end to end, too */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_differ_from_each_other_and_from_kernels),
        cmocka_unit_test(problems_are_possible_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
