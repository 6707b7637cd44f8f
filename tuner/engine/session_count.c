/* Hardware counters: read after the timing, by a process of its own, and stored with the run. */
#include <math.h>
#include <string.h>

#include "tuner/engine/session_internal.h"

/* How notes on runs begin that were not counted: for want of counters, which may be there next
 * time, or for the candidate's own fault, which it keeps. */
#define UNAVAILABLE "unavailable: "
#define FAILED "failed: "

static const char *const scope_names[KKT_COUNTERS_SCOPE_COUNT] = {
    [KKT_COUNTERS_FINALISTS] = "finalists",
    [KKT_COUNTERS_ALL] = "all",
    [KKT_COUNTERS_NONE] = "none",
};

const char *kkt_counters_scope_name(kkt_counters_scope scope) {
    return scope_names[scope];
}

kkt_status kkt_counters_scope_parse(const char *name, kkt_counters_scope *out, kkt_error *err) {
    for (int i = 0; i < KKT_COUNTERS_SCOPE_COUNT; i++) {
        if (strcmp(name, scope_names[i]) == 0) {
            *out = (kkt_counters_scope)i;
            return KKT_OK;
        }
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "'%s' is not what counters are read for; known: finalists, all, none", name);
}

bool session_count_settled(const char *note) {
    return note != NULL && strncmp(note, UNAVAILABLE, strlen(UNAVAILABLE)) != 0;
}

static bool timed(kkt_outcome outcome) {
    return outcome == KKT_OUTCOME_OK || outcome == KKT_OUTCOME_NOISY;
}

/* The run that counters would belong to; 0: there is none, or it has them. */
static int64_t uncounted_run(const trial *slot) {
    if (slot->run_id != 0) {
        return timed(slot->run_outcome) && !slot->counted ? slot->run_id : 0;
    }
    return timed(slot->known.outcome) && !slot->known.counted && !slot->counted ? slot->known.run_id
                                                                                : 0;
}

/* Once one candidate was told that there are no counters, the others are not asked for any. */
static kkt_status ask(session *s, trial *slot, kkt_counts *out, kkt_error *err) {
    if (s->out->counters_note[0] != '\0') {
        kkt_counts_set(out, KKT_COUNT_UNAVAILABLE, "%s", s->out->counters_note);
        return KKT_OK;
    }
    kkt_status status = session_ready_slot(s, slot, err);
    if (status != KKT_OK) {
        return status;
    }
    if (session_needs_code(s, slot->task->variant) && slot->build.cubin == NULL) {
        kkt_counts_set(out, KKT_COUNT_FAILED, "it could not be compiled again");
        return KKT_OK;
    }
    kkt_measure_request request = session_request(s, slot);
    status = s->backend_type->count(s->backend, &request, out, err);
    if (status == KKT_OK && out->state == KKT_COUNT_UNAVAILABLE) {
        snprintf(s->out->counters_note, sizeof s->out->counters_note, "%s", out->note);
    }
    return status;
}

static kkt_status store(session *s, int64_t run_id, const kkt_counts *counts, kkt_error *err) {
    kkt_counter_record rows[KKT_COUNTER_COUNT];
    size_t count = 0;
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        if (isfinite(counts->values[i])) {
            rows[count++] = (kkt_counter_record){
                .name = kkt_counters()[i].name,
                .value = counts->values[i],
                .unit = kkt_counters()[i].unit,
                .chip = counts->chip,
            };
        }
    }
    double bytes = kkt_counts_hbm_bytes(counts);
    char note[400];
    const char *begin = counts->state == KKT_COUNT_UNAVAILABLE ? UNAVAILABLE
                        : counts->state == KKT_COUNT_FAILED    ? FAILED
                                                               : "";
    const char *words = counts->note;
    if (counts->state == KKT_COUNT_DONE && words[0] == '\0' && !isfinite(bytes)) {
        words = "this chip does not count the bytes of its memory";
    }
    snprintf(note, sizeof note, "%s%s", begin, words);
    return kkt_db_put_counters(s->db, run_id, rows, count, bytes, note[0] != '\0' ? note : NULL,
                               err);
}

kkt_status session_count(session *s, trial *slot, kkt_error *err) {
    int64_t run_id = uncounted_run(slot);
    if (run_id == 0 || s->options->counters == KKT_COUNTERS_NONE ||
        s->backend_type->count == NULL || session_interrupted()) {
        return KKT_OK;
    }
    kkt_counts counts;
    kkt_status status = ask(s, slot, &counts, err);
    if (status != KKT_OK || session_interrupted()) {
        return status; /* an interrupted one is counted when the run is resumed */
    }
    status = store(s, run_id, &counts, err);
    slot->counted = true;
    s->out->counts.counted += counts.state == KKT_COUNT_DONE;
    return status;
}
