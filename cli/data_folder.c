#include "cli/data_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Installed: bin/kkttune. Built: BUILD/cli/kkttune, with BUILD inside the source tree, or else the
 * absolute path that the build left. */
static const char *const places[] = {"../share/kkttune/reference", "../../db/reference",
                                     "../../../db/reference", KKT_SOURCE_FOLDER "/db/reference"};

kkt_status kkt_reference_folder(char **out, kkt_error *err) {
    const char *given = getenv("KKTTUNE_REFERENCE");
    *out = NULL;
    if (given && *given) {
        if (!kkt_file_exists(given)) {
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "KKTTUNE_REFERENCE names '%s', and there is no such folder", given);
        }
        *out = strdup(given);
        return KKT_OK;
    }
    char *program = kkt_program_folder();
    for (size_t i = 0; program && !*out && i < sizeof places / sizeof *places; i++) {
        char *path = kkt_path_join(program, places[i]);
        if (kkt_file_exists(path)) {
            *out = realpath(path, NULL); /* without the "..": people read it in messages */
            free(path);
        } else {
            free(path);
        }
    }
    free(program);
    return KKT_OK;
}
