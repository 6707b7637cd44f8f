/* Strategies on a space whose times are known: nothing proposed twice, chunks shared fairly, and
 * the model-guided one ahead of random where the model itself is wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic.h"
#include "tuner/engine/moves.h"
#include "tuner/engine/search.h"

static kkt_space *open_space(const char *fixed) {
    kkt_values problem;
    kkt_space *space = NULL;
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_params_defaults(&synthetic_kernel.problem, &problem);
    assert_int_equal(kkt_space_open(&synthetic_kernel, &synthetic_variant, &problem, arch,
                                    kkt_device_first(arch), fixed, &space, NULL),
                     KKT_OK);
    return space;
}

/* A landscape the footprint knows nothing of: best at threads 64, 4 stages, swizzle 2, order 3. */
static double time_of(const kkt_values *config) {
    double t = 100 + 0.2 * (double)config->v[P_CHUNK];
    t *= 1 + 0.15 * fabs(log2((double)config->v[P_THREADS] / 64));
    t *= 1 + 0.10 * fabs((double)(config->v[P_STAGES] - 4));
    t *= 1 + 0.08 * (double)((config->v[P_SWIZZLE] + 2) % 4);
    t *= 1 + 0.05 * fabs((double)(config->v[P_ORDER] - 3));
    if (config->v[P_STAGES] > 4 && config->v[P_THREADS] == 64) {
        t *= 1.3; /* an effect that does not add up */
    }
    return t;
}

/* Every fifth configuration fails. */
static bool fails(const kkt_values *config) {
    return config->v[P_ORDER] == 4;
}

static double run_search(const char *name, const char *fixed, uint64_t seed, int budget,
                         int64_t *proposals, int *per_chunk, int *failed_proposals) {
    int failures = 0;
    const kkt_search_type *type = NULL;
    assert_int_equal(kkt_search_parse(name, &type, NULL), KKT_OK);
    kkt_space *space = open_space(fixed);
    bool *seen = calloc((size_t)kkt_space_raw_size(space), sizeof *seen);
    kkt_search *search = NULL;
    kkt_search_options options = {.seed = seed, .budget = budget};
    assert_int_equal(type->open(space, &options, &search, NULL), KKT_OK);
    double best = INFINITY;
    kkt_point point;
    *proposals = 0;
    while (*proposals < budget && type->propose(search, &point)) {
        assert_false(seen[point.ordinal]);
        seen[point.ordinal] = true;
        (*proposals)++;
        if (per_chunk) {
            per_chunk[(int)log2((double)point.config.v[P_CHUNK]) - 4]++;
        }
        bool failed = fails(&point.config);
        failures += failed;
        double t = failed ? (double)NAN : time_of(&point.config);
        type->tell(search, &point.config, t);
        best = !failed && t < best ? t : best;
    }
    if (failed_proposals) {
        *failed_proposals = failures;
    }
    type->close(search);
    free(seen);
    kkt_space_close(space);
    return best;
}

static double optimum(const char *fixed) {
    kkt_space *space = open_space(fixed);
    kkt_point point;
    double best = INFINITY;
    while (kkt_space_next(space, NULL, NULL, &point)) {
        double t = time_of(&point.config);
        best = t < best ? t : best;
    }
    kkt_space_close(space);
    return best;
}

static void exhaustive_sees_all(void **state) {
    (void)state;
    const char *part = "threads=64,swizzle=2";
    kkt_space *space = open_space(part);
    kkt_point point;
    int64_t points = 0;
    while (kkt_space_next(space, NULL, NULL, &point)) {
        points++;
    }
    kkt_space_close(space);
    const char *names[] = {"exhaustive", "random", "model"};
    for (size_t i = 0; i < 3; i++) {
        int64_t proposals;
        double best = run_search(names[i], part, 7, 1 << 20, &proposals, NULL, NULL);
        assert_int_equal(proposals, points);
        assert_true(fabs(best - optimum(part)) < 1e-9);
    }
}

static void chunks_share_the_budget(void **state) {
    (void)state;
    int per_chunk[4] = {0};
    int64_t proposals;
    run_search("model", NULL, 1, 64, &proposals, per_chunk, NULL);
    assert_int_equal(proposals, 64);
    for (int i = 0; i < 4; i++) {
        assert_true(per_chunk[i] >= 5 + 8); /* a third of the budget, then moves, in equal shares */
    }
}

