/* The command line, read by a command's own table of options. */
#ifndef KKT_CLI_ARGS_H
#define KKT_CLI_ARGS_H

#include <stdio.h>

#include "base/arena.h"
#include "cli/command.h"

/* Reads "--name value", "--name=value", flags and operands; "--" ends the options. A value that
 * begins with "--" must be written with '='. KKT_ERR_INPUT names what is unknown, doubled, missing,
 * empty (but for lists "k=v,...") or too much, and lists what exists. The result and its strings
 * live in `arena` and `argv`. */
kkt_status kkt_args_parse(const kkt_command *command, int argc, char *const *argv, kkt_arena *arena,
                          kkt_args **out, kkt_error *err);

/* "--help" or "--version" where it stands among options: NULL where neither is asked for. */
const char *kkt_args_question(int argc, char *const *argv);

/* Help of one command, generated from its tables. */
void kkt_args_print_help(const kkt_command *command, FILE *out);

#endif
