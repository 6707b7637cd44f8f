/* What --help adds where a kernel is named. */
#ifndef KKT_CLI_KERNEL_HELP_H
#define KKT_CLI_KERNEL_HELP_H

#include <stdio.h>

#include "cli/command.h"

/* Where `command` takes --problem and a word of `argv` names a kernel: the kernel's files where it
 * takes --in, its problem keys and, where it takes --config, the parameters of each of its styles,
 * with meaning, values and defaults. Else nothing. */
void kkt_kernel_help(const kkt_command *command, int argc, char *const *argv, FILE *out);

#endif