static void model_learns(void **state) {
    (void)state;
    int64_t proposals;
    double model = run_search("model", NULL, 1, 64, &proposals, NULL, NULL);
    double random = 0;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        random += run_search("random", NULL, seed, 64, &proposals, NULL, NULL) / 25;
    }
    print_message("optimum %.1f, model %.1f, random (mean of 25) %.1f\n", optimum(NULL), model,
                  random);
    assert_true(model <= 1.05 * optimum(NULL));
    assert_true(model < random);
}

/* What fails is learned too: the rest of the budget goes elsewhere. */
static void failures_are_avoided(void **state) {
    (void)state;
    int64_t proposals;
    int failures;
    run_search("model", NULL, 1, 128, &proposals, NULL, &failures);
    print_message("%d of 128 proposals failed; by chance it were 26\n", failures);
    assert_true(failures <= 13);
}

/* The winners of another problem come first, and what failed there is not tried here. */
static void remembers_other_problems(void **state) {
    (void)state;
    const char *winner = "order=3,pad=0,stages=4,swizzle=2,threads=64";
    const kkt_param_table *table = &synthetic_variant.params;
    kkt_search_memory memory = {0};
    const kkt_search_type *type = NULL;
    kkt_search *search = NULL;
    kkt_space *space = open_space(NULL);
    kkt_point point;
    kkt_values config;
    int other = kkt_memory_begin(&memory);
    while (kkt_space_next(space, NULL, NULL, &point)) {
        if (point.ordinal % 7 == 0) {
            double t = fails(&point.config) ? (double)NAN : time_of(&point.config);
            assert_int_equal(kkt_memory_add(&memory, other, &point.config,
                                            point.prediction.predicted_us, t, NULL),
                             KKT_OK);
        }
    }
    kkt_params_defaults(table, &config);
    assert_int_equal(kkt_params_parse(table, winner, &config, NULL, NULL), KKT_OK);
    for (int64_t chunk = 16; chunk <= 128; chunk *= 2) { /* which fits into a block with each */
        config.v[P_CHUNK] = chunk;
        assert_int_equal(kkt_memory_add(&memory, other, &config, 100, time_of(&config), NULL),
                         KKT_OK);
    }
    kkt_search_options options = {.seed = 1, .budget = 64, .memory = &memory};
    assert_int_equal(kkt_search_parse("model", &type, NULL), KKT_OK);
    assert_int_equal(type->open(space, &options, &search, NULL), KKT_OK);
    int failed = 0, won = 0;
    for (int i = 0; i < 32 && type->propose(search, &point); i++) {
        config.v[P_CHUNK] = point.config.v[P_CHUNK];
        won += i < 4 && kkt_values_equal(table, &point.config, &config);
        failed += fails(&point.config);
        type->tell(search, &point.config,
                   fails(&point.config) ? (double)NAN : time_of(&point.config));
    }
    print_message("%d winners among the first 4; %d of 32 failed\n", won, failed);
    assert_true(won >= 3); /* at 128 rows the ring may be too large */
    assert_true(failed <= 3);
    type->close(search);
    kkt_memory_free(&memory);
    kkt_space_close(space);
}

/* Like the H200's times of kkt_solve at 64 rows: what is best of some parameters depends on others,
 * and configurations that are three changes from the best are within a few per cent of it. */
static double rugged(const kkt_values *config) {
    double t = time_of(config);
    bool swizzled = config->v[P_SWIZZLE] >= 2;
    t *= swizzled == (config->v[P_ORDER] >= 2) ? 1 : 1.04;
    t *= swizzled == (config->v[P_THREADS] <= 64) ? 1 : 1.03;
    return t;
}

static double best_of_chunk(kkt_space *space, int64_t chunk) {
    double best = INFINITY;
    kkt_point point;
    kkt_space_rewind(space);
    while (kkt_space_next(space, NULL, NULL, &point)) {
        if (point.config.v[P_CHUNK] == chunk && !fails(&point.config)) {
            best = fmin(best, rugged(&point.config));
        }
    }
    return best;
}

