/* What the files of a session share. */
#ifndef KKT_TUNER_SESSION_INTERNAL_H
#define KKT_TUNER_SESSION_INTERNAL_H

#include "base/arena.h"
#include "tuner/engine/session.h"

/* Candidates a kernel and problem where no budget is given. */
enum { EVALS_PER_TASK = 64 };

/* The styles of a kernel on a problem, and what was measured of them: see session_finals.c. */
typedef struct contest contest;

/* One kernel variant on one problem. */
typedef struct task {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values problem;
    const char *problem_text; /* canonical; in the session's arena */
    char hash[65];            /* kkt_variant_hash */
    const char *fixed;        /* parameters held; NULL: none */
    kkt_space *space;
    int64_t evals;       /* that it may try where no budget is given */
    kkt_pointset walked; /* its points; empty where the space was not walked through */
    int64_t points;      /* that the model does not reject */
    double best_us;      /* the best prediction of those points; INFINITY: none */
    int round;           /* 0 for the style with a problem's best prediction, 1, ... */
    bool free;        /* a baseline beside other styles: its candidates are no part of a budget */
    int memory;       /* its search's number in its variant's memory; 0: it has not begun */
    int64_t tried;    /* candidates of its search so far */
    contest *contest; /* NULL: it is left out */
    bool left_out;    /* it calls a library that is not there: nothing is run of it */
} task;

/* A search of a task, or one of the two parts of it. */
typedef struct turn {
    task *task;
    int64_t evals;    /* that it may try where no budget is given */
    int64_t share;    /* of a budget of evals, as far as it can be foreseen */
    int64_t foreseen; /* of that share, candidates there are; part of session.to_try */
    bool first, last;
} turn;

/* What the searches of a variant found out. */
typedef struct recollection {
    const kkt_variant *variant;
    kkt_search_memory memory;
    struct recollection *next;
} recollection;

/* A library that variants of this run call. */
typedef struct called_library {
    const char *name;
    char version[KKT_LIBRARY_VERSION_BYTES]; /* "": it is not there, or not known */
} called_library;

enum { CALLED_LIBRARIES_MAX = 4 };

typedef struct trial trial;

typedef struct session {
    const kkt_session_options *options;
    kkt_db *db;
    kkt_compile_pool *pool;
    const kkt_backend_type *backend_type;
    kkt_backend *backend;
    const kkt_freshness *freshness;
    called_library libraries[CALLED_LIBRARIES_MAX];
    size_t library_count;
    kkt_arena *arena;
    kkt_session_summary *out;
    double start_s;
    int64_t evals_left; /* of --budget evals; INT64_MAX: none given */
    int64_t next_tag;
    const kkt_search_type *strategy; /* of the task at hand */
    recollection *recollections;     /* of the tasks before it, one a variant */
    contest **contests;              /* in the order of the tasks */
    size_t contest_count;
    bool shared_finals, holding_finals; /* some contest has several styles; one is at its finals */
    int64_t tried, to_try;              /* over all tasks, for the progress */
    bool nothing_left;   /* an earlier run did all that this one would: see session_mark.c */
    double walk_until_s; /* when the walk through a space has to end, in seconds of the run */
    size_t walks_cut;    /* spaces of which only the beginning was walked through in that time */
    bool disturbance_told;
    bool timing_pipelines;     /* the last phase of a run that has it */
    const char *told_rejected; /* the pipeline of which it was noted last that it is rejected */
    int64_t pipelines_known;   /* timed by an earlier run, and still of what there is now */
    bool retrying;             /* slots that begin now forget a failure */
    int64_t *late;             /* candidates whose compile took too long in this run */
    size_t late_count, late_capacity;
    trial **in_flight; /* slots whose compile job has not been answered yet */
    size_t in_flight_count, in_flight_capacity;
    task *tasks;
    size_t task_count;
    turn *turns; /* what is searched when */
    size_t turn_count;
} session;

