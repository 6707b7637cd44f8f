/* All recordings of a folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "db/recording.h"

static int is_recording(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return length > 6 && strcmp(entry->d_name + length - 6, ".jsonl") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name); /* not the locale's order */
}

/* Reads the first line alone. NULL where it is no header. */
static kkt_json *peek_header(const char *path) {
    char line[4096];
    FILE *file = fopen(path, "re");
    kkt_json *header = NULL;
    if (file && fgets(line, sizeof line, file))
        kkt_json_parse(line, strlen(line), path, &header, NULL);
    if (file)
        fclose(file);
    return header;
}

static bool header_matches(const kkt_json *header, const char *arch) {
    const char *named = header ? kkt_json_string(header, "arch") : NULL;
    return !arch || (named && strcmp(named, arch) == 0);
}

/* A file whose header cannot be read is imported as well, for its error. */
static kkt_status import_if_matching(kkt_db *db, const char *path, const char *arch, int64_t *rows,
                                     kkt_error *err) {
    kkt_json *header = peek_header(path);
    bool wanted = !header || header_matches(header, arch);
    kkt_json_close(header);
    *rows = 0;
    kkt_status status = wanted ? kkt_recording_import(db, path, rows, err) : KKT_OK;
    /* SQLite's error is the database's, which has a remedy of its own. */
    if (status == KKT_ERR_INPUT && err && err->native == 0)
        return kkt_fail(err, status, err->native,
                        "%s; put the file back as it was, or take it out of its folder",
                        err->message);
    return status;
}

kkt_status kkt_recording_import_folder(kkt_db *db, const char *folder, const char *arch,
                                       int64_t *rows, kkt_error *err) {
    struct dirent **entries = NULL;
    *rows = 0;
    int count = scandir(folder, &entries, is_recording, by_name);
    if (count < 0)
        return errno == ENOENT ? KKT_OK
                               : kkt_fail_errno(err, KKT_ERR_ENVIRONMENT, errno,
                                                "cannot read folder '%s'", folder);
    kkt_status status = KKT_OK;
    for (int i = 0; i < count; i++) {
        if (status == KKT_OK) {
            int64_t imported = 0;
            char *path = kkt_path_join(folder, entries[i]->d_name);
            status = import_if_matching(db, path, arch, &imported, err);
            *rows += imported;
            free(path);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

char *kkt_recording_device(const char *folder, const char *arch) {
    struct dirent **entries = NULL;
    char *device = NULL;
    int count = scandir(folder, &entries, is_recording, by_name);
    for (int i = 0; i < count; i++) {
        if (!device) {
            char *path = kkt_path_join(folder, entries[i]->d_name);
            kkt_json *header = peek_header(path);
            const char *named = header ? kkt_json_string(header, "device") : NULL;
            if (named && header_matches(header, arch))
                device = strdup(named);
            kkt_json_close(header);
            free(path);
        }
        free(entries[i]);
    }
    free(entries);
    return device;
}
