/* Cache and pool. Called with --worker compile this program is the worker: a real one, or one that
 * crashes or hangs where the job's architecture says so. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/compile/fixture.h"
#include "tuner/compile/cache.h"
#include "tuner/compile/pool.h"
#include "tuner/worker/stream.h"

static const char KEY[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* ---- the worker ---- */

/* Answers without a compiler: the cubin is the defines, the log counts the jobs of this worker. */
static int false_worker(void) {
    kkt_worker *worker;
    if (kkt_worker_open(&worker, NULL) != KKT_OK)
        return 2;
    kkt_frame frame;
    volatile int jobs = 0;
    while (kkt_worker_receive(worker, &frame)) {
        kkt_unpacker in = {.data = frame.payload, .size = frame.size};
        kkt_unpack_string(&in);
        const char *arch = kkt_unpack_string(&in), *defines = kkt_unpack_string(&in);
        if (strcmp(arch, "crash") == 0)
            raise(SIGKILL);
        while (strcmp(arch, "hang") == 0)
            pause();
        while (strcmp(arch, "spin") == 0)
            jobs++;
        if (strcmp(arch, "wait") == 0) /* longer than the limit, of which it uses nothing */
            nanosleep(&(struct timespec){.tv_nsec = 400 * 1000 * 1000}, NULL);
        char log[32];
        snprintf(log, sizeof log, "job %d", ++jobs);
        kkt_compile_result result = {.ok = strcmp(arch, "fail") != 0,
                                     .cubin = (unsigned char *)(uintptr_t)defines,
                                     .cubin_size = strlen(defines),
                                     .info.registers = 42,
                                     .log = log};
        kkt_packer out = {0};
        kkt_result_pack(&result, &out);
        if (strcmp(arch, "garbage") == 0)
            out.size /= 2;
        kkt_worker_send(worker, 2, out.data, out.size);
        kkt_packer_free(&out);
        kkt_frame_free(&frame);
    }
    kkt_worker_close(worker);
    return 0;
}

/* ---- the cache ---- */

static kkt_compile_result sample_result(void) {
    static unsigned char cubin[] = "\x7f"
                                   "ELF cubin";
    static char log[] = "ptxas info\nline two";
    return (kkt_compile_result){.ok = true,
                                .cubin = cubin,
                                .cubin_size = sizeof cubin,
                                .info = {.registers = 168,
                                         .static_smem_bytes = 2048,
                                         .spill_store_bytes = 4,
                                         .spill_load_bytes = 8,
                                         .stack_bytes = 16,
                                         .barriers = 9,
                                         .max_threads = 1024,
                                         .cubin_bytes = sizeof cubin},
                                .log = log,
                                .compile_ms = 12.5};
}

static void expect_sample(const kkt_compile_result *got) {
    kkt_compile_result want = sample_result();
    assert_true(got->ok && got->from_cache && !got->timed_out);
    assert_int_equal(got->cubin_size, want.cubin_size);
    assert_memory_equal(got->cubin, want.cubin, want.cubin_size);
    assert_int_equal(got->info.registers, want.info.registers);
    assert_int_equal(got->info.static_smem_bytes, want.info.static_smem_bytes);
    assert_int_equal(got->info.spill_store_bytes, want.info.spill_store_bytes);
    assert_int_equal(got->info.spill_load_bytes, want.info.spill_load_bytes);
    assert_int_equal(got->info.stack_bytes, want.info.stack_bytes);
    assert_int_equal(got->info.barriers, want.info.barriers);
    assert_int_equal(got->info.max_threads, want.info.max_threads);
    assert_int_equal(got->info.cubin_bytes, want.info.cubin_bytes);
    assert_string_equal(got->log, want.log);
    assert_true(got->compile_ms == want.compile_ms);
}

static void an_entry_comes_back_as_it_was(void **state) {
    (void)state;
    char folder[64];
    make_folder(folder);
    kkt_cache *cache = kkt_cache_open(folder);
    kkt_compile_result result = sample_result(), got;
    assert_true(kkt_cache_writable(cache));
    assert_null(kkt_cache_note(cache));
    assert_false(kkt_cache_get(cache, KEY, &got));
    kkt_cache_put(cache, KEY, &result);
    assert_true(kkt_cache_get(cache, KEY, &got));
    expect_sample(&got);
    kkt_compile_result_free(&got);
    kkt_cache_close(cache);
    remove_folder(folder);
}

