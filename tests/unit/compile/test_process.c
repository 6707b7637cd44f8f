/* Child processes: this test program plays the children itself when called with --worker. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tuner/worker/process.h"
#include "tuner/worker/stream.h"

/* ---- the children ---- */

static void echo(kkt_worker *worker) {
    kkt_frame frame = {0};
    while (kkt_worker_receive(worker, &frame)) {
        puts("noise on standard output that must not reach the parent");
        if (!kkt_worker_send(worker, frame.kind + 1, frame.payload, frame.size))
            break;
        kkt_frame_free(&frame);
    }
    kkt_frame_free(&frame);
}

/* Writes raw bytes past the frame functions: what a broken child might send. */
static void damaged(void) {
    uint32_t header[2] = {0xfffffff0U, 1};
    ssize_t sent = write(STDIN_FILENO, header, sizeof header);
    (void)sent;
    pause();
}

static void half_frame(void) {
    uint32_t header[2] = {1000, 1};
    ssize_t sent = write(STDIN_FILENO, header, sizeof header);
    (void)sent;
    exit(3);
}

static void sum(kkt_worker *worker) {
    kkt_frame frame;
    while (kkt_worker_receive(worker, &frame)) {
        kkt_unpacker in = {.data = frame.payload, .size = frame.size};
        int64_t a = kkt_unpack_i64(&in);
        double b = kkt_unpack_real(&in);
        const char *text = kkt_unpack_string(&in);
        kkt_packer out = {0};
        kkt_pack_i64(&out, a + (int64_t)strlen(text));
        kkt_pack_real(&out, 2 * b);
        kkt_pack_string(&out, kkt_unpack_done(&in) ? text : "not done");
        kkt_worker_send(worker, 7, out.data, out.size);
        kkt_packer_free(&out);
        kkt_frame_free(&frame);
    }
}

/* Starts a grandchild, tells its process number and waits to be killed. */
static void nest(kkt_worker *worker) {
    kkt_child *child = NULL;
    if (kkt_child_open(NULL, "hang", &child, NULL) != KKT_OK)
        exit(9);
    int pid = kkt_child_pid(child);
    kkt_worker_send(worker, 1, &pid, sizeof pid);
    for (;;)
        pause();
}

static int child_main(const char *role) {
    if (strcmp(role, "damaged") == 0)
        damaged();
    if (strcmp(role, "half") == 0)
        half_frame();
    kkt_worker *worker;
    if (kkt_worker_open(&worker, NULL) != KKT_OK)
        return 2;
    if (strcmp(role, "echo") == 0)
        echo(worker);
    if (strcmp(role, "sum") == 0)
        sum(worker);
    if (strcmp(role, "nest") == 0)
        nest(worker);
    if (strcmp(role, "exit") == 0)
        exit(3);
    if (strcmp(role, "abort") == 0) {
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    while (strcmp(role, "hang") == 0)
        pause();
    kkt_worker_close(worker);
    return 0;
}

/* ---- the tests ---- */

static kkt_child *open_child(const char *role) {
    kkt_child *child = NULL;
    kkt_error err;
    assert_int_equal(kkt_child_open(NULL, role, &child, &err), KKT_OK);
    return child;
}

static void echoes_frames_of_all_sizes(void **state) {
    (void)state;
    kkt_child *child = open_child("echo");
    static const size_t sizes[] = {0, 1, 7, 65528, 65536, 65537, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *payload = malloc(sizes[i] + 1);
        for (size_t j = 0; j < sizes[i]; j++)
            payload[j] = (unsigned char)(j * 31 + i);
        assert_int_equal(kkt_child_send(child, (uint32_t)i, payload, sizes[i], 10, NULL), KKT_OK);
        kkt_frame frame;
        assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_FRAME);
        assert_int_equal(frame.kind, i + 1);
        assert_int_equal(frame.size, sizes[i]);
        if (sizes[i] > 0)
            assert_memory_equal(frame.payload, payload, sizes[i]);
        assert_int_equal(frame.payload[frame.size], 0);
        kkt_frame_free(&frame);
        free(payload);
    }
    assert_string_equal(kkt_child_reason(child), "still running");
    kkt_child_close(child);
}

