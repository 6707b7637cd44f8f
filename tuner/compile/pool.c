#include "tuner/compile/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tuner/compile/cache.h"
#include "tuner/compile/frames.h"
#include "tuner/worker/process.h"
#include "tuner/worker/stream.h"

enum { WORKERS_MAX = 16, DEFAULT_JOB_SECONDS = 20, SEND_SECONDS = 5 };
enum { CLOCK_FACTOR = 4 }; /* by the clock a compile may take so many times its limit */

/* The version whose cubins are looked up where no NVRTC is there to ask: the one that the project
 * pins. */
static const char ASSUMED_VERSION[] = "nvrtc 13.0";

/* A job, in a list in the order of submission. Another one of the same key that is not done waits
 * for it (`twin`), and is answered with a copy. */
typedef struct task task;
struct task {
    task *next;
    int64_t tag;
    char key[65];
    char *source_path, *nvrtc_arch, *defines, *source_text;
    int worker; /* the slot that compiles it; -1: none */
    task *twin; /* the earlier task of the same key whose result is this one's; NULL: none */
    bool done;
    kkt_compile_result result;
};

typedef struct slot {
    kkt_child *child;
    task *at;                /* NULL: idle */
    double begin, cpu_begin; /* of `at`: by the clock, and the child's processor time */
} slot;

/* A result that the cache does not hold. */
typedef struct memo memo;
struct memo {
    memo *next;
    char key[65];
    kkt_compile_result result;
};

struct kkt_compile_pool {
    kkt_cache *cache;
    char *program; /* NULL: this program */
    char version[32];
    char unavailable[480];             /* "" where compiling is possible */
    double job_seconds, clock_seconds; /* limits of a compile */
    int workers;
    slot slots[WORKERS_MAX];
    task *first, **last; /* tasks that were not handed back */
    size_t pending;
    memo *remembered;
};

static void *checked(void *memory) {
    if (memory == NULL)
        abort();
    return memory;
}

static char *copy_text(const char *text) {
    return text == NULL ? NULL : checked(strdup(text));
}

/* ---- life ---- */

/* The compiler is opened here only to learn its version: compiling is the workers' part. */
static void ask_version(kkt_compile_pool *pool) {
    kkt_compiler *compiler;
    kkt_error error;
    if (kkt_compiler_open(&compiler, &error) == KKT_OK) {
        snprintf(pool->version, sizeof pool->version, "%s", kkt_compiler_version(compiler));
        kkt_compiler_close(compiler);
        return;
    }
    snprintf(pool->version, sizeof pool->version, "%s", ASSUMED_VERSION);
    snprintf(pool->unavailable, sizeof pool->unavailable, "%s", error.message);
}

static int worker_count(int asked) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long count = asked > 0 ? asked : cores;
    if (count < 1)
        count = 1;
    return count > WORKERS_MAX ? WORKERS_MAX : (int)count;
}

kkt_status kkt_compile_pool_open(const kkt_compile_pool_options *options, kkt_compile_pool **out,
                                 kkt_error *err) {
    if (options->job_seconds < 0 || options->clock_factor < 0 || options->workers < 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "workers (%d), seconds a compile (%g) and its factor by the clock (%g) "
                        "cannot be negative",
                        options->workers, options->job_seconds, options->clock_factor);
    kkt_compile_pool *pool = checked(calloc(1, sizeof *pool));
    pool->cache = kkt_cache_open(options->cache);
    pool->program = copy_text(options->program);
    pool->job_seconds = options->job_seconds > 0 ? options->job_seconds : DEFAULT_JOB_SECONDS;
    pool->clock_seconds =
        pool->job_seconds * (options->clock_factor > 0 ? options->clock_factor : CLOCK_FACTOR);
    pool->workers = worker_count(options->workers);
    pool->last = &pool->first;
    ask_version(pool);
    *out = pool;
    return KKT_OK;
}

static void free_task(task *at) {
    free(at->source_path);
    free(at->nvrtc_arch);
    free(at->defines);
    free(at->source_text);
    kkt_compile_result_free(&at->result);
    free(at);
}

