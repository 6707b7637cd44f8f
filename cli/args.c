#include "cli/args.h"

#include <string.h>

#include "base/text.h"

struct kkt_args {
    const kkt_command *command;
    const char **values; /* in the order of the command's options; NULL: not given */
    const char **operands;
    size_t operand_count;
};

/* ---- what a command reads ---- */

static int find_option(const kkt_command *command, const char *name, size_t length) {
    for (size_t i = 0; i < command->option_count; i++) {
        const char *known = command->options[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return (int)i;
    }
    return -1;
}

const char *kkt_args_get(const kkt_args *args, const char *option) {
    int index = find_option(args->command, option, strlen(option));
    return index < 0 ? NULL : args->values[index];
}

bool kkt_args_has(const kkt_args *args, const char *option) {
    return kkt_args_get(args, option) != NULL;
}

size_t kkt_args_operand_count(const kkt_args *args) {
    return args->operand_count;
}

const char *kkt_args_operand(const kkt_args *args, size_t index) {
    return index < args->operand_count ? args->operands[index] : NULL;
}

/* ---- parsing ---- */

/* How an error names the command: "kkttune model", or "kkttune" for the main job. */
static const char *title_of(const kkt_command *command, char buffer[64]) {
    snprintf(buffer, 64, "kkttune%s%s", *command->name ? " " : "", command->name);
    return buffer;
}

static kkt_status fail_unknown(const kkt_command *command, const char *option, size_t length,
                               kkt_error *err) {
    kkt_text list = {0};
    for (size_t i = 0; i < command->option_count; i++)
        kkt_text_printf(&list, "%s, ", command->options[i].name);
    kkt_text_add(&list, "--help, --version");
    char title[64];
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown option '%.*s' of %s; known: %s",
                                 (int)(length < 60 ? length : 60), option, title_of(command, title),
                                 kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

/* An empty value names nothing: no file, folder, kernel or number. Only a list "k=v,..." may be
 * empty: all of it at its defaults. */
static kkt_status check_value(const kkt_option *option, const char *value, kkt_error *err) {
    if (*value != '\0' || strchr(option->value, '=') != NULL)
        return KKT_OK;
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "option %s has an empty value; give %s %s, or leave it out", option->name,
                    option->name, option->value);
}

/* The option at argv[*at]; moves *at to the last word that was used. */
static kkt_status read_option(kkt_args *args, int argc, char *const *argv, int *at,
                              kkt_error *err) {
    const kkt_command *command = args->command;
    const char *word = argv[*at];
    size_t length = strcspn(word, "=");
    int index = find_option(command, word, length);
    if (index < 0)
        return fail_unknown(command, word, length, err);
    const kkt_option *option = &command->options[index];
    if (args->values[index])
        return kkt_fail(err, KKT_ERR_INPUT, 0, "option %s is given twice; give it once",
                        option->name);
    bool attached = word[length] == '=';
    if (!option->value) {
        if (attached)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "option %s takes no value", option->name);
        args->values[index] = "";
        return KKT_OK;
    }
    if (attached) {
        args->values[index] = word + length + 1;
        return check_value(option, args->values[index], err);
    }
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "option %s needs a value: %s %s", option->name,
                        option->name, option->value);
    args->values[index] = argv[++*at];
    return check_value(option, args->values[index], err);
}

/* Words of the operand pattern; those in brackets are optional. */
static void count_operands(const char *pattern, size_t *required, size_t *most) {
    *required = *most = 0;
    for (const char *at = pattern; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (*at == '\0')
            break;
        *required += *at != '[';
        ++*most;
    }
}

static kkt_status check_operands(const kkt_args *args, kkt_error *err) {
    const kkt_command *command = args->command;
    const char *pattern = command->operands ? command->operands : "";
    size_t required, most;
    char title[64];
    count_operands(pattern, &required, &most);
    if (args->operand_count > most)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "%s takes %s%s, so '%.60s' is too much; see %s --help",
                        title_of(command, title), most ? "" : "no operand", pattern,
                        args->operands[most], title);
    for (size_t i = 0; i < args->operand_count; i++)
        if (*args->operands[i] == '\0')
            return kkt_fail(err, KKT_ERR_INPUT, 0, "an operand of %s is empty; it takes %s",
                            title_of(command, title), pattern);
    if (args->operand_count < required)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s needs %s; see %s --help",
                        title_of(command, title), pattern, title);
    return KKT_OK;
}

kkt_status kkt_args_parse(const kkt_command *command, int argc, char *const *argv, kkt_arena *arena,
                          kkt_args **out, kkt_error *err) {
    kkt_args *args = kkt_arena_alloc(arena, sizeof *args);
    args->command = command;
    args->values = kkt_arena_array(arena, command->option_count, sizeof *args->values);
    args->operands = kkt_arena_array(arena, (size_t)(argc > 0 ? argc : 0), sizeof *args->operands);
    bool options = true;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1] != '\0') {
            kkt_status status = read_option(args, argc, argv, &i, err);
            if (status != KKT_OK)
                return status;
        } else {
            args->operands[args->operand_count++] = word;
        }
    }
    *out = args;
    return check_operands(args, err);
}

const char *kkt_args_question(int argc, char *const *argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return "--help";
        if (strcmp(argv[i], "--version") == 0)
            return "--version";
    }
    return NULL;
}

/* ---- help ---- */

static int option_width(const kkt_option *option) {
    size_t value = option->value ? strlen(option->value) + 1 : 0;
    return (int)(strlen(option->name) + value);
}

static void print_option(const kkt_option *option, int width, FILE *out) {
    fprintf(out, "  %s%s%s%*s  %s\n", option->name, option->value ? " " : "",
            option->value ? option->value : "", width - option_width(option), "", option->help);
}

void kkt_args_print_help(const kkt_command *command, FILE *out) {
    static const kkt_option common[] = {{"--help", NULL, "this text"},
                                        {"--version", NULL, "the program's version"}};
    char title[64];
    const char *operands = command->operands ? command->operands : "";
    fprintf(out, "usage: %s%s%s [OPTION...]\n\n%s\n", title_of(command, title),
            *operands ? " " : "", operands, command->summary);
    if (command->details)
        fprintf(out, "\n%s\n", command->details);
    int width = option_width(&common[1]);
    for (size_t i = 0; i < command->option_count; i++) {
        int own = option_width(&command->options[i]);
        width = own > width ? own : width;
    }
    fputs("\noptions:\n", out);
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i], width, out);
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        print_option(&common[i], width, out);
}
