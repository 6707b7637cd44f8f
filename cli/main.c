/* kkttune: finds the command, reads its options, runs it, and turns its status into the exit
 * code. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/version.h"
#include "cli/args.h"
#include "cli/kernel_help.h"
#include "cli/output.h"
#include "tuner/compile/pool.h"
#include "tuner/measure/backend.h"

static const kkt_command *find_command(const char *name) {
    size_t count = 0;
    const kkt_command *const *commands = kkt_commands(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static void print_overview(FILE *out) {
    size_t count = 0;
    const kkt_command *const *commands = kkt_commands(&count);
    fputs("usage: kkttune --arch ARCH [OPTION...]      the main job: tune, export, report\n"
          "       kkttune COMMAND [OPTION...]\n\ncommands:\n",
          out);
    for (size_t i = 0; i < count; i++) {
        if (*commands[i]->name)
            fprintf(out, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    }
    fputs("\nkkttune COMMAND --help tells the options of one; with a kernel's name, as in\n"
          "kkttune explain gemm --help, the kernel's problem keys and parameters as well.\n",
          out);
}

static kkt_status answer(const char *question, const kkt_command *command, int argc,
                         char *const *argv) {
    if (strcmp(question, "--version") == 0) {
        puts("kkttune " KKT_VERSION);
        return KKT_OK;
    }
    if (!command || !*command->name) {
        print_overview(stdout);
        putchar('\n');
    }
    if (command) {
        kkt_args_print_help(command, stdout);
        kkt_kernel_help(command, argc, argv, stdout);
    }
    return KKT_OK;
}

static kkt_status fail_command(const char *word, kkt_error *err) {
    size_t count = 0;
    const kkt_command *const *commands = kkt_commands(&count);
    kkt_text list = {0};
    for (size_t i = 0; i < count; i++) {
        if (*commands[i]->name)
            kkt_text_printf(&list, "%s%s", list.length ? ", " : "", commands[i]->name);
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0,
                                 "unknown command '%.60s'; known: %s; or --arch ARCH for the "
                                 "main job",
                                 word, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

/* `--compare A B` is how the main job spells the command compare. */
static bool spells_command(const char *word) {
    return word[0] != '-' || strcmp(word, "--compare") == 0;
}

static kkt_status run(int argc, char *const *argv, kkt_error *err) {
    bool word = spells_command(argv[1]);
    const kkt_command *command = find_command(word ? argv[1] + strspn(argv[1], "-") : "");
    int skipped = word ? 2 : 1;
    const char *question = kkt_args_question(argc - 1, argv + 1);
    if (word && !command)
        return fail_command(argv[1], err);
    if (question)
        return answer(question, command, argc - skipped, argv + skipped);
    if (!command)
        return fail_command(argv[1], err);
    kkt_arena *arena = kkt_arena_open();
    kkt_args *args = NULL;
    kkt_status status = kkt_args_parse(command, argc - skipped, argv + skipped, arena, &args, err);
    if (status == KKT_OK)
        status = command->run(args, err);
    kkt_arena_close(arena);
    return status;
}

/* The program re-executed by itself: see tuner/compile/pool.h and tuner/measure/backend.h. */
static int run_worker(const char *kind) {
    if (strcmp(kind, "compile") == 0)
        return kkt_compile_worker_main();
    if (strcmp(kind, "cuda") == 0)
        return kkt_cuda_worker_main();
    if (strcmp(kind, "count") == 0)
        return kkt_count_worker_main();
    fprintf(stderr, "kkttune: unknown worker '%.60s'; known: compile, cuda, count\n", kind);
    return KKT_ERR_INPUT;
}

int main(int argc, char **argv) {
    kkt_output_begin();
    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return run_worker(argv[2]);
    if (argc < 2) {
        print_overview(stderr);
        return KKT_ERR_INPUT;
    }
    kkt_error err = {0};
    kkt_status status = run(argc, argv, &err);
    if (status != KKT_OK) {
        fflush(stdout);
        fprintf(stderr, "kkttune: %s\n", err.message);
    }
    return (int)kkt_output_end(status);
}
