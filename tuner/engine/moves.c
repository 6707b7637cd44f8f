#include "tuner/engine/moves.h"

#include <math.h>
#include <stdlib.h>

/* A move is never surer than this, of the logarithm: the surrogate trusts main effects that it saw
 * far from the best. */
static const double LEAST_DOUBT = 0.03;
static const double UNTRIED = 20; /* weight of a parameter that no move changed yet */
static const double TIE = 0.02; /* slower than the best by no more: as good a place to move from */
enum { MOST_CHANGES = 3 };      /* parameters of a move, with those that it needs to be valid */

typedef struct move {
    int64_t at;  /* its mark; -1: there is none */
    int changes; /* parameters that differ */
} move;

struct kkt_moves {
    const kkt_param_table *table;
    const kkt_pointset *set;
    const kkt_outlook *outlook;
    const kkt_surrogate *surrogate;
    move to[KKT_PARAMS_MAX][KKT_CHOICES_MAX]; /* by the parameter and its new value's index */
};

kkt_moves *kkt_moves_open(const kkt_param_table *table, const kkt_pointset *set,
                          const kkt_outlook *outlook, const kkt_surrogate *surrogate) {
    kkt_moves *moves = calloc(1, sizeof *moves);
    if (moves) {
        moves->table = table;
        moves->set = set;
        moves->outlook = outlook;
        moves->surrogate = surrogate;
    }
    return moves;
}

void kkt_moves_close(kkt_moves *moves) {
    free(moves);
}

/* The parameters in which two points differ, if they are at most MOST_CHANGES; else 0. */
static int differences(const kkt_moves *moves, const kkt_surrogate_point *a,
                       const kkt_surrogate_point *b, size_t which[MOST_CHANGES]) {
    int count = 0;
    for (size_t p = 0; p < moves->table->count; p++) {
        if (a->index[p] != b->index[p]) {
            if (count == MOST_CHANGES) {
                return 0;
            }
            which[count++] = p;
        }
    }
    return count;
}

/* Of what changes a parameter to a value, that which changes least; of equals the one expected to
 * be fastest. */
static void find_moves(kkt_moves *moves, int group, uint32_t best) {
    const kkt_pointset *set = moves->set;
    const kkt_surrogate_point *from = kkt_outlook_point(moves->outlook, best);
    for (size_t p = 0; p < KKT_PARAMS_MAX; p++) {
        for (size_t i = 0; i < KKT_CHOICES_MAX; i++) {
            moves->to[p][i] = (move){.at = -1, .changes = MOST_CHANGES + 1};
        }
    }
    for (int64_t i = set->first[group]; i < set->first[group + 1]; i++) {
        uint32_t at = set->order[i];
        const kkt_surrogate_point *point = kkt_outlook_point(moves->outlook, at);
        size_t which[MOST_CHANGES];
        int changes = differences(moves, from, point, which);
        for (int k = 0; k < changes; k++) {
            move *to = &moves->to[which[k]][point->index[which[k]]];
            if (changes < to->changes ||
                (changes == to->changes &&
                 point->feature < kkt_outlook_point(moves->outlook, (uint32_t)to->at)->feature)) {
                *to = (move){.at = at, .changes = changes};
            }
        }
    }
}

static bool proposed(const kkt_moves *moves, const move *to) {
    return to->at >= 0 && moves->set->marks[to->at].proposed;
}

static double worth(const kkt_moves *moves, uint32_t at, double best_log) {
    double deviation;
    double mean =
        kkt_surrogate_predict(moves->surrogate, kkt_outlook_point(moves->outlook, at), &deviation);
    return kkt_outlook_chance(moves->outlook, at) *
           kkt_expected_improvement(best_log, mean, fmax(deviation, LEAST_DOUBT));
}

/* The unproposed move from one point that is worth most, if it is worth more than `*most`. */
static int64_t pick_from(kkt_moves *moves, int group, uint32_t from, double best_log,
                         double *most) {
    int64_t found = -1;
    find_moves(moves, group, from);
    for (size_t p = 0; p < moves->table->count; p++) {
        bool tried = false;
        for (size_t i = 0; i < KKT_CHOICES_MAX; i++) {
            tried = tried || proposed(moves, &moves->to[p][i]);
        }
        for (size_t i = 0; i < KKT_CHOICES_MAX; i++) {
            const move *to = &moves->to[p][i];
            if (to->at < 0 || proposed(moves, to)) {
                continue;
            }
            double gain = (tried ? 1 : UNTRIED) * worth(moves, (uint32_t)to->at, best_log);
            if (gain > *most) {
                found = to->at;
                *most = gain;
            }
        }
    }
    return found;
}

/* The fastest of a group that ties with its best; -1: there is none. Which of them is the best was
 * chance, as far as measuring tells, and each may be next to something better. */
static int64_t find_tie(const kkt_moves *moves, int group, uint32_t best) {
    const kkt_pointset *set = moves->set;
    double limit = (1 + TIE) * (double)set->marks[best].time_us;
    int64_t found = -1;
    for (int64_t i = set->first[group]; i < set->first[group + 1]; i++) {
        const uint32_t at = set->order[i];
        const kkt_mark *mark = &set->marks[at];
        if (at != best && mark->told && (double)mark->time_us <= limit) {
            found = at;
            limit = nextafter((double)mark->time_us, 0);
        }
    }
    return found;
}

int64_t kkt_moves_pick(kkt_moves *moves, int group, uint32_t best, double best_log) {
    double most = -1;
    int64_t tie = find_tie(moves, group, best);
    int64_t found = pick_from(moves, group, best, best_log, &most);
    int64_t other = tie >= 0 ? pick_from(moves, group, (uint32_t)tie, best_log, &most) : -1;
    return other >= 0 ? other : found;
}