void kkt_compile_pool_close(kkt_compile_pool *pool) {
    if (pool == NULL)
        return;
    for (int i = 0; i < pool->workers; i++)
        kkt_child_close(pool->slots[i].child);
    while (pool->first != NULL) {
        task *at = pool->first;
        pool->first = at->next;
        free_task(at);
    }
    while (pool->remembered != NULL) {
        memo *at = pool->remembered;
        pool->remembered = at->next;
        kkt_compile_result_free(&at->result);
        free(at);
    }
    kkt_cache_close(pool->cache);
    free(pool->program);
    free(pool);
}

const char *kkt_compile_pool_version(const kkt_compile_pool *pool) {
    return pool->version;
}

const char *kkt_compile_pool_unavailable(const kkt_compile_pool *pool) {
    return pool->unavailable[0] == '\0' ? NULL : pool->unavailable;
}

bool kkt_compile_pool_cache_writable(const kkt_compile_pool *pool) {
    return kkt_cache_writable(pool->cache);
}

const char *kkt_compile_pool_cache_note(const kkt_compile_pool *pool) {
    return kkt_cache_note(pool->cache);
}

size_t kkt_compile_pool_pending(const kkt_compile_pool *pool) {
    return pool->pending;
}

/* ---- results ---- */

static void copy_result(const kkt_compile_result *from, kkt_compile_result *to) {
    *to = *from;
    to->log = copy_text(from->log);
    if (from->cubin != NULL) {
        to->cubin = checked(malloc(from->cubin_size));
        memcpy(to->cubin, from->cubin, from->cubin_size);
    }
}

static void remember(kkt_compile_pool *pool, const task *at) {
    if (at->result.ok && kkt_cache_writable(pool->cache))
        return;
    memo *added = checked(calloc(1, sizeof *added));
    memcpy(added->key, at->key, sizeof added->key);
    copy_result(&at->result, &added->result);
    added->next = pool->remembered;
    pool->remembered = added;
}

static bool recall(const kkt_compile_pool *pool, const char *key, kkt_compile_result *out) {
    const memo *at = pool->remembered;
    while (at != NULL && strcmp(at->key, key) != 0)
        at = at->next;
    if (at != NULL)
        copy_result(&at->result, out);
    return at != NULL;
}

/* Gives `result` to a task and to those that wait for the same key. */
static void finish(task *at, const kkt_compile_result *result) {
    at->result = *result;
    at->done = true;
    at->worker = -1;
    for (task *other = at->next; other != NULL; other = other->next)
        if (other->twin == at) {
            copy_result(&at->result, &other->result);
            other->twin = NULL;
            other->done = true;
        }
}

static void finish_with_reason(task *at, bool timed_out, const char *reason) {
    char log[600];
    snprintf(log, sizeof log, "%s: %s", at->source_path, reason);
    kkt_compile_result result = {.timed_out = timed_out, .log = copy_text(log)};
    finish(at, &result);
}

/* ---- workers ---- */

static bool send_task(kkt_child *child, const task *at) {
    kkt_packer out = {0};
    kkt_pack_string(&out, at->source_path);
    kkt_pack_string(&out, at->nvrtc_arch);
    kkt_pack_string(&out, at->defines);
    kkt_pack_i64(&out, at->source_text != NULL);
    kkt_pack_string(&out, at->source_text);
    kkt_status status =
        kkt_child_send(child, KKT_FRAME_COMPILE, out.data, out.size, SEND_SECONDS, NULL);
    kkt_packer_free(&out);
    return status == KKT_OK;
}

static task *next_waiting(const kkt_compile_pool *pool) {
    task *at = pool->first;
    while (at != NULL && (at->done || at->twin != NULL || at->worker >= 0))
        at = at->next;
    return at;
}

/* Gives waiting tasks to idle workers, starting workers as they are needed. An idle worker may have
 * ended unseen; a fresh one is tried once. */