static void several_frames_at_once_arrive_in_order(void **state) {
    (void)state;
    kkt_child *child = open_child("echo");
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(kkt_child_send(child, i, &i, sizeof i, 10, NULL), KKT_OK);
    for (uint32_t i = 0; i < 50; i++) {
        kkt_frame frame;
        assert_int_equal(kkt_child_wait(&child, 1, 0, 10), 0);
        assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_FRAME);
        assert_int_equal(frame.kind, i + 1);
        kkt_frame_free(&frame);
    }
    kkt_child_close(child);
}

static void values_survive_packing(void **state) {
    (void)state;
    kkt_child *child = open_child("sum");
    kkt_packer out = {0};
    kkt_pack_i64(&out, INT64_C(-9007199254740995));
    kkt_pack_real(&out, 0.1);
    kkt_pack_string(&out, "seven c");
    assert_int_equal(kkt_child_send(child, 1, out.data, out.size, 10, NULL), KKT_OK);
    kkt_packer_free(&out);
    kkt_frame frame;
    assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_FRAME);
    kkt_unpacker in = {.data = frame.payload, .size = frame.size};
    assert_true(kkt_unpack_i64(&in) == INT64_C(-9007199254740988));
    assert_true(kkt_unpack_real(&in) == 0.2);
    assert_string_equal(kkt_unpack_string(&in), "seven c");
    assert_true(kkt_unpack_done(&in));
    kkt_frame_free(&frame);
    kkt_child_close(child);
}

static void unpacking_never_leaves_the_bytes(void **state) {
    (void)state;
    kkt_packer out = {0};
    kkt_pack_string(&out, "text");
    for (size_t size = 0; size < out.size; size++) {
        kkt_unpacker in = {.data = out.data, .size = size};
        assert_string_equal(kkt_unpack_string(&in), "");
        assert_true(in.failed);
        assert_true(kkt_unpack_i64(&in) == 0);
    }
    int64_t lengths[] = {-1, INT64_MAX, INT64_MIN, 6, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(out.data, &lengths[i], sizeof lengths[i]);
        kkt_unpacker in = {.data = out.data, .size = out.size};
        assert_string_equal(kkt_unpack_string(&in), "");
        assert_true(in.failed);
    }
    kkt_packer_free(&out);
}

static void expect_end(const char *role, const char *reason, int signal_number) {
    kkt_child *child = open_child(role);
    kkt_frame frame;
    assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_ENDED);
    assert_non_null(strstr(kkt_child_reason(child), reason));
    assert_int_equal(kkt_child_signal(child), signal_number);
    assert_false(kkt_child_running(child));
    kkt_error err;
    assert_int_equal(kkt_child_send(child, 1, "x", 1, 1, &err), KKT_ERR_MISSING);
    assert_non_null(strstr(err.message, reason));
    assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_ENDED);
    kkt_child_close(child);
}

static void an_end_is_told_with_its_reason(void **state) {
    (void)state;
    expect_end("exit", "exit code 3", 0);
    expect_end("half", "exit code 3", 0);
    expect_end("abort", "signal 6", SIGABRT);
    expect_end("damaged", "above the limit", 0);
}

/* Ctrl-C on a terminal reaches every process of the group; it is for the parent to act on it. */
static void an_interrupt_leaves_a_worker_alone(void **state) {
    (void)state;
    kkt_child *child = open_child("echo");
    for (int i = 0; i < 2; i++) {
        kkt_frame frame; /* the first answer says that the worker has set itself up */
        assert_int_equal(kkt_child_send(child, 1, "x", 1, 10, NULL), KKT_OK);
        assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_FRAME);
        kkt_frame_free(&frame);
        assert_int_equal(kill(kkt_child_pid(child), SIGINT), 0);
    }
    assert_true(kkt_child_running(child));
    kkt_child_close(child);
}

