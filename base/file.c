#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static kkt_status fail_open(const char *path, kkt_error *err) {
    bool absent = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG || errno == ELOOP;
    return kkt_fail_errno(err, absent ? KKT_ERR_INPUT : KKT_ERR_ENVIRONMENT, errno,
                          "cannot open '%s'", path);
}

/* Reads to the end of the file or one byte past `limit`. The file may grow meanwhile, and files
 * of /proc say that their size is 0, so that only the reading itself tells the length. */
static kkt_status read_all(int fd, const char *path, size_t expected, size_t limit, char **data,
                           size_t *length, kkt_error *err) {
    size_t capacity = expected + 2, used = 0;
    char *bytes = kkt_memory_resize(NULL, capacity);
    for (;;) {
        ssize_t got = read(fd, bytes + used, capacity - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            kkt_status status =
                kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot read '%s'", path);
            free(bytes);
            return status;
        }
        if (got == 0)
            break;
        used += (size_t)got;
        if (used > limit) {
            free(bytes);
            return kkt_fail(err, KKT_ERR_INPUT, 0, "'%s' is larger than the limit of %zu bytes",
                            path, limit);
        }
        if (used == capacity - 1) {
            capacity *= 2;
            bytes = kkt_memory_resize(bytes, capacity);
        }
    }
    bytes[used] = '\0';
    *data = bytes;
    *length = used;
    return KKT_OK;
}

kkt_status kkt_file_read(const char *path, size_t limit, char **data, size_t *length,
                         kkt_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block here */
    if (fd < 0)
        return fail_open(path, err);
    struct stat info;
    kkt_status status = KKT_OK;
    if (fstat(fd, &info) != 0)
        status = kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot read '%s'", path);
    else if (!S_ISREG(info.st_mode))
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "'%s' is not a regular file", path);
    else if ((uintmax_t)info.st_size > limit)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "'%s' has %lld bytes, more than the limit of %zu",
                          path, (long long)info.st_size, limit);
    else
        status = read_all(fd, path, (size_t)info.st_size, limit, data, length, err);
    close(fd);
    return status;
}

static bool write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        bytes += done;
        length -= (size_t)done;
    }
    return true;
}

/* Whether `name` is still the file behind `fd`: its writer may have renamed it since. */
static bool is_named(int fd, const char *name) {
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && lstat(name, &named) == 0 && S_ISREG(named.st_mode) &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* Whether a file that was there already may be written: of this user, under no other name. */
static bool is_own(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid == geteuid() && info.st_nlink == 1;
}

/* Makes `name`, or takes the one that a killed process left there: whoever writes holds its lock.
 * -1 and EEXIST where somebody does, or where it is somebody else's. */
static int take_temporary(const char *name) {
    const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(name, flags | O_CREAT | O_EXCL, 0666);
    bool made = fd >= 0;
    if (!made && errno == EEXIST)
        fd = open(name, flags);
    else if (!made)
        return -1;
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0 && (locked || (made && errno != EWOULDBLOCK)) && is_named(fd, name) &&
        (made || (is_own(fd) && ftruncate(fd, 0) == 0)))
        return fd;
    if (fd >= 0)
        close(fd);
    errno = EEXIST;
    return -1;
}

/* A file beside `path` of this process alone, empty; its name goes to `name`. -1 and errno where
 * none can be had. */
static int make_temporary(const char *path, char name[PATH_MAX]) {
    for (int attempt = 0; attempt < 100; attempt++) {
        int length = snprintf(name, PATH_MAX, "%s.kkttune-tmp%d", path, attempt);
        if (length >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = take_temporary(name);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static kkt_status replace_file(const char *path, const void *data, size_t length, kkt_error *err) {
    char temporary[PATH_MAX];
    int fd = make_temporary(path, temporary);
    if (fd < 0)
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot write '%s'", path);
    /* Renamed before it is closed, which gives up the lock. */
    bool ok = write_all(fd, data, length) && fsync(fd) == 0 && rename(temporary, path) == 0;
    int cause = errno;
    if (!ok)
        unlink(temporary);
    close(fd);
    if (ok)
        return KKT_OK;
    return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, cause, "cannot write '%s'", path);
}

/* Devices and pipes are written to, never replaced: /dev/null must stay what it is. */
static kkt_status write_special(const char *path, const void *data, size_t length, kkt_error *err) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write_all(fd, data, length);
    int cause = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        cause = errno;
    }
    if (ok)
        return KKT_OK;
    return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, cause, "cannot write '%s'", path);
}

kkt_status kkt_file_write(const char *path, const void *data, size_t length, kkt_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return replace_file(path, data, length, err);
    if (S_ISDIR(info.st_mode))
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, EISDIR, "cannot write '%s'", path);
    if (!S_ISREG(info.st_mode))
        return write_special(path, data, length, err);
    char real[PATH_MAX]; /* a link stays a link: what it points to is replaced */
    if (access(path, W_OK) != 0 || !realpath(path, real))
        return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot write '%s'", path);
    return replace_file(real, data, length, err);
}

kkt_status kkt_folder_make(const char *path, kkt_error *err) {
    char *copy = kkt_memory_strdup(*path ? path : ".");
    kkt_status status = KKT_OK;
    for (char *at = copy; status == KKT_OK; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char kept = *at;
        *at = '\0';
        struct stat info;
        if (*copy && mkdir(copy, 0777) != 0 && errno != EEXIST)
            status =
                kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno, "cannot make folder '%s'", copy);
        else if (*copy && (stat(copy, &info) != 0 || !S_ISDIR(info.st_mode)))
            status =
                kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, ENOTDIR, "cannot make folder '%s'", copy);
        *at = kept;
        if (kept == '\0')
            break;
    }
    free(copy);
    return status;
}

kkt_status kkt_folder_check_writable(const char *path, kkt_error *err) {
    /* Where the folder is still to be made, its nearest existing parent decides. */
    char *folder = kkt_memory_strdup(*path ? path : ".");
    struct stat info;
    while (stat(folder, &info) != 0 && errno == ENOENT) {
        char *slash = strrchr(folder, '/');
        if (!slash) {
            free(folder);
            folder = kkt_memory_strdup(".");
        } else if (slash == folder) {
            slash[1] = '\0';
        } else {
            *slash = '\0';
        }
    }
    char *probe = kkt_path_join(folder, ".kkttune-probe");
    char name[PATH_MAX];
    int fd = make_temporary(probe, name);
    bool ok = fd >= 0 && write_all(fd, "\n", 1); /* an empty file fits on a full disk */
    int cause = errno;
    if (fd >= 0) {
        unlink(name);
        close(fd);
    }
    free(probe);
    free(folder);
    if (ok)
        return KKT_OK;
    return kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, cause, "cannot write to folder '%s'", path);
}

bool kkt_file_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

char *kkt_path_join(const char *folder, const char *name) {
    if (*name == '/' || *folder == '\0')
        return kkt_memory_strdup(name);
    size_t length = strlen(folder);
    const char *between = folder[length - 1] == '/' ? "" : "/";
    size_t size = length + strlen(between) + strlen(name) + 1;
    char *path = kkt_memory_alloc(size);
    snprintf(path, size, "%s%s%s", folder, between, name);
    return path;
}

char *kkt_program_folder(void) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    slash[slash == path] = '\0';
    return kkt_memory_strdup(path);
}