/* What the database knows of a candidate. */
typedef struct known {
    bool made_up; /* in: results of the fake backend are asked for, and only they */
    bool found;
    bool has_prediction;
    double predicted_us;
    bool fresh_build;
    kkt_outcome build_outcome;
    bool fresh_run;
    kkt_outcome outcome;
    double time_us;       /* of a fresh run; NaN where there is none or it failed */
    double first_time_us; /* of the first run of that build that was timed: before any re-timing */
    double energy_mj, rel_fro;
    bool energetic; /* energy was asked for in that run, whether or not there was any */
    bool stale_run; /* the best run is stale: there is no fresh one */
    bool finalist;
    bool settled;     /* checked and timed, or failed at it, by what is there now: nothing to do */
    bool failed;      /* settled by a failure */
    int64_t run_id;   /* of a fresh run; 0: none */
    int64_t build_id; /* its build's, or that of the build there is; 0: none */
    bool counted;     /* that run has its counters, or it was tried in vain */
} known;

/* A candidate on its way through the run. */
struct trial {
    const task *task;
    kkt_point point;
    kkt_identity id;
    int64_t candidate_id;
    known known;
    int64_t tag;   /* of its compile job; 0: none was needed */
    bool compiled; /* `build` is filled */
    kkt_compile_result build;
    int64_t build_id; /* 0: not stored */
    int64_t run_id;   /* of the last run in this session; 0: none */
    kkt_outcome run_outcome;
    double energy_mj, rel_fro; /* of the last run, now or before; NaN: unknown */
    bool counted;              /* in this session */
};

/* session.c. Options, database, pool, backend and `out` are filled; `open` makes the rest. */
void session_open(session *s);
void session_close(session *s);
/* Fills the next of `tasks`, which has room for it. KKT_ERR_INPUT: no such problem. */
kkt_status session_add_task(session *s, const kkt_kernel *kernel, const kkt_variant *variant,
                            const char *problem, kkt_error *err);
/* Fills a task of the caller's, whose space the caller closes; `fixed` holds parameters. */
kkt_status session_open_task(session *s, const kkt_kernel *kernel, const kkt_variant *variant,
                             const char *problem, const char *fixed, task *out, kkt_error *err);
void session_close_task(task *t);
bool session_interrupted(void);
double session_seconds(const session *s);
bool session_time_left(const session *s);
void session_progress(const session *s, const char *phase, int64_t done, int64_t total,
                      const char *detail);

/* session_library.c. Asks the backend for the libraries that tasks call, once each; tasks whose
 * library is not there are left out, which is noted. */
void session_open_libraries(session *s);
/* What makes a result beside the sources, "nvrtc 13.0, cublas 13.1.0", each where it is known: the
 * compiler (NULL: not known) and the library of a variant (NULL: all). NULL: nothing is known. */
const char *session_tools(const session *s, const char *compiler, const kkt_variant *variant);
/* Whether a task is a baseline whose fastest calls another task of this run times with its own
 * finalists. */
bool session_stands_beside(const session *s, const task *t);
/* Begins slots of the fastest calls of a library on a task's problem, at a chunk size (0: it has
 * none), that were timed before: at most `most` into `out`; returns in `*count` how many. None of a
 * baseline itself. */
kkt_status session_fastest_calls(session *s, const task *t, int64_t chunk, trial **out, size_t most,
                                 size_t *count, kkt_error *err);
/* Whether the backend needs the code of a variant, and the variant has any. */
bool session_needs_code(const session *s, const kkt_variant *variant);

/* session_store.c: the database side. */
kkt_status session_slot_begin(session *s, const task *t, const kkt_point *point, trial *out,
                              kkt_error *err);
kkt_status session_store_build(session *s, trial *slot, kkt_error *err);
kkt_status session_store_run(session *s, trial *slot, const kkt_measure_result *result,
                             const char *policy_suffix, kkt_error *err);
/* Walks through a task's space, until `walk_until_s` at most, and stores why configurations were
 * turned down. */
kkt_status session_store_rejects(session *s, task *t, kkt_error *err);
/* Predicts what the database knows of a task's candidates without a prediction (recorded rows). */
kkt_status session_predict_known(session *s, const task *t, kkt_error *err);
void session_count_outcome(session *s, const trial *slot, kkt_outcome outcome);
void session_count_reused(session *s, const trial *slot);
void session_tell(const session *s, const trial *slot, const char *step, kkt_outcome outcome,
                  const char *reason, const kkt_run_record *run);

