#include "cli/tensor_print.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/tensors.h"

static const char SUFFIX[] = ".npy";

static bool is_array(const char *file) {
    size_t length = strlen(file), end = sizeof SUFFIX - 1;
    return length > end && strcmp(file + length - end, SUFFIX) == 0;
}

static bool is_named(const char *file, const char *name) {
    size_t length = strlen(name);
    return strncmp(file, name, length) == 0 && strcmp(file + length, SUFFIX) == 0;
}

static bool is_known(const char *file, const kkt_kernel *kernel, const kkt_host_tensors *tensors) {
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->t[i].tensor.role != KKT_TENSOR_WORKSPACE &&
            is_named(file, tensors->t[i].tensor.name)) {
            return true;
        }
    }
    return kernel->from_lower && is_named(file, kernel->from_lower->tensor);
}

static void add_known(const kkt_kernel *kernel, const kkt_host_tensors *tensors, kkt_text *out) {
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->t[i].tensor.role != KKT_TENSOR_WORKSPACE) {
            kkt_text_printf(out, "%s%s%s", out->length > 0 ? ", " : "", tensors->t[i].tensor.name,
                            SUFFIX);
        }
    }
    if (kernel->from_lower) {
        kkt_text_printf(out, "%s%s%s", out->length > 0 ? ", " : "", kernel->from_lower->tensor,
                        SUFFIX);
    }
}

static void note_file(const char *folder, char *file, const char *kernel, const char *known) {
    for (char *at = file; *at; at++) { /* names of files are anyone's */
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            *at = '?';
        }
    }
    fprintf(stderr, "kkttune: '%s/%s' is not read: %s knows %s\n", folder, file, kernel, known);
}

void kkt_tensors_note_unknown(const char *folder, const kkt_kernel *kernel,
                              const kkt_host_tensors *tensors) {
    struct dirent **files = NULL;
    kkt_text known = {0};
    int count = scandir(folder, &files, NULL, alphasort);
    add_known(kernel, tensors, &known);
    for (int i = 0; i < count; i++) {
        if (is_array(files[i]->d_name) && !is_known(files[i]->d_name, kernel, tensors)) {
            note_file(folder, files[i]->d_name, kernel->name, kkt_text_get(&known));
        }
        free(files[i]);
    }
    free(files);
    kkt_text_free(&known);
}

static void add_path(const char *folder, const char *name, kkt_text *out) {
    char *path = kkt_tensor_path(folder, name);
    kkt_text_printf(out, "%s%s", out->length > 0 ? ", " : "", path);
    free(path);
}

static void print_line(const char *what, kkt_text *text) {
    if (text->length > 0) {
        printf("%-14s %s\n", what, kkt_text_get(text));
    }
    kkt_text_free(text);
}

void kkt_tensors_print(const char *problem, const char *in_folder, const char *out_folder,
                       const kkt_host_tensors *inputs, const kkt_host_tensors *written) {
    kkt_text read = {0}, without = {0}, wrote = {0};
    for (int i = 0; i < inputs->count; i++) {
        const kkt_host_tensor *host = &inputs->t[i];
        if (host->tensor.role != KKT_TENSOR_INPUT) {
            continue;
        }
        if (host->data) {
            add_path(in_folder, host->tensor.name, &read);
        } else {
            kkt_text_printf(&without, "%s%s: no %s%s", without.length > 0 ? ", " : "",
                            host->tensor.name, host->tensor.name, SUFFIX);
        }
    }
    for (int i = 0; i < written->count && out_folder; i++) {
        if (written->t[i].tensor.role == KKT_TENSOR_OUTPUT && written->t[i].data) {
            add_path(out_folder, written->t[i].tensor.name, &wrote);
        }
    }
    if (problem) {
        printf("%-14s %s\n", "problem", problem);
    }
    print_line("read", &read);
    print_line("without", &without);
    print_line("wrote", &wrote);
}
