/* A mark in the database that a default run without a GPU has nothing left to do: the same program,
 * kernels, problems and compiler found and compiled all it meant to. Its repetition then does not
 * walk through the space again, which is most of its time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "tuner/engine/session_internal.h"

enum { PROGRAM_LIMIT = 256 << 20 };

static bool applies(const session *s) {
    const kkt_session_options *o = s->options;
    return !s->backend && o->budget_evals == 0 && !(o->budget_seconds > 0) && !o->exhaustive &&
           !o->retry;
}

static void add_text(kkt_sha256 *hash, const char *text) {
    kkt_sha256_add(hash, text ? text : "", strlen(text ? text : "") + 1);
}

/* Everything the walk depends on; the program's own bytes stand for model, constraints and device
 * sources. False where they cannot be read. */
static bool key_of(const session *s, char out[65]) {
    char *program = NULL;
    size_t length = 0;
    if (kkt_file_read("/proc/self/exe", PROGRAM_LIMIT, &program, &length, NULL) != KKT_OK) {
        return false;
    }
    kkt_sha256 *hash = kkt_sha256_open();
    kkt_sha256_add(hash, program, length);
    free(program);
    add_text(hash, kkt_compile_pool_version(s->pool));
    add_text(hash, s->options->arch->name);
    add_text(hash, s->options->device->name);
    add_text(hash, s->options->search->name);
    add_text(hash, s->options->fixed);
    kkt_sha256_add(hash, &s->options->seed, sizeof s->options->seed);
    for (size_t i = 0; i < s->task_count; i++) {
        add_text(hash, s->tasks[i].kernel->name);
        add_text(hash, s->tasks[i].problem_text);
        add_text(hash, s->tasks[i].fixed);
    }
    kkt_sha256_close(hash, out);
    return true;
}

kkt_status session_mark_load(session *s, kkt_error *err) {
    char key[65];
    char value[64];
    if (!applies(s) || !key_of(s, key)) {
        return KKT_OK;
    }
    kkt_status status = kkt_db_get_mark(s->db, key, value, sizeof value, err);
    s->nothing_left =
        status == KKT_OK && sscanf(value, "%" SCNd64 " %" SCNd64, &s->out->counts.enumerated,
                                   &s->out->counts.rejected) == 2;
    return status;
}

kkt_status session_mark_store(session *s, kkt_error *err) {
    char key[65];
    char value[64];
    if (!applies(s) || session_interrupted() || !key_of(s, key)) {
        return KKT_OK;
    }
    snprintf(value, sizeof value, "%" PRId64 " %" PRId64, s->out->counts.enumerated,
             s->out->counts.rejected);
    return kkt_db_put_mark(s->db, key, value, err);
}
