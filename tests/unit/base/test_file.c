/* Files, folders and .npy: round trips, atomic replacement, full and read-only places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/npy.h"
#include "base/text.h"

/* Each test runs in an empty folder of its own, which is the working folder. */
static int enter(void **state) {
    char *folder = strdup("/tmp/kkttune-test-XXXXXX");
    *state = folder;
    return folder && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state) {
    kkt_text command = {0};
    kkt_text_printf(&command, "rm -rf '%s'", (char *)*state);
    int rc = chdir("/") != 0 || system(command.data) != 0;
    kkt_text_free(&command);
    free(*state);
    return rc;
}

static size_t count_files(const char *folder) {
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *each = readdir(dir); each; each = readdir(dir))
        count += each->d_name[0] != '.' || strlen(each->d_name) > 2;
    closedir(dir);
    return count;
}

static void check_content(const char *path, const char *expected) {
    char *data = NULL;
    size_t length = 0;
    assert_int_equal(kkt_file_read(path, 1000, &data, &length, NULL), KKT_OK);
    assert_int_equal(length, strlen(expected));
    assert_string_equal(data, expected);
    free(data);
}

static void test_write_and_read(void **state) {
    (void)state;
    assert_int_equal(kkt_file_write("a", "first", 5, NULL), KKT_OK);
    assert_int_equal(kkt_file_write("a", "second", 6, NULL), KKT_OK);
    check_content("a", "second");
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(kkt_file_write("link", "third", 5, NULL), KKT_OK);
    check_content("a", "third"); /* the link stayed a link */
    assert_int_equal(kkt_file_write("empty", "", 0, NULL), KKT_OK);
    check_content("empty", "");
    assert_int_equal(count_files("."), 3);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat("a", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

/* What a killed process leaves is taken over; what a living one writes is not. */
static void test_leftovers(void **state) {
    (void)state;
    int fd = open("a.kkttune-tmp0", O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "half of something longer", 24), 24);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(kkt_file_write("a", "whole", 5, NULL), KKT_OK);
    check_content("a", "whole");
    check_content("a.kkttune-tmp0", "half of something longer");
    close(fd); /* its writer is gone */
    assert_int_equal(kkt_file_write("a", "again", 5, NULL), KKT_OK);
    check_content("a", "again");
    assert_int_equal(count_files("."), 1);
    /* Nothing is written through what is no file of its own. */
    check_content("a", "again");
    assert_int_equal(symlink("a", "b.kkttune-tmp0"), 0);
    assert_int_equal(mkfifo("b.kkttune-tmp1", 0600), 0);
    assert_int_equal(link("a", "b.kkttune-tmp2"), 0);
    assert_int_equal(kkt_file_write("b", "other", 5, NULL), KKT_OK);
    check_content("b", "other");
    check_content("a", "again");
}

static void test_read_errors(void **state) {
    (void)state;
    char *data = NULL;
    size_t length = 0;
    kkt_error err = {0};
    assert_int_equal(kkt_file_read("absent", 10, &data, &length, &err), KKT_ERR_INPUT);
    assert_string_equal(err.message, "cannot open 'absent': No such file or directory");
    assert_int_equal(err.native, ENOENT);
    assert_int_equal(kkt_file_read(".", 10, &data, &length, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(kkt_file_read("pipe", 10, &data, &length, &err), KKT_ERR_INPUT);
    assert_int_equal(kkt_file_write("eleven", "12345678901", 11, NULL), KKT_OK);
    assert_int_equal(kkt_file_read("eleven", 10, &data, &length, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "limit of 10"));
    assert_int_equal(kkt_file_read("eleven", 11, &data, &length, &err), KKT_OK);
    free(data);
    /* A file of /proc claims to be empty and is not. */
    assert_int_equal(kkt_file_read("/proc/self/status", 100000, &data, &length, &err), KKT_OK);
    assert_true(length > 100);
    free(data);
    assert_int_equal(kkt_file_read("/proc/self/status", 50, &data, &length, &err), KKT_ERR_INPUT);
}

static void test_write_errors(void **state) {
    (void)state;
    kkt_error err = {0};
    assert_int_equal(kkt_file_write("/dev/full", "x", 1, &err), KKT_ERR_ENVIRONMENT);
    assert_string_equal(err.message, "cannot write '/dev/full': No space left on device");
    struct stat info;
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(kkt_file_write("/dev/null", "x", 1, &err), KKT_OK);
    assert_int_equal(kkt_file_write("no/such/file", "x", 1, &err), KKT_ERR_ENVIRONMENT);
    assert_non_null(strstr(err.message, "no/such/file"));
    assert_int_equal(kkt_file_write(".", "x", 1, &err), KKT_ERR_ENVIRONMENT);
    assert_int_equal(kkt_file_write("/proc/file", "x", 1, &err), KKT_ERR_ENVIRONMENT);
    assert_int_equal(count_files("."), 0); /* nothing was left behind */
}

static void test_folders(void **state) {
    (void)state;
    kkt_error err = {0};
    assert_int_equal(kkt_folder_check_writable("out/deep", &err), KKT_OK);
    assert_int_equal(count_files("."), 0); /* checking makes nothing */
    assert_int_equal(kkt_folder_make("out/deep//er/", &err), KKT_OK);
    assert_int_equal(kkt_folder_make("out/deep/er", &err), KKT_OK);
    assert_true(kkt_file_exists("out/deep/er"));
    assert_int_equal(kkt_folder_check_writable("out/deep/er", &err), KKT_OK);
    assert_int_equal(count_files("out/deep/er"), 0);
    assert_int_equal(kkt_file_write("file", "x", 1, &err), KKT_OK);
    assert_int_equal(kkt_folder_make("file/sub", &err), KKT_ERR_ENVIRONMENT);
    assert_int_equal(kkt_folder_make("file", &err), KKT_ERR_ENVIRONMENT);
    assert_non_null(strstr(err.message, "'file'"));
    assert_int_equal(kkt_folder_check_writable("file", &err), KKT_ERR_ENVIRONMENT);
    assert_int_equal(kkt_folder_check_writable("file/sub", &err), KKT_ERR_ENVIRONMENT);
    assert_int_equal(kkt_folder_check_writable("/proc/nothing", &err), KKT_ERR_ENVIRONMENT);
    assert_non_null(strstr(err.message, "/proc/nothing"));
}

static void check_join(const char *folder, const char *name, const char *expected) {
    char *path = kkt_path_join(folder, name);
    assert_string_equal(path, expected);
    free(path);
}

static void test_paths(void **state) {
    (void)state;
    check_join("a", "b", "a/b");
    check_join("a/", "b", "a/b");
    check_join("/", "b", "/b");
    check_join("a", "/b", "/b");
    check_join("", "b", "b");
    char *folder = kkt_program_folder();
    assert_non_null(folder);
    assert_int_equal(folder[0], '/');
    free(folder);
}

/* ---- .npy ---- */

static void test_npy_round_trip(void **state) {
    (void)state;
    const size_t bytes[] = {2, 4, 8, 2, 4, 8};
    const int64_t shapes[][3] = {{3, 4, 5}, {60, 1, 1}, {1, 1, 60}, {0, 7, 9}};
    unsigned char data[480];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    for (int type = KKT_NPY_F2; type <= KKT_NPY_I8; type++) {
        for (int rank = 0; rank <= 3; rank++) {
            for (size_t s = 0; s < 4; s++) {
                int64_t elements = 1;
                for (int i = 0; i < rank; i++)
                    elements *= shapes[s][i];
                assert_int_equal(
                    kkt_npy_write("x.npy", (kkt_npy_type)type, rank, shapes[s], data, NULL), 0);
                kkt_npy back;
                kkt_error err = {0};
                assert_int_equal(kkt_npy_read("x.npy", &back, &err), KKT_OK);
                assert_int_equal(back.type, type);
                assert_int_equal(back.rank, rank);
                assert_int_equal(back.elements, elements);
                assert_memory_equal(back.dims, shapes[s], (size_t)rank * sizeof back.dims[0]);
                assert_memory_equal(back.data, data, (size_t)elements * bytes[type]);
                kkt_npy_free(&back);
                assert_null(back.data);
            }
        }
    }
    struct stat info;
    assert_int_equal(stat("x.npy", &info), 0);
    assert_int_equal(info.st_size % 64, 0);
}

/* A file of one header and `data` bytes of zeros after it. */
static kkt_status parse_npy(int major, const char *header, size_t data, kkt_npy *out,
                            kkt_error *err) {
    kkt_text file = {0};
    size_t length = strlen(header);
    const char start[] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', (char)major, 0, (char)(length & 255), (char)(length >> 8),
        0,      0};
    kkt_text_add_bytes(&file, start, major == 1 ? 10 : 12);
    kkt_text_add(&file, header);
    for (size_t i = 0; i < data; i++)
        kkt_text_add_bytes(&file, "", 1);
    char *exact = malloc(file.length); /* so that the sanitizer sees reads past the end */
    assert_non_null(exact);
    memcpy(exact, file.data, file.length);
    kkt_status status = kkt_npy_parse("x.npy", exact, file.length, out, err);
    free(exact);
    kkt_text_free(&file);
    return status;
}

static void test_npy_accepts(void **state) {
    (void)state;
    const char *good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(6,)}",
        "  { 'shape' : ( 2 , 3 , ) , 'fortran_order' : False , 'descr' : '<f4' } ",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 1, 1, 1, 1, 1, 1, 1)}\n",
    };
    for (int major = 1; major <= 3; major++) {
        for (size_t i = 0; i < 4; i++) {
            kkt_npy array;
            assert_int_equal(parse_npy(major, good[i], 24, &array, NULL), KKT_OK);
            kkt_npy_free(&array);
        }
    }
}