static void a_folder_is_made_when_it_is_needed(void **state) {
    (void)state;
    char parent[64], folder[100];
    make_folder(parent);
    snprintf(folder, sizeof folder, "%s/made/later", parent);
    kkt_cache *cache = kkt_cache_open(folder);
    kkt_compile_result result = sample_result(), got;
    assert_true(kkt_cache_writable(cache));
    assert_int_not_equal(access(folder, F_OK), 0);
    kkt_cache_put(cache, KEY, &result);
    assert_true(kkt_cache_get(cache, KEY, &got));
    kkt_compile_result_free(&got);
    kkt_cache_close(cache);
    remove_folder(parent);
}

static void damaged_entries_count_as_absent(void **state) {
    (void)state;
    kkt_compile_result result = sample_result(), got;
    kkt_packer entry = {0};
    kkt_cache_entry_make(KEY, &result, &entry);
    assert_true(kkt_cache_entry_parse(entry.data, entry.size, KEY, &got));
    expect_sample(&got);
    kkt_compile_result_free(&got);
    assert_false(kkt_cache_entry_parse(entry.data, entry.size, "another key", &got));
    for (size_t i = 0; i < entry.size; i++) {
        unsigned char *copy = malloc(entry.size);
        memcpy(copy, entry.data, entry.size);
        copy[i] ^= 0x10;
        assert_false(kkt_cache_entry_parse(copy, entry.size, KEY, &got));
        free(copy);
        assert_false(kkt_cache_entry_parse(entry.data, i, KEY, &got));
    }
    kkt_packer_free(&entry);
}

static void a_corrupt_file_is_written_anew(void **state) {
    (void)state;
    char folder[64], path[200];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/%s.cubin", folder, KEY);
    FILE *file = fopen(path, "wb");
    fputs("kktcub01 and then nonsense", file);
    fclose(file);
    kkt_cache *cache = kkt_cache_open(folder);
    kkt_compile_result result = sample_result(), got;
    assert_false(kkt_cache_get(cache, KEY, &got));
    kkt_cache_put(cache, KEY, &result);
    assert_true(kkt_cache_get(cache, KEY, &got));
    kkt_compile_result_free(&got);
    kkt_cache_close(cache);
    remove_folder(folder);
}

/* A folder below a file cannot be made by anyone, root included. */
static void a_cache_that_cannot_be_written_does_no_harm(void **state) {
    (void)state;
    kkt_cache *cache = kkt_cache_open("/dev/null/kkttune");
    kkt_compile_result result = sample_result(), got;
    assert_false(kkt_cache_writable(cache));
    assert_non_null(strstr(kkt_cache_note(cache), "'/dev/null/kkttune': Not a directory"));
    kkt_cache_put(cache, KEY, &result);
    assert_false(kkt_cache_get(cache, KEY, &got));
    kkt_cache_close(cache);
}

static void a_read_only_cache_serves(void **state) {
    (void)state;
    char folder[64];
    make_folder(folder);
    kkt_cache *cache = kkt_cache_open(folder);
    kkt_compile_result result = sample_result(), got;
    kkt_cache_put(cache, KEY, &result);
    kkt_cache_close(cache);
    chmod(folder, 0555);
    uid_t user = geteuid();
    if (user == 0) /* root may write everywhere: be someone else for a while */
        assert_int_equal(seteuid(65534), 0);
    cache = kkt_cache_open(folder);
    bool writable = kkt_cache_writable(cache);
    kkt_cache_put(cache, "another", &result);
    bool found = kkt_cache_get(cache, KEY, &got);
    assert_int_equal(seteuid(user), 0);
    assert_false(writable);
    assert_true(found);
    expect_sample(&got);
    kkt_compile_result_free(&got);
    kkt_cache_close(cache);
    remove_folder(folder);
}

static void writers_at_once_leave_whole_entries(void **state) {
    (void)state;
    char folder[64];
    make_folder(folder);
    pid_t writers[4];
    kkt_compile_result result = sample_result(), got;
    for (int i = 0; i < 4; i++) {
        writers[i] = fork();
        if (writers[i] == 0) {
            kkt_cache *own = kkt_cache_open(folder);
            for (int round = 0; round < 30; round++)
                kkt_cache_put(own, KEY, &result);
            _exit(kkt_cache_writable(own) ? 0 : 1);
        }
    }
    kkt_cache *cache = kkt_cache_open(folder);
    int reads = 0;
    for (int round = 0; round < 200; round++) {
        if (kkt_cache_get(cache, KEY, &got)) {
            expect_sample(&got);
            kkt_compile_result_free(&got);
            reads++;
        } else {
            assert_int_equal(reads, 0); /* once there, never gone or half */
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(writers[i], &status, 0), writers[i]);
        assert_int_equal(status, 0);
    }
    assert_true(kkt_cache_get(cache, KEY, &got));
    kkt_compile_result_free(&got);
    kkt_cache_close(cache);
    remove_folder(folder);
}

