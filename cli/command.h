/* Commands are const descriptors, one cmd_*.c a command, listed in commands.c. Only cli/ prints
 * and exits. Results go to standard output, progress and warnings to standard error. */
#ifndef KKT_CLI_COMMAND_H
#define KKT_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json.h"

typedef struct kkt_option {
    const char *name;  /* "--arch" */
    const char *value; /* what --help calls its value; NULL: a flag */
    const char *help;
} kkt_option;

typedef struct kkt_args kkt_args;
/* The value of an option ("" for a flag that was given); NULL where it was not given. Given twice:
 * already refused by the parser. */
const char *kkt_args_get(const kkt_args *args, const char *option);
bool kkt_args_has(const kkt_args *args, const char *option);
size_t kkt_args_operand_count(const kkt_args *args);
const char *kkt_args_operand(const kkt_args *args, size_t index);

typedef struct kkt_command {
    const char *name;     /* "model"; "" is the main job */
    const char *operands; /* "KERNEL" or ""; how many are required is counted from the words; a
                             word in brackets "[X]" is optional */
    const char *summary;  /* one line */
    const char *details;  /* more lines for --help; may be NULL */
    const kkt_option *options;
    size_t option_count;
    kkt_status (*run)(const kkt_args *args, kkt_error *err);
} kkt_command;

const kkt_command *const *kkt_commands(size_t *count);

/* Prints one JSON object on standard output and closes it. */
void kkt_print_json(kkt_json *root);

/* Options that several commands share. */
#define KKT_OPTION_ARCH                                                                            \
    { "--arch", "ARCH", "architecture: sm90, sm_90, 9.0, ..." }
#define KKT_OPTION_DEVICE                                                                          \
    { "--device", "NAME", "exact device row: h200, h100, ..." }
#define KKT_OPTION_DB                                                                              \
    { "--db", "FILE", "database; default kkttune.db in the working folder" }
#define KKT_OPTION_JSON                                                                            \
    { "--json", NULL, "one JSON object on standard output" }

struct kkt_arch;
struct kkt_device;
/* The device of the recorded measurements of an architecture, else the first of the table: what all
 * commands mean where none is named and no GPU is opened. KKT_ERR_INPUT: kkt_reference_folder. */
kkt_status kkt_default_device(const struct kkt_arch *arch, const struct kkt_device **device,
                              kkt_error *err);
/* Resolves --arch (required: the error lists what exists) and --device (optional: else
 * kkt_default_device; a command that opens a GPU then takes that one's row). */
kkt_status kkt_args_arch(const kkt_args *args, const struct kkt_arch **arch,
                         const struct kkt_device **device, kkt_error *err);

#endif
