/* Which style of which problem is searched when, and how much of a budget it gets.
 *
 * A kernel's styles differ by factors, and the model tells their order well before anything is
 * measured. So each problem's most promising style comes in a first round over all problems, the
 * next ones in rounds behind it: a run that is cut off has the best of every problem. The budget of
 * a kernel and problem is one for all of its styles.
 *
 * Searches of a style learn from those before them, on other problems. The first has none before
 * it, so it is searched in two parts, and the others come between them. */
#include <math.h>
#include <string.h>

#include "tuner/engine/session_internal.h"

enum {
    FEW = 4,
    STYLES_MOST = 16,
    PARTED_LEAST = 32 /* a search of fewer candidates is not worth two parts */
};
/* What a parted search gets to begin with: enough to be good to learn from. The rest will do for
 * what won elsewhere and for moves from it. */
static const double FIRST_PART = 0.75;

/* The tuned styles of a kernel on a problem, the best prediction first. */
typedef struct ranking {
    task *of[STYLES_MOST];
    int count;
} ranking;

static bool together(const task *a, const task *b) {
    return a->kernel == b->kernel && strcmp(a->problem_text, b->problem_text) == 0;
}

static void rank(session *s, const task *like, ranking *out) {
    out->count = 0;
    for (size_t i = 0; i < s->task_count; i++) {
        task *t = &s->tasks[i];
        if (t->left_out || !together(t, like) || !kkt_variant_tuned(t->variant) ||
            out->count == STYLES_MOST) {
            continue;
        }
        int at = out->count++;
        for (; at > 0 && out->of[at - 1]->best_us > t->best_us; at--) {
            out->of[at] = out->of[at - 1];
        }
        out->of[at] = t;
    }
}

/* Each style gets a few, so that they can be compared; of the rest each gets half of what the one
 * before it gets. What a small space has no use for goes to the best that has. */
static void share_out(const session *s, ranking *styles) {
    if (styles->count < 1) {
        return;
    }
    int64_t few = EVALS_PER_TASK / (2 * styles->count);
    few = few < FEW ? few : FEW;
    int64_t rest = EVALS_PER_TASK - few * styles->count;
    int64_t parts = ((int64_t)1 << styles->count) - 1;
    int64_t left = EVALS_PER_TASK;
    for (int i = 0; i < styles->count; i++) {
        task *t = styles->of[i];
        t->evals = few + rest * ((int64_t)1 << (styles->count - 1 - i)) / parts;
        if (s->walks_cut == 0 && t->evals > t->points) {
            t->evals = t->points;
        }
        left -= t->evals;
    }
    for (int i = 0; i < styles->count && left > 0; i++) {
        task *t = styles->of[i];
        int64_t room = t->points > t->evals ? t->points - t->evals : 0;
        int64_t more = room < left ? room : left;
        t->evals += more;
        left -= more;
    }
}

static int by_kernel_and_round(const task *a, const task *b) {
    return a->kernel != b->kernel ? 0 : (a->round > b->round) - (a->round < b->round);
}

/* Stable: tasks come kernel by kernel, in each kernel problem by problem. */
static void sort_rounds(session *s) {
    for (size_t i = 1; i < s->task_count; i++) {
        task moved = s->tasks[i];
        size_t at = i;
        for (; at > 0 && by_kernel_and_round(&s->tasks[at - 1], &moved) > 0; at--) {
            s->tasks[at] = s->tasks[at - 1];
        }
        s->tasks[at] = moved;
    }
}

/* The chunk sizes of a pipeline's kernels are tasks of their own, with a budget each. */
void session_order_tasks(session *s) {
    for (size_t i = 0; i < s->task_count && !s->options->pipeline; i++) {
        task *t = &s->tasks[i];
        t->free = session_stands_beside(s, t);
        if (t->left_out || t->round > 0 || !kkt_variant_tuned(t->variant)) {
            continue;
        }
        ranking styles;
        rank(s, t, &styles);
        share_out(s, &styles);
        for (int r = 0; r < styles.count; r++) {
            styles.of[r]->round = r;
        }
    }
    if (!s->options->pipeline) {
        sort_rounds(s);
    }
}

/* ---- turns ---- */

/* The share of a task in a budget for the whole run. */
static int64_t part_of_budget(const session *s, const task *t) {
    if (s->options->budget_evals <= 0) {
        return t->evals;
    }
    int64_t weights = 0;
    for (size_t i = 0; i < s->task_count; i++) {
        const task *other = &s->tasks[i];
        weights += other->left_out || other->free ? 0 : other->evals;
    }
    return weights > 0 ? s->options->budget_evals * t->evals / weights : 0;
}

/* Whether a task of a variant comes before task number `index`, or after it. */
static bool has_another(const session *s, size_t index, bool before) {
    const task *t = &s->tasks[index];
    for (size_t i = before ? 0 : index + 1; i < (before ? index : s->task_count); i++) {
        if (s->tasks[i].variant == t->variant && !s->tasks[i].left_out) {
            return true;
        }
    }
    return false;
}

/* Whether a task is the first of several of its variant, and worth two parts. */
static bool is_parted(const session *s, size_t index) {
    const task *t = &s->tasks[index];
    return s->options->search->remembers && !s->options->revalidate && !s->options->exhaustive &&
           !s->options->pipeline && !t->free && part_of_budget(s, t) >= PARTED_LEAST &&
           !has_another(s, index, true) && has_another(s, index, false);
}

/* What a parted search has left, behind the last task of its variant. */
static void add_second_part(session *s, const task *last) {
    for (size_t i = 0; i < s->turn_count; i++) {
        const turn *begun = &s->turns[i];
        if (begun->task->variant == last->variant && !begun->last) {
            s->turns[s->turn_count++] = (turn){
                .task = begun->task, .evals = begun->task->evals - begun->evals, .last = true};
            return;
        }
    }
}

void session_plan_turns(session *s) {
    s->turns = kkt_arena_array(s->arena, 2 * s->task_count + 1, sizeof *s->turns);
    s->turn_count = 0;
    for (size_t i = 0; i < s->task_count; i++) {
        task *t = &s->tasks[i];
        if (t->left_out) {
            continue;
        }
        const bool parted = is_parted(s, i);
        const int64_t first = (int64_t)(FIRST_PART * (double)t->evals);
        s->turns[s->turn_count++] =
            (turn){.task = t, .evals = parted ? first : t->evals, .first = true, .last = !parted};
        if (!has_another(s, i, false)) {
            add_second_part(s, t);
        }
    }
}

int64_t session_share(const session *s, size_t index) {
    const turn *now = &s->turns[index];
    const task *t = now->task;
    int64_t all = kkt_space_raw_size(t->space);
    if (t->free) {
        return all < EVALS_PER_TASK ? all : EVALS_PER_TASK;
    }
    if (s->options->budget_evals <= 0) {
        return s->options->exhaustive ? all : now->evals;
    }
    int64_t weights = 0;
    for (size_t i = index; i < s->turn_count; i++) {
        const turn *other = &s->turns[i];
        weights += other->task->free ? 0 : other->evals;
    }
    if (weights <= 0) {
        return 0;
    }
    /* Rounded up: the last turn gets all that is left. */
    double share = ceil((double)s->evals_left * (double)now->evals / (double)weights);
    return share < (double)s->evals_left ? (int64_t)share : s->evals_left;
}
