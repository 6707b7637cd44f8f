/* Who holds the write lock of a database: SQLite knows only that somebody does, the kernel lists
 * who. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "db/store_sqlite.h"

/* Name of a process as the kernel keeps it; "" where it is not to be had. */
static void read_name(long pid, char *out, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (file && fgets(out, (int)size, file)) {
        for (char *at = out; *at; at++) {
            if (*at == '\n')
                *at = '\0';
            else if ((unsigned char)*at < ' ' || *at == 127)
                *at = '?';
        }
    }
    if (file)
        fclose(file);
}

/* The other process with a write lock on the file; 0: none is listed. */
static long find_writer(const char *path) {
    struct stat info;
    FILE *locks = stat(path, &info) == 0 ? fopen("/proc/locks", "re") : NULL;
    char line[256];
    long found = 0;
    while (locks && found == 0 && fgets(line, sizeof line, locks)) {
        long pid = 0;
        unsigned device_major = 0, device_minor = 0;
        uintmax_t inode = 0;
        /* "7: POSIX  ADVISORY  WRITE 4711 fd:01:1234 120 120"; waiting ones have "->". */
        if (sscanf(line, "%*d: POSIX %*s WRITE %ld %x:%x:%ju", &pid, &device_major, &device_minor,
                   &inode) == 4 &&
            pid > 0 && pid != getpid() && inode == (uintmax_t)info.st_ino &&
            makedev(device_major, device_minor) == info.st_dev)
            found = pid;
    }
    if (locks)
        fclose(locks);
    return found;
}

void kkt_db_lock_holder(const char *path, char *out, size_t size) {
    /* With a write-ahead log the locks are on its index, else on the database itself. */
    static const char *const suffixes[] = {"-shm", ""};
    long pid = 0;
    char name[64];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0] && pid == 0; i++) {
        kkt_text file = {0};
        kkt_text_printf(&file, "%s%s", path, suffixes[i]);
        pid = find_writer(kkt_text_get(&file));
        kkt_text_free(&file);
    }
    if (pid == 0) {
        snprintf(out, size, "another process");
        return;
    }
    read_name(pid, name, sizeof name);
    snprintf(out, size, *name ? "process %ld (%s)" : "process %ld", pid, name);
}
