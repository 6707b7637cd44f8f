/* Several styles on several problems: which comes first, what each gets of the budget, and that a
 * problem's finals hold all of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "tuner/engine/session.h"

enum { STYLES_MOST = 6, STEPS_MOST = 64 };

/* Neighbouring events of one kind, problem and style. */
typedef struct step {
    bool finals;
    char problem[120], style[24];
    int count;
    double best_prediction;
} step;

typedef struct story {
    step steps[STEPS_MOST];
    int count;
    int measured, stop_after;        /* 0: it goes on to the end */
    int64_t total_first, total_last; /* to be measured, as the progress has it; 0: none yet */
} story;

static void take_event(void *context, const kkt_session_event *event) {
    story *told = context;
    const bool finals = strcmp(event->step, "finalist") == 0;
    if (!finals && strcmp(event->step, "measure") != 0)
        return;
    step *last = told->count > 0 ? &told->steps[told->count - 1] : NULL;
    /* The order within finals is of no interest. */
    if (last == NULL || last->finals != finals || strcmp(last->problem, event->id->problem) != 0 ||
        (!finals && strcmp(last->style, event->id->style) != 0)) {
        assert_true(told->count < STEPS_MOST);
        last = &told->steps[told->count++];
        *last = (step){.finals = finals, .best_prediction = INFINITY};
        snprintf(last->problem, sizeof last->problem, "%s", event->id->problem);
        snprintf(last->style, sizeof last->style, "%s", finals ? "" : event->id->style);
    }
    told->measured += !finals;
    if (told->stop_after > 0 && told->measured == told->stop_after)
        kkt_session_interrupt();
    last->count++;
    last->best_prediction = fmin(last->best_prediction, event->predicted_us);
}

static void take_progress(void *context, const char *phase, int64_t done, int64_t total,
                          const char *detail) {
    (void)detail;
    story *told = context;
    if (strcmp(phase, "measure") != 0)
        return;
    assert_true(done <= total);
    if (told->total_first == 0)
        told->total_first = total;
    told->total_last = total;
}

/* So that a space is walked through quickly. */
#define PART "stages=3,store=staged,swizzle=1"
#define FEW PART ",bm=128,bn=128,bk=64,min_blocks=0" /* fewer points than a search may try */

typedef struct asked {
    const char *db, *style, *problem; /* the last two may be NULL: all */
    int64_t evals;                    /* 0: the default */
    const char *fixed;                /* parameters held; NULL: none */
    int stop_after;                   /* measurements; 0: none */
} asked;

static kkt_session_summary run_session(asked request, story *told) {
    kkt_error err = {0};
    kkt_session_summary out;
    kkt_session_options options = {.budget_evals = request.evals,
                                   .fixed = request.fixed,
                                   .problem = request.problem,
                                   .seed = 1,
                                   .counters = KKT_COUNTERS_NONE,
                                   .progress = take_progress,
                                   .progress_context = told,
                                   .event = take_event,
                                   .event_context = told};
    told->stop_after = request.stop_after;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, request.db);
    options.arch = kkt_arch_find("sm90");
    options.device = kkt_device_first(options.arch);
    kkt_policy_defaults(&options.policy);
    options.policy.energy_seconds = 0.0;
    assert_int_equal(kkt_kernel_parse("gemm", &options.kernel, NULL), KKT_OK);
    assert_int_equal(kkt_search_parse("model", &options.search, NULL), KKT_OK);
    if (request.style != NULL)
        options.variant = kkt_kernel_variant(options.kernel, kkt_style_find(request.style)->id);
    kkt_db *db = NULL;
    kkt_backend *backend = NULL;
    const kkt_backend_type *type = kkt_backend_find("fake");
    const kkt_backend_options fake = {.fake = "seed=3"};
    assert_int_equal(kkt_db_open(path, KKT_DB_WRITE, &db, &err), KKT_OK);
    assert_int_equal(type->open(&fake, &backend, &err), KKT_OK);
    if (kkt_session_run(&options, db, NULL, type, backend, &out, &err) != KKT_OK)
        fail_msg("%s", err.message);
    type->close(backend);
    kkt_db_close(db);
    return out;
}

