#include "db/store_sqlite.h"

/* One condition finds the rows that mean nothing and takes them out. Findings are made by printf(),
 * which gives a text where || gives NULL: the values at fault may be missing altogether. */
#define RULE(table, broken, finding)                                                               \
    { "SELECT " finding " FROM " table " WHERE " broken, "DELETE FROM " table " WHERE " broken }
/* Rows that refer to none; the check of foreign keys finds them. */
#define ORPHANS(table, broken)                                                                     \
    { NULL, "DELETE FROM " table " WHERE " broken }

#define INTERVAL "time_us < time_low_us OR time_us > time_high_us"
#define NOT_FINITE(column) "abs(" column ") > 1.7976931348623157e308"
#define TOO_MANY "outliers > sample_count OR throttled > sample_count"
#define TEXT(tokens) #tokens
#define TEXT_OF(macro) TEXT(macro)
#define MEMBERS(columns)                                                                           \
    "(SELECT " columns " FROM pipeline_members m WHERE m.pipeline_run_id = pipeline_runs.id)"

/* What is referred to stands before what refers to it. */
const kkt_db_rule kkt_db_rules[] = {
    RULE("problems", "canonical(text) IS NOT 1",
         "printf('problem %d is not canonical: %s', id, text)"),
    RULE("configurations", "canonical(text) IS NOT 1",
         "printf('configuration %d is not canonical: %s', id, text)"),
    ORPHANS("candidates", "problem_id NOT IN (SELECT id FROM problems) OR configuration_id NOT IN"
                          " (SELECT id FROM configurations)"),
    RULE("candidates",
         "EXISTS (SELECT 1 FROM problems p, configurations g WHERE p.id = problem_id AND"
         " g.id = configuration_id AND p.kernel IS NOT g.kernel)",
         "printf('candidate %d joins a problem of %s and a configuration of %s', id,"
         " (SELECT kernel FROM problems p WHERE p.id = problem_id),"
         " (SELECT kernel FROM configurations g WHERE g.id = configuration_id))"),
    {"SELECT printf('candidate %d has unknown outcome %s', id, verdict) FROM candidates"
     " WHERE verdict IS NOT NULL AND NOT outcome(verdict)",
     "UPDATE candidates SET verdict = NULL, verdict_reason = NULL"
     " WHERE verdict IS NOT NULL AND NOT outcome(verdict)"},
    ORPHANS("predictions", "candidate_id NOT IN (SELECT id FROM candidates)"),
    ORPHANS("builds", "candidate_id NOT IN (SELECT id FROM candidates)"),
    RULE("builds", "outcome(outcome) IS NOT 1",
         "printf('build %d has unknown outcome %s', id, outcome)"),
    ORPHANS("runs", "build_id NOT IN (SELECT id FROM builds)"),
    RULE("runs", "outcome(outcome) IS NOT 1",
         "printf('run %d has unknown outcome %s', id, outcome)"),
    RULE("runs", INTERVAL, "printf('run %d has a median outside its interval', id)"),
    RULE("runs", NOT_FINITE("time_us"), "printf('run %d has a time that is no finite number', id)"),
    RULE("runs", TOO_MANY,
         "printf('run %d has more outliers or throttled samples than samples', id)"),
    RULE("runs", "energy_mj <= 0", "printf('run %d has an energy that is not above 0', id)"),
    ORPHANS("samples", "run_id NOT IN (SELECT id FROM runs)"),
    RULE("samples",
         "EXISTS (SELECT 1 FROM runs r WHERE r.id = run_id AND"
         " samples(times_us, r.sample_count) IS NOT 1)",
         "printf('samples of run %d are not %d numbers', run_id,"
         " (SELECT sample_count FROM runs r WHERE r.id = run_id))"),
    ORPHANS("counters", "run_id NOT IN (SELECT id FROM runs)"),
    RULE("counters", NOT_FINITE("value"),
         "printf('counter %s of run %d is no finite number', name, run_id)"),
    RULE("pipeline_runs", "canonical(problem) IS NOT 1",
         "printf('pipeline run %d has the problem ''%s'', which is not canonical', id, problem)"),
    RULE("pipeline_runs", "outcome(outcome) IS NOT 1",
         "printf('pipeline run %d has unknown outcome %s', id, outcome)"),
    RULE("pipeline_runs", INTERVAL,
         "printf('pipeline run %d has a median outside its interval', id)"),
    RULE("pipeline_runs", NOT_FINITE("time_us"),
         "printf('pipeline run %d has a time that is no finite number', id)"),
    RULE("pipeline_runs", TOO_MANY,
         "printf('pipeline run %d has more outliers or throttled samples than samples', id)"),
    RULE("pipeline_runs", "energy_mj <= 0",
         "printf('pipeline run %d has an energy that is not above 0', id)"),
    RULE("pipeline_runs", "times_us IS NOT NULL AND samples(times_us, sample_count) IS NOT 1",
         "printf('samples of pipeline run %d are not %d numbers', id, sample_count)"),
    /* One of them gone, the rest would pass for another pipeline. */
    ORPHANS("pipeline_runs", "id IN (SELECT pipeline_run_id FROM pipeline_members WHERE build_id"
                             " NOT IN (SELECT id FROM builds))"),
    RULE("pipeline_runs", MEMBERS("count(*)") " IS NOT " MEMBERS("max(place) + 1"),
         "printf('pipeline run %d has members missing', id)"),
    RULE("pipeline_runs", MEMBERS("count(*)") " > " TEXT_OF(KKT_PIPELINE_MEMBERS_MAX),
         "printf('pipeline run %d has too many members', id)"),
    RULE("pipeline_runs", "chunk < 1",
         "printf('pipeline run %d has the chunk size %d', id, chunk)"),
    RULE("pipeline_runs",
         "EXISTS (SELECT 1 FROM pipeline_members m JOIN builds b ON b.id = m.build_id"
         " JOIN candidates c ON c.id = b.candidate_id WHERE m.pipeline_run_id = pipeline_runs.id"
         " AND (c.arch IS NOT pipeline_runs.arch OR c.device IS NOT pipeline_runs.device))",
         "printf('a member of pipeline run %d is not for %s, %s', id, arch, device)"),
    ORPHANS("pipeline_members", "pipeline_run_id NOT IN (SELECT id FROM pipeline_runs)"),
    {NULL, NULL},
};