/* ---- the pool ---- */

/* `factor`: 0, or a limit by the clock that a busy machine does not reach. */
static kkt_compile_pool *open_pool_by_clock(const char *folder, int workers, double seconds,
                                            double factor) {
    kkt_compile_pool_options options = {
        .workers = workers, .job_seconds = seconds, .clock_factor = factor, .cache = folder};
    kkt_compile_pool *pool = NULL;
    assert_int_equal(kkt_compile_pool_open(&options, &pool, NULL), KKT_OK);
    if (kkt_compile_pool_unavailable(pool) != NULL) {
        print_message("skipped: %s\n", kkt_compile_pool_unavailable(pool));
        kkt_compile_pool_close(pool);
        skip();
    }
    return pool;
}

static kkt_compile_pool *open_pool(const char *folder, int workers, double seconds) {
    return open_pool_by_clock(folder, workers, seconds, 0);
}

static void submit(kkt_compile_pool *pool, const char *arch, const char *defines, int64_t tag) {
    kkt_compile_job job = tiny_job(arch);
    kkt_error err = {0};
    job.defines = defines;
    if (kkt_compile_pool_submit(pool, NULL, &job, tag, &err) != KKT_OK)
        fail_msg("%s", err.message);
}

static int64_t take(kkt_compile_pool *pool, kkt_compile_result *out) {
    bool got = false;
    int64_t tag = -1;
    kkt_error err = {0};
    if (kkt_compile_pool_next(pool, 30, &got, &tag, out, &err) != KKT_OK)
        fail_msg("%s", err.message);
    assert_true(got);
    return tag;
}

static void compiles_for_all_architectures_and_then_from_the_cache(void **state) {
    (void)state;
    char folder[64];
    make_folder(folder);
    setenv("KKT_TEST_WORKER", "real", 1);
    for (int round = 0; round < 2; round++) {
        kkt_compile_pool *pool = open_pool(folder, 2, 0);
        for (size_t i = 0; i < ARCH_COUNT; i++)
            submit(pool, ARCHS[i], "SIZE=256\n", (int64_t)i);
        submit(pool, "sm_90a", "SIZE=undeclared\n", 100);
        assert_int_equal(kkt_compile_pool_pending(pool), ARCH_COUNT + 1);
        unsigned seen = 0;
        for (size_t i = 0; i <= ARCH_COUNT; i++) {
            kkt_compile_result result;
            int64_t tag = take(pool, &result);
            assert_int_equal(result.ok, tag != 100);
            assert_int_equal(result.from_cache, tag != 100 && round == 1);
            if (tag == 100)
                assert_non_null(strstr(result.log, "undeclared"));
            else
                assert_int_equal(result.info.static_smem_bytes, 1024);
            seen |= 1U << (tag == 100 ? 10 : tag);
            kkt_compile_result_free(&result);
        }
        assert_int_equal(seen, 0x41f);
        assert_int_equal(kkt_compile_pool_pending(pool), 0);
        kkt_compile_pool_close(pool);
    }
    unsetenv("KKT_TEST_WORKER");
    remove_folder(folder);
}

static void many_jobs_come_back_once_each(void **state) {
    (void)state;
    char folder[64];
    make_folder(folder);
    kkt_compile_pool *pool = open_pool(folder, 3, 0);
    enum { JOBS = 300 };
    char seen[JOBS] = {0};
    for (int i = 0; i < JOBS; i++) {
        char defines[32];
        snprintf(defines, sizeof defines, "SIZE=%d\n", i / 2); /* every key twice */
        submit(pool, "ok", defines, i);
    }
    for (int i = 0; i < JOBS; i++) {
        kkt_compile_result result;
        int64_t tag = take(pool, &result);
        char want[32];
        snprintf(want, sizeof want, "SIZE=%d\n", (int)tag / 2);
        assert_true(result.ok);
        assert_int_equal(result.cubin_size, strlen(want));
        assert_memory_equal(result.cubin, want, strlen(want));
        assert_int_equal(seen[tag]++, 0);
        kkt_compile_result_free(&result);
    }
    bool got = true;
    int64_t tag;
    kkt_compile_result result;
    assert_int_equal(kkt_compile_pool_next(pool, 5, &got, &tag, &result, NULL), KKT_OK);
    assert_false(got);
    kkt_compile_pool_close(pool);
    remove_folder(folder);
}