typedef struct bad_header {
    const char *header, *message;
} bad_header;

#define ORDER "'fortran_order': False"
static void test_npy_refuses(void **state) {
    (void)state;
    static const bad_header bad[] = {
        {"", "no dictionary"},
        {"{}", "missing"},
        {"{'descr': '<f4', " ORDER "}", "missing"},
        {"{'descr': '<f4', " ORDER ", 'shape': (6,)", "comma"},
        {"{'descr': '<f4', " ORDER ", 'shape': (6,)} x", "after the dictionary"},
        {"{'descr': '<f4' " ORDER ", 'shape': (6,)}", "comma"},
        {"{'descr': '<f4', " ORDER ", 'shape': (6,), 'descr': '<f4'}", "twice"},
        {"{'descr': '<f4', " ORDER ", 'shape': (6,), 'x': 1}", "unknown"},
        {"{'descr': '>f4', " ORDER ", 'shape': (6,)}", "big endian"},
        {"{'descr': '|O', " ORDER ", 'shape': (6,)}", "objects"},
        {"{'descr': '<c8', " ORDER ", 'shape': (3,)}", "not supported"},
        {"{'descr': [('a', '<f4')], " ORDER ", 'shape': (6,)}", "structured"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "Fortran"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "fortran_order"},
        {"{'descr': '<f4', " ORDER ", 'shape': (6)}", "tuple"},
        {"{'descr': '<f4', " ORDER ", 'shape': 6}", "tuple"},
        {"{'descr': '<f4', " ORDER ", 'shape': [6]}", "tuple"},
        {"{'descr': '<f4', " ORDER ", 'shape': (,)}", "dimension"},
        {"{'descr': '<f4', " ORDER ", 'shape': (2 3)}", "tuple"},
        {"{'descr': '<f4', " ORDER ", 'shape': (-6,)}", "dimension"},
        {"{'descr': '<f4', " ORDER ", 'shape': (2.0, 3)}", "tuple"},
        {"{'descr': '<f4', " ORDER ", 'shape': (99999999999999999999,)}", "dimension"},
        {"{'descr': '<f4', " ORDER ", 'shape': (1,1,1,1,1,1,1,1,6)}", "8 dimensions"},
        {"{'descr': '<f4', " ORDER ", 'shape': (4294967296, 4294967296)}", "larger"},
        {"{'descr': '<f8', " ORDER ", 'shape': (2305843009213693952,)}", "larger"},
        {"{'descr': '<f4', " ORDER ", 'shape': (4294967296, 4294967296, 0)}", "larger"},
        {"{'descr': '<f4', " ORDER ", 'shape': (7,)}", "needs 28 bytes"},
        {"{'descr': '<f4', " ORDER ", 'shape': (5,)}", "needs 20 bytes"},
        {"{'descr': '<f4", "structured or damaged"},
        {"{'descr", "key is missing"},
        {"{'descr': '<f4', " ORDER ", 'shape': (6", "tuple"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kkt_npy array = {0};
        kkt_error err = {0};
        assert_int_equal(parse_npy(1, bad[i].header, 24, &array, &err), KKT_ERR_INPUT);
        if (!strstr(err.message, bad[i].message) || !strstr(err.message, "x.npy"))
            fail_msg("%s\nexpected '%s', got: %s", bad[i].header, bad[i].message, err.message);
        assert_null(array.data);
    }
    kkt_npy array = {0};
    kkt_error err = {0};
    assert_int_equal(parse_npy(4, "{}", 0, &array, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "version 4.0"));
    assert_int_equal(kkt_npy_parse("x", "PK\3\4 no npy", 11, &array, &err), KKT_ERR_INPUT);
    assert_int_equal(kkt_npy_parse("x", "\x93NUMPY\1\0\xFF\xFF{", 11, &array, &err), KKT_ERR_INPUT);
    assert_non_null(strstr(err.message, "cut off"));
    assert_int_equal(kkt_npy_read("absent.npy", &array, &err), KKT_ERR_INPUT);
    assert_int_equal(kkt_npy_write("/dev/full", KKT_NPY_F2, 0, NULL, "xx", &err),
                     KKT_ERR_ENVIRONMENT);
}

static void test_npy_mutations(void **state) {
    (void)state;
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    uint32_t random = 7;
    for (int round = 0; round < 20000; round++) {
        char copy[80];
        snprintf(copy, sizeof copy, "%s", header);
        for (int k = 0; k < 1 + round % 3; k++) {
            random = random * 1664525u + 1013904223u;
            copy[(random >> 8) % strlen(header)] = (char)(1 + (random >> 24) % 126);
        }
        kkt_npy array = {0};
        if (parse_npy(1 + round % 3, copy, 24, &array, NULL) == KKT_OK)
            assert_true(array.elements * 2 == 24 || array.elements * 4 == 24 ||
                        array.elements * 8 == 24);
        kkt_npy_free(&array);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_and_read, enter, leave),
        cmocka_unit_test_setup_teardown(test_leftovers, enter, leave),
        cmocka_unit_test_setup_teardown(test_read_errors, enter, leave),
        cmocka_unit_test_setup_teardown(test_write_errors, enter, leave),
        cmocka_unit_test_setup_teardown(test_folders, enter, leave),
        cmocka_unit_test_setup_teardown(test_paths, enter, leave),
        cmocka_unit_test_setup_teardown(test_npy_round_trip, enter, leave),
        cmocka_unit_test_setup_teardown(test_npy_accepts, enter, leave),
        cmocka_unit_test_setup_teardown(test_npy_refuses, enter, leave),
        cmocka_unit_test_setup_teardown(test_npy_mutations, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