static int problems_of(const story *told) {
    int problems = 0;
    for (int i = 0; i < told->count; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen = seen || strcmp(told->steps[j].problem, told->steps[i].problem) == 0;
        problems += !seen;
    }
    return problems;
}

/* Candidates tried of a problem, and by style in the order in which styles came. */
static int tried_of(const story *told, const char *problem, int by_style[STYLES_MOST]) {
    int all = 0, styles = 0;
    for (int i = 0; i < told->count; i++) {
        const step *at = &told->steps[i];
        if (!at->finals && strcmp(at->problem, problem) == 0 && strcmp(at->style, "library") != 0) {
            assert_true(styles < STYLES_MOST);
            by_style[styles++] = at->count;
            all += at->count;
        }
    }
    return all;
}

static void the_best_predicted_comes_first(void **state) {
    (void)state;
    story *told = calloc(1, sizeof *told);
    assert_non_null(told);
    run_session((asked){.db = "default.db"}, told);
    const int problems = problems_of(told);
    assert_true(problems > 1);
    int round[STEPS_MOST] = {0}; /* styles searched, by where the problem begins */
    double last[STEPS_MOST] = {0};
    for (int i = 0; i < told->count; i++) {
        const step *at = &told->steps[i];
        if (at->finals || strcmp(at->style, "library") == 0)
            continue;
        int first = 0;
        while (strcmp(told->steps[first].problem, at->problem) != 0)
            first++;
        assert_true(at->best_prediction >= last[first]); /* of a problem, the better first */
        last[first] = at->best_prediction;
        round[first]++;
        for (int j = 0; j < STEPS_MOST; j++) /* and of all problems, before any one's next */
            assert_true(round[j] == 0 || abs(round[j] - round[first]) <= 1);
        assert_true(round[first] > 1 || i < 2 * problems);
    }
    int by_style[STYLES_MOST] = {0};
    const int all = tried_of(told, told->steps[0].problem, by_style);
    print_message("%d, %d, %d, %d of %d\n", by_style[0], by_style[1], by_style[2], by_style[3],
                  all);
    assert_int_equal(all, 64); /* of a kernel and problem, whatever the number of its styles */
    assert_true(by_style[0] > by_style[1] && by_style[1] > by_style[2]);
    assert_true(by_style[3] >= 4);
    free(told);
}

/* The budget of a run is shared alike among its problems, and used up to the last candidate; what
 * was chosen from each style is timed once, together. */
static void one_final_holds_all_styles(void **state) {
    (void)state;
    story *told = calloc(1, sizeof *told);
    assert_non_null(told);
    run_session((asked){.db = "finals.db", .evals = 50}, told);
    const int problems = problems_of(told);
    int finals = 0;
    int all = 0;
    for (int i = 0; i < told->count; i++) {
        int by_style[STYLES_MOST] = {0};
        if (told->steps[i].finals) {
            int own = tried_of(told, told->steps[i].problem, by_style);
            assert_true(abs(own - 50 / problems) <= 3);
            all += own;
        }
    }
    assert_int_equal(all, 50);
    for (int i = 0; i < told->count; i++) {
        const step *at = &told->steps[i];
        finals += at->finals;
        assert_true(!at->finals || at->count > 5 + 2);
    }
    assert_int_equal(finals, problems);
    story *again = calloc(1, sizeof *again);
    assert_non_null(again);
    kkt_session_summary second = run_session((asked){.db = "finals.db", .evals = 50}, again);
    assert_int_equal(second.counts.measured, 0);
    assert_int_equal(again->count, 0); /* neither measured nor timed in turn a second time */
    free(told);
    free(again);
}