static void a_job_queued_twice_is_compiled_once(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool("/dev/null/none", 1, 0);
    assert_false(kkt_compile_pool_cache_writable(pool));
    for (int i = 0; i < 5; i++)
        submit(pool, "ok", "SIZE=1\n", i);
    submit(pool, "ok", "SIZE=2\n", 5);
    for (int i = 0; i < 6; i++) {
        kkt_compile_result result;
        int64_t tag = take(pool, &result);
        assert_string_equal(result.log, tag == 5 ? "job 2" : "job 1");
        kkt_compile_result_free(&result);
    }
    kkt_compile_pool_close(pool);
}

static void a_crash_costs_its_job_alone(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool("/dev/null/none", 2, 0);
    static const char *const archs[] = {"ok", "crash", "ok", "garbage", "fail", "crash", "ok"};
    for (int i = 0; i < 7; i++) {
        char defines[32];
        snprintf(defines, sizeof defines, "SIZE=%d\n", i);
        submit(pool, archs[i], defines, i);
    }
    for (int i = 0; i < 7; i++) {
        kkt_compile_result result;
        const char *arch = archs[take(pool, &result)];
        assert_int_equal(result.ok, strcmp(arch, "ok") == 0);
        assert_false(result.timed_out);
        if (strcmp(arch, "crash") == 0)
            assert_non_null(strstr(result.log, "signal 9"));
        if (strcmp(arch, "garbage") == 0)
            assert_non_null(strstr(result.log, "malformed"));
        kkt_compile_result_free(&result);
    }
    kkt_compile_pool_close(pool);
}

static void a_hang_is_timed_out_and_the_rest_goes_on(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool("/dev/null/none", 1, 0.2);
    submit(pool, "hang", "SIZE=1\n", 1);
    submit(pool, "ok", "SIZE=2\n", 2);
    kkt_compile_result result;
    bool got = true;
    int64_t tag;
    double begin = kkt_clock_seconds();
    assert_int_equal(kkt_compile_pool_next(pool, 0.02, &got, &tag, &result, NULL), KKT_OK);
    assert_false(got);
    assert_true(kkt_clock_seconds() - begin < 0.6); /* long before the limit */
    assert_int_equal(take(pool, &result), 1);
    assert_false(result.ok);
    assert_true(result.timed_out);
    assert_non_null(strstr(result.log, "more than 0.8 s")); /* four times the limit */
    kkt_compile_result_free(&result);
    assert_int_equal(take(pool, &result), 2);
    assert_true(result.ok);
    kkt_compile_result_free(&result);
    kkt_compile_pool_close(pool);
}

/* The limit is one of processor time: waiting for a busy machine is no fault of the source. */
static void processor_time_is_limited(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool_by_clock("/dev/null/none", 1, 0.3, 100);
    submit(pool, "spin", "SIZE=1\n", 1);
    submit(pool, "wait", "SIZE=2\n", 2);
    kkt_compile_result result;
    assert_int_equal(take(pool, &result), 1);
    assert_true(result.timed_out && !result.ok);
    assert_non_null(strstr(result.log, "more than 0.3 s of processor time"));
    kkt_compile_result_free(&result);
    assert_int_equal(take(pool, &result), 2);
    assert_true(result.ok);
    kkt_compile_result_free(&result);
    kkt_compile_pool_close(pool);
}

/* The parent may be busy for longer than any limit (a candidate that hangs on the GPU): what was
 * compiled meanwhile counts. */
static void late_listening_is_no_time_out(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool("/dev/null/none", 1, 0.1);
    submit(pool, "ok", "SIZE=1\n", 1);
    bool got = true;
    int64_t tag = 0;
    kkt_compile_result result;
    assert_int_equal(kkt_compile_pool_next(pool, 0, &got, &tag, &result, NULL), KKT_OK);
    if (!got) {
        nanosleep(&(struct timespec){.tv_nsec = 900 * 1000 * 1000}, NULL); /* all limits pass */
        assert_int_equal(take(pool, &result), 1);
    }
    assert_true(result.ok && !result.timed_out);
    kkt_compile_result_free(&result);
    kkt_compile_pool_close(pool);
}