static void a_hang_times_out_and_is_killed(void **state) {
    (void)state;
    kkt_child *child = open_child("hang");
    kkt_frame frame;
    double begin = kkt_clock_seconds();
    assert_int_equal(kkt_child_receive(child, 0.05, &frame), KKT_CHILD_TIMEOUT);
    assert_int_equal(kkt_child_wait(&child, 1, 0, 0.05), -1);
    assert_true(kkt_clock_seconds() - begin < 2);
    assert_true(kkt_child_running(child));
    int pid = kkt_child_pid(child);
    kkt_child_kill(child, "timed out after 0.1 s");
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(kkt_child_receive(child, 1, &frame), KKT_CHILD_ENDED);
    assert_string_equal(kkt_child_reason(child), "timed out after 0.1 s");
    kkt_child_close(child);
}

static void a_child_that_does_not_read_does_not_block_the_parent(void **state) {
    (void)state;
    kkt_child *child = open_child("hang");
    size_t size = (size_t)4 << 20;
    char *payload = calloc(1, size);
    kkt_error err;
    assert_int_equal(kkt_child_send(child, 1, payload, size, 0.05, &err), KKT_ERR_MISSING);
    assert_non_null(strstr(err.message, "in time"));
    free(payload);
    kkt_child_close(child);
}

static void a_program_that_is_not_there_is_an_error(void **state) {
    (void)state;
    kkt_child *child = NULL;
    kkt_error err;
    assert_int_equal(kkt_child_open("/nonexistent/kkttune", "echo", &child, &err),
                     KKT_ERR_ENVIRONMENT);
    assert_non_null(strstr(err.message, "/nonexistent/kkttune"));
    assert_null(child);
}

static void waiting_tells_which_child_has_news(void **state) {
    (void)state;
    kkt_child *children[3] = {open_child("hang"), NULL, open_child("echo")};
    assert_int_equal(kkt_child_send(children[2], 1, "x", 1, 10, NULL), KKT_OK);
    assert_int_equal(kkt_child_wait(children, 3, 1, 10), 2);
    kkt_child_kill(children[0], NULL);
    assert_int_equal(kkt_child_wait(children, 3, 0, 10), 0);
    kkt_child_close(children[0]);
    kkt_child_close(children[2]);
}

/* A grandchild must not outlive its parent, however that ends. */
static void children_die_with_their_parent(void **state) {
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    kkt_child *child = open_child("nest");
    kkt_frame frame;
    assert_int_equal(kkt_child_receive(child, 10, &frame), KKT_CHILD_FRAME);
    assert_int_equal(frame.size, sizeof(int));
    int grandchild;
    memcpy(&grandchild, frame.payload, sizeof grandchild);
    kkt_frame_free(&frame);
    assert_int_equal(kill(grandchild, 0), 0);
    kkt_child_close(child);
    double deadline = kkt_clock_seconds() + 10;
    int status = 0;
    pid_t got = 0;
    while ((got = waitpid(grandchild, &status, WNOHANG)) == 0 && kkt_clock_seconds() < deadline)
        usleep(1000);
    assert_int_equal(got, grandchild);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return child_main(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echoes_frames_of_all_sizes),
        cmocka_unit_test(several_frames_at_once_arrive_in_order),
        cmocka_unit_test(values_survive_packing),
        cmocka_unit_test(unpacking_never_leaves_the_bytes),
        cmocka_unit_test(an_end_is_told_with_its_reason),
        cmocka_unit_test(an_interrupt_leaves_a_worker_alone),
        cmocka_unit_test(a_hang_times_out_and_is_killed),
        cmocka_unit_test(a_child_that_does_not_read_does_not_block_the_parent),
        cmocka_unit_test(a_program_that_is_not_there_is_an_error),
        cmocka_unit_test(waiting_tells_which_child_has_news),
        cmocka_unit_test(children_die_with_their_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