/* What a search's own earlier candidates showed is no news of its problem from elsewhere. */
static void own_past_is_no_memory(void **state) {
    (void)state;
    kkt_search_memory memory = {0};
    kkt_space *space = open_space("chunk=64");
    kkt_pointset set;
    kkt_point point;
    const int own = kkt_memory_begin(&memory);
    while (kkt_space_next(space, NULL, NULL, &point)) {
        assert_int_equal(kkt_memory_add(&memory, own, &point.config, point.prediction.predicted_us,
                                        time_of(&point.config), NULL),
                         KKT_OK);
    }
    assert_int_equal(kkt_pointset_make(space, NULL, NULL, &set, NULL), KKT_OK);
    double changed[2] = {0};
    for (int to = 0; to < 2; to++) {
        kkt_outlook *outlook = NULL;
        const int left_out = to == 0 ? own : own + 1;
        assert_int_equal(kkt_outlook_open(space, &set, &memory, left_out, &outlook, NULL), KKT_OK);
        for (int64_t i = 0; i < set.count; i++) {
            double expected = kkt_outlook_point(outlook, (uint32_t)i)->feature;
            changed[to] += fabs(expected - log((double)set.marks[i].predicted_us));
        }
        int64_t winners[2];
        const int group = set.marks[0].group;
        assert_int_equal(kkt_outlook_winners(outlook, group, &memory, left_out, 2, winners), to);
        kkt_outlook_close(outlook);
    }
    assert_true(changed[0] < 1e-9);
    assert_true(changed[1] > 1);
    kkt_pointset_free(&set);
    kkt_memory_free(&memory);
    kkt_space_close(space);
}

/* Proposes until the memory has `until` candidates of search number `own`. */
static void go_on(kkt_space *space, kkt_search_memory *memory, int own, size_t until, int budget) {
    const kkt_search_type *type = NULL;
    kkt_search *search = NULL;
    kkt_point point;
    kkt_search_options options = {.seed = 1, .budget = budget, .memory = memory, .own = own};
    assert_int_equal(kkt_search_parse("model", &type, NULL), KKT_OK);
    assert_int_equal(type->open(space, &options, &search, NULL), KKT_OK);
    while (memory->count < until && type->propose(search, &point)) {
        double t = fails(&point.config) ? (double)NAN : rugged(&point.config);
        type->tell(search, &point.config, t);
        assert_int_equal(kkt_memory_add(memory, own, &point.config, 100, t, NULL), KKT_OK);
    }
    type->close(search);
}

/* A search in two parts is one of the same budget: nothing is tried twice, every chunk size gets
 * its share of the whole and ends near its best. */
static void goes_on_where_it_ended(void **state) {
    (void)state;
    enum { FIRST = 16, BUDGET = 64 };
    kkt_search_memory memory = {0};
    kkt_space *space = open_space(NULL);
    const int own = kkt_memory_begin(&memory);
    go_on(space, &memory, own, FIRST, BUDGET);
    assert_int_equal(memory.count, FIRST);
    go_on(space, &memory, own, BUDGET, BUDGET);
    assert_int_equal(memory.count, BUDGET);
    int per_chunk[4] = {0};
    for (size_t i = 0; i < memory.count; i++) {
        const kkt_values *config = &memory.rows[i].config;
        per_chunk[(int)log2((double)config->v[P_CHUNK]) - 4]++;
        for (size_t j = 0; j < i; j++) {
            assert_false(
                kkt_values_equal(&synthetic_variant.params, config, &memory.rows[j].config));
        }
    }
    for (int i = 0; i < 4; i++) {
        const kkt_memory_row *best = kkt_memory_best(&memory, own, P_CHUNK, 16 << i);
        assert_non_null(best);
        print_message("chunk %d: %d tried, %.1f\n", 16 << i, per_chunk[i], best->time_us);
        assert_true(per_chunk[i] >= 5 + 8);
        assert_true(best->time_us <= 1.02 * best_of_chunk(space, 16 << i));
    }
    kkt_memory_free(&memory);
    kkt_space_close(space);
}

/* How often a search that goes on tries what it is told won elsewhere, whatever the chunk size. */
static int tries_of_winner(const char *winner) {
    enum { FIRST = 16, SECOND = 8, BUDGET = 64 };
    kkt_search_memory memory = {0};
    kkt_space *space = open_space(NULL);
    kkt_values config;
    const int own = kkt_memory_begin(&memory);
    go_on(space, &memory, own, FIRST, BUDGET);
    kkt_params_defaults(&synthetic_variant.params, &config);
    assert_int_equal(kkt_params_parse(&synthetic_variant.params, winner, &config, NULL, NULL),
                     KKT_OK);
    const int other = kkt_memory_begin(&memory);
    for (int64_t chunk = 16; chunk <= 128; chunk *= 2) {
        config.v[P_CHUNK] = chunk;
        assert_int_equal(kkt_memory_add(&memory, other, &config, 100, 100, NULL), KKT_OK);
    }
    const size_t told = memory.count;
    go_on(space, &memory, own, memory.count + SECOND, BUDGET);
    int tries = 0;
    for (size_t i = told; i < memory.count; i++) {
        config.v[P_CHUNK] = memory.rows[i].config.v[P_CHUNK];
        tries += memory.rows[i].problem == own &&
                 kkt_values_equal(&synthetic_variant.params, &memory.rows[i].config, &config);
    }
    kkt_memory_free(&memory);
    kkt_space_close(space);
    return tries;
}