/* Processor time of the workers that have ended. */
static double ended_seconds(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec +
           (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* One job after the other, so that none can wait for another one's answer. */
static void a_key_is_compiled_once(void **state) {
    (void)state;
    static const struct {
        const char *arch, *log; /* the first job of a worker says "job 1" */
        bool ok, timed_out;
    } rows[] = {
        {"ok", "job 1", true, false},
        {"fail", "job 2", false, false},
        {"spin", "processor time", false, true},
    };
    kkt_compile_pool *pool = open_pool_by_clock("/dev/null/none", 1, 0.2, 150);
    for (int round = 0; round < 3; round++) {
        const double begin = ended_seconds();
        for (int64_t i = 0; i < 3; i++) {
            kkt_compile_result result;
            submit(pool, rows[i].arch, "SIZE=1\n", 10 * round + i);
            assert_int_equal(take(pool, &result), 10 * round + i);
            assert_int_equal(result.ok, rows[i].ok);
            assert_int_equal(result.timed_out, rows[i].timed_out);
            assert_non_null(strstr(result.log, rows[i].log));
            if (rows[i].ok)
                assert_memory_equal(result.cubin, "SIZE=1\n", result.cubin_size);
            kkt_compile_result_free(&result);
        }
        /* A worker that spins to its limit ends there, and once is enough. */
        assert_true(round == 0 ? ended_seconds() - begin >= 0.2 : ended_seconds() - begin < 0.2);
    }
    kkt_compile_pool_close(pool);
}

static void cancel_drops_what_was_not_begun(void **state) {
    (void)state;
    kkt_compile_pool *pool = open_pool("/dev/null/none", 1, 0.3);
    submit(pool, "hang", "SIZE=1\n", 1);
    submit(pool, "hang", "SIZE=1\n", 2); /* waits for the one above */
    submit(pool, "ok", "SIZE=2\n", 3);
    submit(pool, "ok", "SIZE=2\n", 4);
    kkt_compile_pool_cancel(pool);
    assert_int_equal(kkt_compile_pool_pending(pool), 2);
    submit(pool, "ok", "SIZE=2\n", 5);
    int64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        kkt_compile_result result;
        int64_t tag = take(pool, &result);
        assert_int_equal(result.timed_out, tag < 3);
        sum += tag;
        kkt_compile_result_free(&result);
    }
    assert_int_equal(sum, 8);
    submit(pool, "hang", "SIZE=3\n", 6); /* closed while it runs */
    kkt_compile_pool_close(pool);
}

static void a_program_that_cannot_be_started_is_an_error(void **state) {
    (void)state;
    kkt_compile_pool_options options = {.cache = "/dev/null/none", .program = "/nonexistent"};
    kkt_compile_pool *pool = NULL;
    assert_int_equal(kkt_compile_pool_open(&options, &pool, NULL), KKT_OK);
    kkt_compile_job job = tiny_job("sm_90a");
    kkt_error err;
    if (kkt_compile_pool_unavailable(pool) == NULL) {
        assert_int_equal(kkt_compile_pool_submit(pool, NULL, &job, 1, &err), KKT_ERR_ENVIRONMENT);
        assert_non_null(strstr(err.message, "/nonexistent"));
    }
    kkt_compile_pool_close(pool);
    options = (kkt_compile_pool_options){.job_seconds = -1};
    assert_int_equal(kkt_compile_pool_open(&options, &pool, &err), KKT_ERR_INPUT);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return getenv("KKT_TEST_WORKER") != NULL ? kkt_compile_worker_main() : false_worker();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_comes_back_as_it_was),
        cmocka_unit_test(a_folder_is_made_when_it_is_needed),
        cmocka_unit_test(damaged_entries_count_as_absent),
        cmocka_unit_test(a_corrupt_file_is_written_anew),
        cmocka_unit_test(a_cache_that_cannot_be_written_does_no_harm),
        cmocka_unit_test(a_read_only_cache_serves),
        cmocka_unit_test(writers_at_once_leave_whole_entries),
        cmocka_unit_test(compiles_for_all_architectures_and_then_from_the_cache),
        cmocka_unit_test(many_jobs_come_back_once_each),
        cmocka_unit_test(a_job_queued_twice_is_compiled_once),
        cmocka_unit_test(a_crash_costs_its_job_alone),
        cmocka_unit_test(a_hang_is_timed_out_and_the_rest_goes_on),
        cmocka_unit_test(processor_time_is_limited),
        cmocka_unit_test(late_listening_is_no_time_out),
        cmocka_unit_test(a_key_is_compiled_once),
        cmocka_unit_test(cancel_drops_what_was_not_begun),
        cmocka_unit_test(a_program_that_cannot_be_started_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