static kkt_status feed(kkt_compile_pool *pool, kkt_error *err) {
    for (int i = 0; i < pool->workers; i++) {
        slot *worker = &pool->slots[i];
        task *at = worker->at == NULL ? next_waiting(pool) : NULL;
        if (at == NULL)
            continue;
        bool sent = worker->child != NULL && send_task(worker->child, at);
        if (!sent) {
            kkt_child_close(worker->child);
            worker->child = NULL;
            kkt_status status = kkt_child_open(pool->program, "compile", &worker->child, err);
            if (status != KKT_OK)
                return status;
            sent = send_task(worker->child, at);
        }
        if (!sent) {
            finish_with_reason(at, false, kkt_child_reason(worker->child));
            continue;
        }
        worker->at = at;
        worker->begin = kkt_clock_seconds();
        worker->cpu_begin = kkt_child_cpu_seconds(worker->child);
        at->worker = i;
    }
    return KKT_OK;
}

static kkt_status take_answer(kkt_compile_pool *pool, slot *worker, const kkt_frame *frame,
                              kkt_error *err) {
    task *at = worker->at;
    kkt_unpacker in = {.data = frame->payload, .size = frame->size};
    kkt_compile_result result;
    worker->at = NULL;
    if (frame->kind == KKT_FRAME_COMPILED && kkt_result_unpack(&in, &result)) {
        kkt_cache_put(pool->cache, at->key, &result);
        finish(at, &result);
        remember(pool, at);
        return KKT_OK;
    }
    if (frame->kind == KKT_FRAME_COMPILE_ERROR) {
        int native = (int)kkt_unpack_i64(&in);
        const char *message = kkt_unpack_string(&in);
        kkt_status status =
            kkt_fail(err, KKT_ERR_ENVIRONMENT, native, "a compile worker: %s", message);
        finish_with_reason(at, false, message);
        return status;
    }
    kkt_child_kill(worker->child, "killed: it sent a malformed answer");
    finish_with_reason(at, false, kkt_child_reason(worker->child));
    return KKT_OK;
}

static kkt_status hear(kkt_compile_pool *pool, slot *worker, kkt_error *err) {
    kkt_frame frame;
    kkt_child_event event = kkt_child_receive(worker->child, 0, &frame);
    kkt_status status = KKT_OK;
    if (event == KKT_CHILD_FRAME) {
        if (worker->at != NULL)
            status = take_answer(pool, worker, &frame, err);
        kkt_frame_free(&frame);
    } else if (event == KKT_CHILD_ENDED) {
        if (worker->at != NULL) {
            char reason[300];
            snprintf(reason, sizeof reason, "the compiler's process %s",
                     kkt_child_reason(worker->child));
            finish_with_reason(worker->at, false, reason);
        }
        worker->at = NULL;
        kkt_child_close(worker->child);
        worker->child = NULL;
    }
    return status;
}

/* Seconds until a worker's limit can be reached at the earliest; 0 with a reason: it was. Processor
 * time goes no faster than the clock as long as a compile keeps to one thread; with more it is seen
 * a little late. */
static double time_left(const kkt_compile_pool *pool, const slot *worker, char *reason,
                        size_t size) {
    const double most = pool->clock_seconds;
    double left = worker->begin + most - kkt_clock_seconds();
    if (left <= 0) {
        snprintf(reason, size, "compiling took more than %g s", most);
        return 0;
    }
    double cpu = kkt_child_cpu_seconds(worker->child);
    if (cpu < 0 || worker->cpu_begin < 0)
        return left;
    double cpu_left = pool->job_seconds - (cpu - worker->cpu_begin);
    if (cpu_left <= 0) {
        snprintf(reason, size, "compiling took more than %g s of processor time",
                 pool->job_seconds);
        return 0;
    }
    cpu_left = cpu_left > 0.01 ? cpu_left : 0.01; /* on a busy machine it is looked at often */
    return cpu_left < left ? cpu_left : left;
}

/* Kills workers whose time is up; returns the seconds until the next one's, at most `most`; 0 where
 * one was killed: its result is there. */
static double check_time(kkt_compile_pool *pool, double most) {
    double next = most;
    for (int i = 0; i < pool->workers; i++) {
        slot *worker = &pool->slots[i];
        if (worker->at == NULL)
            continue;
        char reason[80];
        double left = time_left(pool, worker, reason, sizeof reason);
        if (left > 0) {
            next = left < next ? left : next;
            continue;
        }
        /* An answer that nobody listened to in time is an answer, not a time-out. */
        if (kkt_child_wait(&worker->child, 1, 0, 0) >= 0)
            continue;
        kkt_child_close(worker->child);
        worker->child = NULL;
        finish_with_reason(worker->at, true, reason);
        remember(pool, worker->at);
        worker->at = NULL;
        next = 0;
    }
    return next;
}