/* What won elsewhere is tried, unless what was measured here tells clearly against it. */
static void hopeless_winners_are_left_out(void **state) {
    (void)state;
    int good = tries_of_winner("order=3,pad=0,stages=4,swizzle=2,threads=64");
    int bad = tries_of_winner("order=0,pad=0,stages=1,swizzle=0,threads=256");
    print_message("%d and %d tries\n", good, bad);
    assert_true(good >= 3);
    assert_int_equal(bad, 0);
}

/* Where nothing is known each chunk size begins with the other parameters' defaults. */
static void begins_with_the_defaults(void **state) {
    (void)state;
    enum { CHUNKS = 4, BUDGET = 64 };
    kkt_search_memory memory = {0};
    kkt_space *space = open_space(NULL);
    kkt_values config;
    const int own = kkt_memory_begin(&memory);
    go_on(space, &memory, own, CHUNKS, BUDGET);
    kkt_params_defaults(&synthetic_variant.params, &config);
    assert_int_equal(memory.count, CHUNKS);
    for (size_t i = 0; i < CHUNKS; i++) {
        config.v[P_CHUNK] = memory.rows[i].config.v[P_CHUNK];
        assert_true(kkt_values_equal(&synthetic_variant.params, &memory.rows[i].config, &config));
    }
    kkt_memory_free(&memory);
    kkt_space_close(space);
}

static int changes(const kkt_values *a, const kkt_values *b) {
    int count = 0;
    for (size_t p = 0; p < synthetic_variant.params.count; p++) {
        count += a->v[p] != b->v[p];
    }
    return count;
}

