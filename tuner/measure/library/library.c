#include "tuner/measure/library/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* The one list. */
static const kkt_library_type *const types[] = {&kkt_library_cublas};
_Static_assert(sizeof types / sizeof *types <= KKT_LIBRARIES_MAX, "room for all libraries");

/* Where a library lies below a toolkit's root or below a folder that wheels were put into. */
static const char *const FOLDERS[] = {"", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cublas/lib"};

/* ---- finding ---- */

static void *try_file(const char *folder, const char *file, kkt_text *looked) {
    char *path = folder == NULL ? strdup(file) : kkt_path_join(folder, file);
    void *handle = NULL;
    if (folder == NULL || kkt_file_exists(path)) {
        /* Never unloaded: such a library keeps threads and memory of its own. */
        handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
        if (handle == NULL) {
            kkt_text_printf(looked, "; %s does not load", path);
        }
    }
    free(path);
    return handle;
}

/* NULL `root`: where the loader looks. */
static void *try_root(const char *root, const char *file, kkt_text *looked) {
    void *handle = root == NULL ? try_file(NULL, file, looked) : NULL;
    for (size_t i = 0; root != NULL && i < sizeof FOLDERS / sizeof *FOLDERS && handle == NULL;
         i++) {
        char *folder = kkt_path_join(root, FOLDERS[i]);
        handle = try_file(folder, file, looked);
        free(folder);
    }
    return handle;
}

static bool try_set(const char *root, const char *const *files, void **handles, kkt_text *looked) {
    size_t found = 0;
    while (files[found] != NULL &&
           (handles[found] = try_root(root, files[found], looked)) != NULL) {
        found++;
    }
    return files[found] == NULL;
}

bool kkt_library_dlopen(const char *const *const *sets, void **handles, kkt_text *looked) {
    const char *const roots[] = {getenv("KKTTUNE_CUDA"), getenv("CUDA_HOME"), getenv("CUDA_PATH"),
                                 "/usr/local/cuda", NULL};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        const bool last = i + 1 == sizeof roots / sizeof *roots;
        if (!last && (roots[i] == NULL || *roots[i] == '\0')) {
            continue;
        }
        if (!last) {
            kkt_text_printf(looked, "%s%s", looked->length > 0 ? "; " : "", roots[i]);
        }
        for (const char *const *const *set = sets; *set != NULL; set++) {
            if (try_set(roots[i], *set, handles, looked)) {
                return true;
            }
        }
    }
    return false;
}

const char *kkt_library_resolve(void *handle, const kkt_library_symbol *symbols, size_t count,
                                void *out) {
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (address == NULL) {
            return symbols[i].name;
        }
        /* A cast from an object to a function pointer is no ISO C; POSIX promises the copy. */
        memcpy((char *)out + symbols[i].at, &address, sizeof address);
    }
    return NULL;
}

/* ---- what was opened ---- */

static const kkt_library_type *find_type(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i]->name, name) == 0) {
            return types[i];
        }
    }
    return NULL;
}

/* The place of a library, where it was opened or will be. */
static kkt_library *place_of(kkt_gpu *gpu, const kkt_library_type *type) {
    if (gpu->libraries == NULL) {
        gpu->libraries = calloc(KKT_LIBRARIES_MAX, sizeof *gpu->libraries);
    }
    for (int i = 0; gpu->libraries != NULL && i < KKT_LIBRARIES_MAX; i++) {
        kkt_library *at = &gpu->libraries[i];
        if (at->type == NULL || at->type == type) {
            return at;
        }
    }
    return NULL;
}

kkt_status kkt_library_open(kkt_gpu *gpu, const char *name, const kkt_library **out,
                            kkt_error *err) {
    const kkt_library_type *type = find_type(name);
    *out = NULL;
    if (type == NULL) {
        return kkt_fail(err, KKT_ERR_MISSING, 0, "kkttune knows no library '%.40s'", name);
    }
    kkt_library *library = place_of(gpu, type);
    if (library == NULL) {
        return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "out of memory for libraries");
    }
    if (library->type == NULL) {
        library->type = type;
        type->open(gpu, &library->state, library->version, sizeof library->version,
                   &library->error);
    }
    if (library->state == NULL) {
        return kkt_fail(err, KKT_ERR_MISSING, library->error.native, "%s", library->error.message);
    }
    *out = library;
    return KKT_OK;
}

void kkt_libraries_close(kkt_gpu *gpu) {
    for (int i = 0; gpu->libraries != NULL && i < KKT_LIBRARIES_MAX; i++) {
        free(gpu->libraries[i].state);
    }
    free(gpu->libraries);
    gpu->libraries = NULL;
}

/* ---- calls ---- */

bool kkt_library_routine(kkt_gpu *gpu, const kkt_launch *step, const kkt_library **library,
                         const kkt_routine **routine, char *what, size_t size) {
    kkt_error error = {0};
    kkt_library_open(gpu, step->library, library, &error);
    if (*library == NULL) {
        snprintf(what, size, "%s", error.message);
        return false;
    }
    const kkt_library_type *type = (*library)->type;
    for (size_t i = 0; i < type->routine_count; i++) {
        const kkt_routine *at = &type->routines[i];
        if (strcmp(at->name, step->entry) == 0 && at->args == step->arg_count) {
            *routine = at;
            return true;
        }
    }
    snprintf(what, size, "kkttune knows no %s of %s with %d arguments", step->entry, type->name,
             step->arg_count);
    return false;
}

CUresult kkt_library_call(kkt_gpu *gpu, const kkt_library *library, const kkt_routine *routine,
                          const kkt_call_value *args) {
    int status = routine->call(library->state, args);
    if (status == 0) {
        return CUDA_SUCCESS;
    }
    snprintf(gpu->library_error, sizeof gpu->library_error, "%s: %s", routine->name,
             library->type->error_text(library->state, status));
    /* It may be what a kernel before it did that the library tells of. */
    CUresult after = gpu->driver.stream_wait(gpu->stream);
    return kkt_driver_context_lost(after) || kkt_driver_device_lost(after)
               ? after
               : CUDA_ERROR_NOT_SUPPORTED;
}
