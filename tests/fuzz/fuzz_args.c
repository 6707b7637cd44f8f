/* Any words as a command line, one a line: refused with a sentence, or every option that is said to
 * be given has a value. What names an architecture, a device or a kernel is looked up as well. */
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "kernels/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 64 };

static const kkt_option options[] = {
    {"--arch", "ARCH", "an architecture"},
    {"--device", "NAME", "a device"},
    {"--json", NULL, "a flag"},
    {"--kernel", "NAME", "a kernel"},
};
static const kkt_command commands[] = {
    {"none", "", "no operands", NULL, options, sizeof options / sizeof options[0], NULL},
    {"two", "FIRST [SECOND]", "operands", NULL, options, sizeof options / sizeof options[0], NULL},
    {"", NULL, "no options", NULL, NULL, 0, NULL},
};

static void expect_answer(bool found, const kkt_error *error) {
    if (!found && error->message[0] == '\0')
        abort();
}

static void look_up(const kkt_args *args) {
    const char *arch_name = kkt_args_get(args, "--arch");
    const char *device_name = kkt_args_get(args, "--device");
    const char *kernel_name = kkt_args_get(args, "--kernel");
    const kkt_arch *arch = NULL;
    const kkt_device *device = NULL;
    const kkt_kernel *kernel = NULL;
    kkt_error error = {0};
    if (arch_name)
        expect_answer(kkt_arch_parse(arch_name, &arch, &error) == KKT_OK, &error);
    if (device_name && arch)
        expect_answer(kkt_device_parse(device_name, arch, &device, &error) == KKT_OK, &error);
    if (kernel_name)
        expect_answer(kkt_kernel_parse(kernel_name, &kernel, &error) == KKT_OK, &error);
}

static void try_command(const kkt_command *command, int count, char *const *words) {
    kkt_arena *arena = kkt_arena_open();
    kkt_args *args = NULL;
    kkt_error error = {0};
    if (kkt_args_parse(command, count, words, arena, &args, &error) == KKT_OK) {
        for (size_t i = 0; i < command->option_count; i++) {
            const char *value = kkt_args_get(args, command->options[i].name);
            if (kkt_args_has(args, command->options[i].name) != (value != NULL))
                abort();
        }
        for (size_t i = 0; i < kkt_args_operand_count(args); i++)
            if (strlen(kkt_args_operand(args, i)) == SIZE_MAX)
                abort();
        if (kkt_args_operand(args, kkt_args_operand_count(args)) != NULL)
            abort();
        look_up(args);
    } else if (error.message[0] == '\0') {
        abort();
    }
    kkt_arena_close(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *words[WORDS_MAX + 1] = {NULL};
    int count = 0;
    char *text = malloc(size + 1);
    if (text == NULL)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    char *rest = text;
    for (char *word = strsep(&rest, "\n"); word && count < WORDS_MAX; word = strsep(&rest, "\n"))
        words[count++] = word;
    kkt_args_question(count, words);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        try_command(&commands[i], count, words);
    free(text);
    return 0;
}