/* In the second half of the budget each chunk size's best is changed in one parameter at a time. */
static void best_is_polished(void **state) {
    (void)state;
    const kkt_search_type *type = NULL;
    kkt_search *search = NULL;
    kkt_space *space = open_space(NULL);
    kkt_search_options options = {.seed = 1, .budget = 64};
    kkt_values best[4];
    double best_time[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    int moves = 0;
    int per_chunk[4] = {0};
    kkt_point point;
    assert_int_equal(kkt_search_parse("model", &type, NULL), KKT_OK);
    assert_int_equal(type->open(space, &options, &search, NULL), KKT_OK);
    for (int i = 0; i < 64 && type->propose(search, &point); i++) {
        int group = (int)log2((double)point.config.v[P_CHUNK]) - 4;
        if (i >= 32) {
            per_chunk[group]++;
            /* Pad goes with one swizzle only: a move may have to change both. */
            moves += isfinite(best_time[group]) && changes(&point.config, &best[group]) <= 2;
        }
        double t = fails(&point.config) ? (double)NAN : time_of(&point.config);
        type->tell(search, &point.config, t);
        if (t < best_time[group]) {
            best_time[group] = t;
            best[group] = point.config;
        }
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(per_chunk[i], 8);
    }
    print_message("%d of the last 32 were moves\n", moves);
    assert_int_equal(moves, 32);
    type->close(search);
    kkt_space_close(space);
}

/* A search sees times as late as in a run, where a few candidates are compiled ahead. Each chunk
 * size has to end within 2 % of its best. */
static void every_chunk_ends_near_its_best(void **state) {
    (void)state;
    enum { LATE = 6, BUDGET = 64 };
    const kkt_search_type *type = NULL;
    kkt_search *search = NULL;
    kkt_space *space = open_space(NULL);
    kkt_search_options options = {.seed = 1, .budget = BUDGET};
    double found[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    kkt_point ahead[BUDGET];
    int proposed = 0;
    assert_int_equal(kkt_search_parse("model", &type, NULL), KKT_OK);
    assert_int_equal(type->open(space, &options, &search, NULL), KKT_OK);
    for (int told = 0; told < BUDGET; told++) {
        while (proposed < BUDGET && proposed < told + LATE) {
            assert_true(type->propose(search, &ahead[proposed]));
            proposed++;
        }
        const kkt_values *config = &ahead[told].config;
        double t = fails(config) ? (double)NAN : rugged(config);
        int group = (int)log2((double)config->v[P_CHUNK]) - 4;
        found[group] = fmin(found[group], t);
        type->tell(search, config, t);
    }
    for (int i = 0; i < 4; i++) {
        const double best = best_of_chunk(space, 16 << i);
        print_message("chunk %d: %.3f of the best\n", 16 << i, found[i] / best);
        assert_true(found[i] <= 1.02 * best);
    }
    type->close(search);
    kkt_space_close(space);
}

static uint32_t mark_of(const kkt_pointset *set, const kkt_space *space, const char *text,
                        kkt_values *config) {
    kkt_params_defaults(&synthetic_variant.params, config);
    assert_int_equal(kkt_params_parse(&synthetic_variant.params, text, config, NULL, NULL), KKT_OK);
    kkt_mark *mark = kkt_pointset_find(set, space, config);
    assert_non_null(mark);
    return (uint32_t)(mark - set->marks);
}

/* Which of two that tie is the best was chance: moves begin at both, at one that is slower at none.
 */
static int moves_beside(double other_us) {
    kkt_space *space = open_space("chunk=64");
    kkt_pointset set;
    kkt_outlook *outlook = NULL;
    kkt_values best, other;
    assert_int_equal(kkt_pointset_make(space, NULL, NULL, &set, NULL), KKT_OK);
    assert_int_equal(kkt_outlook_open(space, &set, NULL, 0, &outlook, NULL), KKT_OK);
    kkt_surrogate *surrogate = kkt_surrogate_open(&synthetic_variant.params, 8);
    kkt_moves *moves = kkt_moves_open(&synthetic_variant.params, &set, outlook, surrogate);
    assert_true(surrogate && moves);
    uint32_t at = mark_of(&set, space, "threads=64,stages=2", &best);
    uint32_t beside = mark_of(&set, space, "threads=64,stages=3,swizzle=2", &other);
    kkt_pointset_tell(&set, space, &best, 100);
    kkt_pointset_tell(&set, space, &other, other_us);
    kkt_surrogate_add(surrogate, kkt_outlook_point(outlook, at), log(100));
    kkt_surrogate_add(surrogate, kkt_outlook_point(outlook, beside), log(other_us));
    assert_true(kkt_surrogate_fit(surrogate));
    int found = 0, group = set.marks[at].group;
    for (int64_t to; (to = kkt_moves_pick(moves, group, at, log(100))) >= 0;) {
        kkt_point point;
        assert_true(kkt_pointset_propose(space, &set.marks[to], &point));
        found += changes(&point.config, &other) == 1 && changes(&point.config, &best) == 3;
    }
    kkt_moves_close(moves);
    kkt_surrogate_close(surrogate);
    kkt_outlook_close(outlook);
    kkt_pointset_free(&set);
    kkt_space_close(space);
    return found;
}

static void moves_begin_at_ties(void **state) {
    (void)state;
    assert_true(moves_beside(101) > 0);
    assert_int_equal(moves_beside(103), 0);
}

static void deterministic(void **state) {
    (void)state;
    int64_t proposals;
    const char *names[] = {"model", "random"};
    for (size_t i = 0; i < 2; i++) {
        double a = run_search(names[i], NULL, 3, 40, &proposals, NULL, NULL);
        double b = run_search(names[i], NULL, 3, 40, &proposals, NULL, NULL);
        assert_true(a <= b && b <= a);
    }
}

static void unknown_name(void **state) {
    (void)state;
    const kkt_search_type *type = NULL;
    kkt_error err = {0};
    assert_int_equal(kkt_search_parse("annealing", &type, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "annealing"));
    assert_non_null(strstr(err.message, "exhaustive"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exhaustive_sees_all),
        cmocka_unit_test(chunks_share_the_budget),
        cmocka_unit_test(model_learns),
        cmocka_unit_test(failures_are_avoided),
        cmocka_unit_test(moves_begin_at_ties),
        cmocka_unit_test(best_is_polished),
        cmocka_unit_test(every_chunk_ends_near_its_best),
        cmocka_unit_test(deterministic),
        cmocka_unit_test(unknown_name),
        cmocka_unit_test(remembers_other_problems),
        cmocka_unit_test(own_past_is_no_memory),
        cmocka_unit_test(goes_on_where_it_ended),
        cmocka_unit_test(hopeless_winners_are_left_out),
        cmocka_unit_test(begins_with_the_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
