#include "tuner/compile/nvrtc.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { OLDEST_MAJOR = 13 };

/* Where the library lies below a toolkit's root or below a folder that wheels were put into. */
static const char *const FOLDERS[] = {"lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

/* The builtins library is opened by NVRTC itself, by name, where the loader would not find it in a
 * private folder: one that is already loaded is taken. */
static const char *const LIBRARIES[] = {"libnvrtc.so.13", "libnvrtc.so"};
static const char *const BUILTINS[] = {"libnvrtc-builtins.so.13.0", "libnvrtc-builtins.so"};

typedef struct symbol {
    const char *name;
    size_t at;
} symbol;

static const symbol SYMBOLS[] = {
    {"nvrtcVersion", offsetof(kkt_nvrtc, version)},
    {"nvrtcCreateProgram", offsetof(kkt_nvrtc, create)},
    {"nvrtcCompileProgram", offsetof(kkt_nvrtc, compile)},
    {"nvrtcGetCUBINSize", offsetof(kkt_nvrtc, cubin_size)},
    {"nvrtcGetCUBIN", offsetof(kkt_nvrtc, cubin)},
    {"nvrtcGetProgramLogSize", offsetof(kkt_nvrtc, log_size)},
    {"nvrtcGetProgramLog", offsetof(kkt_nvrtc, log)},
    {"nvrtcDestroyProgram", offsetof(kkt_nvrtc, destroy)},
    {"nvrtcGetErrorString", offsetof(kkt_nvrtc, error_string)},
};

void kkt_nvrtc_close(kkt_nvrtc *nvrtc) {
    if (nvrtc->library != NULL)
        dlclose(nvrtc->library);
    if (nvrtc->builtins != NULL)
        dlclose(nvrtc->builtins);
    *nvrtc = (kkt_nvrtc){0};
}

/* Resolves all functions; the pointers are copied as bytes because C has no conversion from an
 * object pointer to a function pointer. */
static bool resolve(kkt_nvrtc *nvrtc) {
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
        void *address = dlsym(nvrtc->library, SYMBOLS[i].name);
        if (address == NULL)
            return false;
        memcpy((char *)nvrtc + SYMBOLS[i].at, &address, sizeof address);
    }
    return nvrtc->version(&nvrtc->major, &nvrtc->minor) == NVRTC_SUCCESS;
}

/* Opens `folder`/library (`folder` NULL: the loader's path) and notes in `looked` what came of it.
 */
static bool try_library(kkt_nvrtc *nvrtc, const char *folder, const char *library,
                        kkt_text *looked) {
    char *path = folder == NULL ? strdup(library) : kkt_path_join(folder, library);
    bool good = false;
    /* Never unloaded: what its C++ runtime allocates once would be lost each time. */
    nvrtc->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (nvrtc->library == NULL)
        kkt_text_printf(looked, "; %s does not load", path);
    else if (!resolve(nvrtc))
        kkt_text_printf(looked, "; %s lacks functions", path);
    else if (nvrtc->major < OLDEST_MAJOR)
        kkt_text_printf(looked, "; %s is %d.%d", path, nvrtc->major, nvrtc->minor);
    else
        good = true;
    free(path);
    return good;
}

static void preload_builtins(kkt_nvrtc *nvrtc, const char *folder) {
    for (size_t i = 0; i < sizeof BUILTINS / sizeof *BUILTINS && nvrtc->builtins == NULL; i++) {
        char *path = kkt_path_join(folder, BUILTINS[i]);
        if (kkt_file_exists(path))
            nvrtc->builtins = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        free(path);
    }
}

static bool try_folder(kkt_nvrtc *nvrtc, const char *folder, kkt_text *looked) {
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        char *path = kkt_path_join(folder, LIBRARIES[i]);
        bool there = kkt_file_exists(path);
        free(path);
        if (!there)
            continue;
        preload_builtins(nvrtc, folder);
        if (try_library(nvrtc, folder, LIBRARIES[i], looked))
            return true;
        kkt_nvrtc_close(nvrtc);
    }
    return false;
}

static bool try_root(kkt_nvrtc *nvrtc, const char *root, const char *what, kkt_text *looked) {
    if (root == NULL || *root == '\0')
        return false;
    kkt_text_printf(looked, "%s%s%s", looked->length > 0 ? "; " : "", what, root);
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        char *folder = kkt_path_join(root, FOLDERS[i]);
        bool found = try_folder(nvrtc, folder, looked);
        free(folder);
        if (found)
            return true;
    }
    return try_folder(nvrtc, root, looked);
}

kkt_status kkt_nvrtc_open(kkt_nvrtc *out, kkt_error *err) {
    *out = (kkt_nvrtc){0};
    kkt_text looked = {0};
    bool found = try_root(out, getenv("KKTTUNE_CUDA"), "KKTTUNE_CUDA=", &looked) ||
                 try_root(out, getenv("CUDA_HOME"), "CUDA_HOME=", &looked) ||
                 try_root(out, getenv("CUDA_PATH"), "CUDA_PATH=", &looked) ||
                 try_root(out, "/usr/local/cuda", "", &looked) ||
                 try_library(out, NULL, LIBRARIES[0], &looked);
    kkt_status status = KKT_OK;
    if (!found) {
        kkt_nvrtc_close(out);
        status = kkt_fail(err, KKT_ERR_ENVIRONMENT, 0,
                          "no NVRTC of CUDA %d.0 or later: set KKTTUNE_CUDA to the folder of a "
                          "toolkit or of the wheels (looked in: %s)",
                          OLDEST_MAJOR, kkt_text_get(&looked));
    }
    kkt_text_free(&looked);
    return status;
}