/* The points of a task where its space was walked through, else NULL. */
static inline const kkt_pointset *session_points(const task *t) {
    return t->walked.count > 0 ? &t->walked : NULL;
}

/* session_compile.c. A submitted slot must stay where it is until it is `compiled`. */
kkt_status session_submit(session *s, trial *slot, kkt_error *err);
/* Hands finished compile jobs to their slots until `wanted` has its own (NULL: until any one
 * arrived), `seconds` pass or the run is interrupted. */
kkt_status session_collect(session *s, const trial *wanted, double seconds, kkt_error *err);
/* Compiles and stores those without a fresh build, within the run's budget of time. */
kkt_status session_compile_slots(session *s, trial **slots, size_t count, kkt_error *err);
kkt_status session_compile_all(session *s, kkt_error *err);

/* session_mark.c */
kkt_status session_mark_load(session *s, kkt_error *err);
kkt_status session_mark_store(session *s, kkt_error *err);

/* session_retry.c: tries every candidate of a task again that failed before. */
kkt_status session_retry_task(session *s, const task *t, kkt_error *err);

/* session_count.c: hardware counters of a slot that was timed, now or before, unless it has them.
 * What cannot be counted is noted on the run. */
kkt_status session_count(session *s, trial *slot, kkt_error *err);
/* Whether a note on a run says that counting it again is of no use. */
bool session_count_settled(const char *note);

/* session_measure.c */
kkt_measure_request session_request(const session *s, const trial *slot);
/* Checks and times one slot that a job was handed in for where one is needed. `*time_us` is NaN
 * where that failed, or where it was interrupted before. */
kkt_status session_measure_slot(session *s, trial *slot, double *time_us, kkt_error *err);
/* Compiles (from the cache, as a rule) and stores the build of a slot whose result was reused. */
kkt_status session_ready_slot(session *s, trial *slot, kkt_error *err);
/* Times slots that were checked before interleaved, and stores all runs or none, each with its
 * suffix of the policy. */
kkt_status session_retime(session *s, trial *const *slots, size_t count,
                          const char *const *suffixes, kkt_error *err);
/* What the searches of a variant found out so far. */
kkt_search_memory *session_memory(session *s, const kkt_variant *variant);
/* Searches a task; what it tries enters its contest. `later` candidates more are to follow when the
 * search goes on. */
kkt_status session_measure_task(session *s, task *t, int64_t budget, int64_t later, kkt_error *err);
/* The same with a search that is open already; closes it. */
kkt_status session_walk_task(session *s, task *t, kkt_search *search, int64_t budget,
                             kkt_error *err);

/* session_finals.c. Gives each task its contest: those of one kernel and problem share one. */
void session_open_contests(session *s);
/* One for a task that stands alone. */
contest *session_own_contest(session *s, const task *t);
void session_drop_contest(contest *c);
/* A verdict on a candidate of a contest's task, which takes the slot's cubin; `time_us` NaN: it
 * failed. */
kkt_status session_enter(const session *s, trial *slot, double time_us, kkt_error *err);
/* A task was gone through. After the last of its contest the best are timed in turn, and hardware
 * counters read. */
kkt_status session_gone_through(session *s, const task *t, kkt_error *err);

/* session_rounds.c. Which of the tasks comes when, and how much of a budget each gets. */
void session_order_tasks(session *s);
/* Fills `turns`. The tasks stay where they are from then on. */
void session_plan_turns(session *s);
/* How many candidates turn number `index` may try, of what those before it left over. */
int64_t session_share(const session *s, size_t index);

/* session_pipeline.c, and session_chain.c. The tasks of a pipeline: one for each style of a member,
 * problem, form and chunk size. */
kkt_status session_pipeline_tasks(session *s, kkt_error *err);
/* Times the pipelines of the run end to end, each at every chunk size with the best configuration
 * of its members; what a member lacks is measured first. */
kkt_status session_time_pipelines(session *s, kkt_error *err);

/* session_revalidate.c: goes through what is stored of a task; what is stale is measured again. */
kkt_status session_revalidate_task(session *s, task *t, kkt_error *err);

#endif