static void a_style_asked_for_gets_all(void **state) {
    (void)state;
    story *told = calloc(1, sizeof *told);
    assert_non_null(told);
    run_session((asked){.db = "style.db",
                        .style = "pipelined",
                        .problem = "m=4096,n=4096,k=4096",
                        .fixed = PART},
                told);
    int by_style[STYLES_MOST] = {0};
    assert_int_equal(tried_of(told, told->steps[0].problem, by_style), 64);
    assert_int_equal(by_style[0], 64);
    free(told);
}

/* The first problem is searched in two parts, since the others teach its search something: the
 * second one comes last, and the problem's only finals behind it. */
static void the_first_problem_comes_twice(void **state) {
    (void)state;
    story *told = calloc(1, sizeof *told);
    assert_non_null(told);
    const asked request = {.db = "twice.db", .style = "pipelined", .fixed = PART};
    run_session(request, told);
    const char *first = told->steps[0].problem;
    const int problems = problems_of(told);
    assert_true(problems > 2);
    assert_int_equal(told->count, 2 * problems + 1); /* each its search and its finals */
    const step *again = &told->steps[told->count - 2];
    assert_false(told->steps[0].finals);
    assert_false(told->steps[1].finals);
    assert_string_equal(again->problem, first);
    assert_int_equal(told->steps[0].count, 48);
    assert_int_equal(again->count, 16);
    assert_true(told->steps[told->count - 1].finals);
    assert_string_equal(told->steps[told->count - 1].problem, first);
    for (int i = 1; i < told->count - 2; i++)
        assert_true(told->steps[i].finals || told->steps[i].count == 64);
    free(told);
}

/* The second part of a search gets what the first one leaves, from the beginning: a budget for far
 * more than there is, and the progress counts each candidate once. */
static void each_candidate_is_foreseen_once(void **state) {
    (void)state;
    story *told = calloc(1, sizeof *told);
    assert_non_null(told);
    run_session((asked){.db = "once.db", .style = "pipelined", .evals = 20000, .fixed = FEW}, told);
    int64_t all = 0;
    for (int i = 0; i < told->count; i++)
        all += told->steps[i].finals ? 0 : told->steps[i].count;
    assert_true(all > 64 && all < 1000);
    assert_int_equal(told->total_last, all);
    assert_int_equal(told->total_first, all);
    free(told);
}

/* A run that is stopped on its way, in a process of its own since that cannot be undone. */
static void run_and_stop(asked request) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        story *told = calloc(1, sizeof *told);
        kkt_session_summary out = run_session(request, told);
        _exit(told && out.interrupted && told->measured == request.stop_after ? 0 : 1);
    }
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

/* A run that is stopped and taken up again tries the same candidates, and no others: between the
 * first problem's parts, and in the second one. */
static void parts_are_resumed(void **state) {
    (void)state;
    story *whole = calloc(1, sizeof *whole), *told = calloc(1, sizeof *told);
    assert_non_null(whole);
    assert_non_null(told);
    asked request = {.db = "uncut.db", .style = "pipelined", .fixed = PART};
    const int64_t all = run_session(request, whole).counts.measured;
    assert_true(all > 64);
    request.db = "cut.db";
    request.stop_after = 60;
    run_and_stop(request);
    request.stop_after = (int)all - 8 - 60;
    run_and_stop(request);
    request.stop_after = 0;
    const kkt_session_summary rest = run_session(request, told);
    assert_int_equal(rest.counts.reused, all - 8);
    assert_int_equal(rest.counts.measured, 8);
    free(whole);
    free(told);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_predicted_comes_first),
        cmocka_unit_test(one_final_holds_all_styles),
        cmocka_unit_test(a_style_asked_for_gets_all),
        cmocka_unit_test(the_first_problem_comes_twice),
        cmocka_unit_test(each_candidate_is_foreseen_once),
        cmocka_unit_test(parts_are_resumed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