/* Waits at most `seconds` for one worker to say something. */
static kkt_status wait_once(kkt_compile_pool *pool, double seconds, kkt_error *err) {
    kkt_child *children[WORKERS_MAX];
    for (int i = 0; i < pool->workers; i++)
        children[i] = pool->slots[i].at != NULL ? pool->slots[i].child : NULL;
    double wait = check_time(pool, seconds);
    for (int i = 0; i < pool->workers; i++)
        if (pool->slots[i].child == NULL)
            children[i] = NULL;
    int index = kkt_child_wait(children, (size_t)pool->workers, 0, wait);
    return index < 0 ? KKT_OK : hear(pool, &pool->slots[index], err);
}

/* ---- jobs ---- */

static task *find_open(const kkt_compile_pool *pool, const char *key) {
    task *at = pool->first;
    while (at != NULL && (at->done || at->twin != NULL || strcmp(at->key, key) != 0))
        at = at->next;
    return at;
}

kkt_status kkt_compile_pool_submit(kkt_compile_pool *pool, const kkt_variant *variant,
                                   const kkt_compile_job *job, int64_t tag, kkt_error *err) {
    task *at = checked(calloc(1, sizeof *at));
    *at = (task){
        .tag = tag,
        .worker = -1,
        .source_path = copy_text(job->source_path),
        .nvrtc_arch = copy_text(job->nvrtc_arch),
        .defines = copy_text(job->defines),
        .source_text = copy_text(job->source_text),
    };
    kkt_compile_key(pool->version, variant, job, at->key);
    at->twin = find_open(pool, at->key);
    if (at->twin == NULL)
        at->done =
            kkt_cache_get(pool->cache, at->key, &at->result) || recall(pool, at->key, &at->result);
    *pool->last = at;
    pool->last = &at->next;
    pool->pending++;
    if (!at->done && at->twin == NULL && pool->unavailable[0] != '\0') {
        finish_with_reason(at, false, "not in the cache, and there is no NVRTC to compile it");
        return KKT_OK;
    }
    return feed(pool, err);
}

static void unlink_task(kkt_compile_pool *pool, task **link) {
    task *at = *link;
    *link = at->next;
    if (pool->last == &at->next)
        pool->last = link;
    pool->pending--;
}

static bool take_done(kkt_compile_pool *pool, int64_t *tag, kkt_compile_result *out) {
    for (task **link = &pool->first; *link != NULL; link = &(*link)->next) {
        task *at = *link;
        if (!at->done)
            continue;
        *tag = at->tag;
        *out = at->result;
        at->result = (kkt_compile_result){0};
        unlink_task(pool, link);
        free_task(at);
        return true;
    }
    return false;
}

kkt_status kkt_compile_pool_next(kkt_compile_pool *pool, double seconds, bool *got, int64_t *tag,
                                 kkt_compile_result *out, kkt_error *err) {
    double deadline = kkt_clock_seconds() + seconds;
    *got = false;
    for (;;) {
        *got = take_done(pool, tag, out);
        if (*got || pool->pending == 0)
            return KKT_OK;
        kkt_status status = feed(pool, err);
        double left = deadline - kkt_clock_seconds();
        if (status == KKT_OK)
            status = wait_once(pool, left > 0 ? left : 0, err);
        if (status != KKT_OK)
            return status;
        if (left <= 0) {
            *got = take_done(pool, tag, out);
            return KKT_OK;
        }
    }
}

/* Whether a task goes with a cancel: those that wait for another one first, because they look at
 * it.
 */
static bool dropped(const task *at, bool twins) {
    if (at->done || (at->twin != NULL) != twins)
        return false;
    return twins ? at->twin->worker < 0 : at->worker < 0;
}

void kkt_compile_pool_cancel(kkt_compile_pool *pool) {
    for (int twins = 1; twins >= 0; twins--) {
        for (task **link = &pool->first; *link != NULL;) {
            task *at = *link;
            if (!dropped(at, twins == 1)) {
                link = &at->next;
                continue;
            }
            unlink_task(pool, link);
            free_task(at);
        }
    }
}
