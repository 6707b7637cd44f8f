/* The list of commands. A new one is its file cmd_NAME.c, which defines
 * `const kkt_command kkt_cmd_NAME`, and one line X(NAME) here; NAME `main` is the main job, whose
 * command word is "". The order is that of --help. */
#include "cli/command.h"

/* clang-format off */
#define COMMANDS(X)                                                                                \
    X(main)                                                                                        \
    X(tune)                                                                                        \
    X(verify)                                                                                      \
    X(run)                                                                                         \
    X(reference)                                                                                   \
    X(model)                                                                                       \
    X(occupancy)                                                                                   \
    X(explain)                                                                                     \
    X(ablate)                                                                                      \
    X(list)                                                                                        \
    X(export)                                                                                      \
    X(report)                                                                                      \
    X(lookup)                                                                                      \
    X(compare)                                                                                     \
    X(db)                                                                                          \
    /* end */
/* clang-format on */

#define DECLARE(name) extern const kkt_command kkt_cmd_##name;
COMMANDS(DECLARE)

const kkt_command *const *kkt_commands(size_t *count) {
#define ADDRESS(name) &kkt_cmd_##name,
    static const kkt_command *const commands[] = {COMMANDS(ADDRESS)};
    *count = sizeof commands / sizeof commands[0];
    return commands;
}
