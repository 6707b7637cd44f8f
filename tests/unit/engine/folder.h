/* A folder of its own for a test program's databases and caches: group fixtures that make it and
 * remove it with all it holds. */
#ifndef KKT_TESTS_ENGINE_FOLDER_H
#define KKT_TESTS_ENGINE_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/kkttune-engine-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

#endif
