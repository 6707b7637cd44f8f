#include "cli/backend_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/data_folder.h"
#include "db/recording.h"

void kkt_backend_choice_say(const kkt_backend_choice *c) {
    fprintf(c->json ? stderr : stdout, "%s\n", c->line);
    fflush(stdout);
}

static kkt_status open_backend(kkt_backend_choice *c, const char *name, const char *fake,
                               kkt_error *err) {
    int64_t gpu = -1;
    const char *gpu_text = kkt_args_get(c->args, "--gpu");
    if (gpu_text && !kkt_parse_i64(gpu_text, 0, 1023, &gpu)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "--gpu '%s' is not an index from 0 up", gpu_text);
    }
    kkt_backend_options options = {
        .gpu = (int)gpu, .fake = fake, .cache = kkt_args_get(c->args, "--cache")};
    c->type = kkt_backend_find(name);
    kkt_status status = c->type->open(&options, &c->backend, err);
    if (status != KKT_OK) {
        c->type = NULL;
        c->backend = NULL;
    }
    return status;
}

static void close_backend(kkt_backend_choice *c) {
    if (c->backend) {
        c->type->close(c->backend);
    }
    c->backend = NULL;
    c->type = NULL;
}

void kkt_backend_choice_drop(kkt_backend_choice *c) {
    close_backend(c);
    free(c->reference_folder);
    c->reference_folder = NULL;
}

/* A GPU serves only its own architecture and, where one is named, its own device row. */
static kkt_status match_gpu(kkt_backend_choice *c, bool device_given, char *why, size_t size) {
    const kkt_backend_info *info = c->type->info(c->backend);
    const kkt_arch *arch = c->arch;
    const kkt_device *row = kkt_device_by_full_name(info->gpu);
    if (info->major != arch->major || info->minor != arch->minor) {
        snprintf(why, size, "%s is of compute capability %d.%d, not %d.%d", info->gpu, info->major,
                 info->minor, arch->major, arch->minor);
        return KKT_ERR_MISSING;
    }
    if (device_given && (!row || row != c->device)) {
        snprintf(why, size, "%s is not %s", info->gpu, c->device->full_name);
        return KKT_ERR_MISSING;
    }
    if (row) {
        c->device = row;
    } else {
        fprintf(stderr,
                "kkttune: %s is in no row of the device table: %s stands in for it in the model\n",
                info->gpu, c->device->full_name);
    }
    if (info->note[0]) {
        fprintf(stderr, "kkttune: %s\n", info->note);
    }
    return KKT_OK;
}

static void note_replay(kkt_backend_choice *c, const char *why) {
    char *recorded =
        c->reference_folder ? kkt_recording_device(c->reference_folder, c->arch->name) : NULL;
    const kkt_device *device = NULL;
    bool has = recorded && kkt_device_parse(recorded, c->arch, &device, NULL) == KKT_OK &&
               device == c->device;
    snprintf(c->line, sizeof c->line,
             has ? "replaying the measurements recorded on %s; no GPU is used: %s"
                 : "predicting and compiling only: no measurements are recorded for %s, and no "
                   "GPU is used: %s",
             c->device->full_name, why);
    free(recorded);
}

kkt_status kkt_backend_choice_check(const kkt_args *args, kkt_error *err) {
    const char *asked = kkt_args_get(args, "--backend");
    bool known = !asked || strcmp(asked, "cuda") == 0 || strcmp(asked, "replay") == 0 ||
                 strcmp(asked, "fake") == 0 || strncmp(asked, "fake:", 5) == 0;
    return known ? KKT_OK
                 : kkt_fail(err, KKT_ERR_INPUT, 0,
                            "unknown backend '%s'; known: cuda, replay, fake[:seed=N,fault=KIND]",
                            asked);
}

/* A GPU was asked for, and there is none to be had. */
static kkt_status refuse_gpu(const kkt_backend_choice *c, kkt_status status, const char *why,
                             kkt_error *err) {
    if (status == KKT_ERR_INPUT)
        return kkt_fail(err, status, 0, "%s", why);
    return kkt_fail(err, KKT_ERR_ENVIRONMENT, 0, "%s; to go on without a GPU leave %s out", why,
                    kkt_args_has(c->args, "--backend") ? "--backend" : "--gpu");
}

kkt_status kkt_backend_choice_make(kkt_backend_choice *c, kkt_error *err) {
    const char *asked = kkt_args_get(c->args, "--backend");
    kkt_status found = kkt_reference_folder(&c->reference_folder, err);
    if (found != KKT_OK) {
        return found;
    }
    bool device_given = kkt_args_has(c->args, "--device");
    char why[500] = "replay was asked for";
    if (asked && strncmp(asked, "fake", 4) == 0 && (asked[4] == '\0' || asked[4] == ':')) {
        kkt_status status = open_backend(c, "fake", asked[4] ? asked + 5 : "", err);
        if (status == KKT_OK) {
            snprintf(c->line, sizeof c->line,
                     "fake backend: times come from the model plus seeded noise");
        }
        return status;
    }
    if (!asked || strcmp(asked, "cuda") == 0) {
        kkt_error gpu_error;
        kkt_status status = open_backend(c, "cuda", NULL, &gpu_error);
        if (status == KKT_OK &&
            match_gpu(c, device_given, gpu_error.message, sizeof gpu_error.message) == KKT_OK) {
            snprintf(c->line, sizeof c->line, "measuring on %s (driver %s)",
                     c->type->info(c->backend)->gpu, c->type->info(c->backend)->driver);
            return KKT_OK;
        }
        close_backend(c);
        if (asked || kkt_args_has(c->args, "--gpu") || status == KKT_ERR_INPUT) {
            return refuse_gpu(c, status, gpu_error.message, err);
        }
        snprintf(why, sizeof why, "%s", gpu_error.message);
    }
    c->replay = true;
    note_replay(c, why);
    return KKT_OK;
}

kkt_status kkt_backend_choice_try_recordings(const kkt_backend_choice *c, const char *db_path,
                                             kkt_error *err) {
    if (!c->replay || !c->reference_folder || kkt_file_exists(db_path)) {
        return KKT_OK;
    }
    kkt_db *db = NULL;
    int64_t rows = 0;
    kkt_status status = kkt_db_open(":memory:", KKT_DB_WRITE, &db, err);
    if (status == KKT_OK) {
        status = kkt_recording_import_folder(db, c->reference_folder, c->arch->name, &rows, err);
    }
    kkt_db_close(db);
    return status;
}
