#include "cli/data_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

char *kkt_reference_folder(void) {
    const char *given = getenv("KKTTUNE_REFERENCE");
    if (given && *given) {
        return kkt_file_exists(given) ? strdup(given) : NULL;
    }
    /* Installed: bin/kkttune. Built: BUILD/cli/kkttune, with BUILD inside the source tree. */
    static const char *const places[] = {"../share/kkttune/reference", "../../db/reference",
                                         "../db/reference", "../../../db/reference"};
    char *program = kkt_program_folder();
    char *found = NULL;
    for (size_t i = 0; program && !found && i < sizeof places / sizeof *places; i++) {
        char *path = kkt_path_join(program, places[i]);
        if (kkt_file_exists(path)) {
            found = path;
        } else {
            free(path);
        }
    }
    free(program);
    return found;
}
