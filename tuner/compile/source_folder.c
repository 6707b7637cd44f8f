#include "tuner/compile/source_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"

enum { FILE_BYTES = 1 << 20, FILES_MAX = 64 };

typedef struct reader {
    const char *folder;
    kkt_arena *arena;
    kkt_text *out;
    kkt_error *err;
    int count;
    const char *seen[FILES_MAX];
} reader;

static bool first_time(reader *r, const char *path) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->seen[i], path) == 0)
            return false;
    return true;
}

static kkt_status add_file(reader *r, const char *path);

/* One line with its line break: an include's file, or the line itself. A header's guard is void
 * where all of it is one text, and the compiler would warn of it. */
static kkt_status add_line(reader *r, const char *path, const char *line, size_t length,
                           int number) {
    static const char include[] = "#include \"", once[] = "#pragma once";
    if (strncmp(line, once, sizeof once - 1) == 0) {
        kkt_text_add(r->out, "\n");
        return KKT_OK;
    }
    if (strncmp(line, include, sizeof include - 1) != 0) {
        kkt_text_add_bytes(r->out, line, length);
        return KKT_OK;
    }
    const char *name = line + sizeof include - 1;
    const char *included = kkt_arena_printf(r->arena, "%.*s", (int)strcspn(name, "\"\n"), name);
    kkt_status status = first_time(r, included) ? add_file(r, included) : KKT_OK;
    kkt_text_printf(r->out, "\n#line %d \"%s\"\n", number + 1, path);
    return status;
}

static kkt_status add_file(reader *r, const char *path) {
    if (r->count == FILES_MAX)
        return kkt_fail(r->err, KKT_ERR_INPUT, 0, "'%s' includes more than %d files", r->seen[0],
                        FILES_MAX);
    if (path[0] == '/' || strstr(path, "..") != NULL)
        return kkt_fail(r->err, KKT_ERR_INPUT, 0,
                        "device source '%s' leads out of '%s': name it from that folder", path,
                        r->folder);
    r->seen[r->count++] = path;
    char *full = kkt_path_join(r->folder, path), *text = NULL;
    size_t length = 0;
    kkt_status status = kkt_file_read(full, FILE_BYTES, &text, &length, r->err);
    if (status == KKT_OK && strlen(text) != length)
        status = kkt_fail(r->err, KKT_ERR_INPUT, 0, "'%s' is no text: it holds a NUL", full);
    if (status == KKT_OK)
        kkt_text_printf(r->out, "#line 1 \"%s\"\n", path);
    int number = 1;
    for (const char *line = text; status == KKT_OK && *line != '\0'; number++) {
        size_t bytes = strcspn(line, "\n");
        bytes += line[bytes] == '\n';
        status = add_line(r, path, line, bytes, number);
        line += bytes;
    }
    free(text);
    free(full);
    return status;
}

kkt_status kkt_source_folder_read(const char *folder, const char *path, kkt_text *out,
                                  kkt_error *err) {
    reader r = {.folder = folder, .arena = kkt_arena_open(), .out = out, .err = err};
    kkt_status status = add_file(&r, path);
    kkt_arena_close(r.arena);
    return status;
}
