/* `kkttune compare A.db B.db`: did anything get slower? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/command.h"
#include "kernels/kernel.h"
#include "reports/compare.h"

static const double LIMIT_PERCENT = 3.0;
static const double MOST_PERCENT = 1e6;

static const kkt_option options[] = {
    {"--fail-over", "PERCENT", "how much slower fails, beyond the intervals; default 3%"},
    {"--kernel", "KERNEL", "one kernel; default: all"},
    {"--junit", "FILE", "the same as a JUnit report"},
    KKT_OPTION_JSON,
};

/* "3%" or "3". */
static kkt_status parse_limit(const char *text, double *out, kkt_error *err) {
    char number[32];
    size_t length = text ? strlen(text) : 0;
    *out = LIMIT_PERCENT;
    if (!text) {
        return KKT_OK;
    }
    if (length > 0 && text[length - 1] == '%') {
        length--;
    }
    if (length > 0 && length < sizeof number) {
        memcpy(number, text, length);
        number[length] = '\0';
        if (kkt_parse_double(number, out) && *out >= 0 && *out <= MOST_PERCENT) {
            return KKT_OK;
        }
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0,
                    "--fail-over '%.40s' is no percentage from 0 up; write --fail-over 3%%", text);
}

/* Texts of a database are anyone's. */
static const char *printable(kkt_arena *arena, const char *text) {
    char *copy = kkt_arena_strdup(arena, text);
    for (char *at = copy; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) {
            *at = '?';
        }
    }
    return copy;
}

/* Without what is the default anyway, where the kernel is known. */
static const char *short_problem(kkt_arena *arena, const kkt_compare_row *row) {
    const kkt_kernel *kernel = NULL;
    kkt_values values;
    if (kkt_kernel_parse(row->kernel, &kernel, NULL) != KKT_OK) {
        return printable(arena, row->problem);
    }
    if (kkt_kernel_problem_parse(kernel, row->problem, &values, NULL) != KKT_OK) {
        return printable(arena, row->problem);
    }
    kkt_text text = {0};
    kkt_params_format_short(&kernel->problem, &values, &text);
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&text));
    kkt_text_free(&text);
    return copy;
}

static void cell_time(kkt_table *table, const kkt_compare_side *side) {
    if (side->timed) {
        kkt_table_cell(table, "%.2f", side->time_us);
    } else {
        kkt_table_cell(table, "-");
    }
}

static void print_text(const kkt_compared *comparison, kkt_arena *arena) {
    static const char *const headings[] = {"kernel", "device", "problem", "C",     "A us",
                                           "B us",   "B / A",  "verdict", "winner"};
    kkt_table *table = kkt_table_open(sizeof headings / sizeof *headings, headings);
    for (size_t i = 0; i < comparison->row_count; i++) {
        const kkt_compare_row *row = &comparison->rows[i];
        bool both = row->a.timed && row->b.timed;
        bool kept = both && strcmp(row->a.config, row->b.config) == 0 &&
                    strcmp(row->a.style, row->b.style) == 0;
        kkt_table_cell(table, "%s", printable(arena, row->kernel));
        kkt_table_cell(table, "%s", printable(arena, row->device));
        kkt_table_cell(table, "%s", short_problem(arena, row));
        kkt_table_cell(table, "%lld", (long long)row->chunk);
        cell_time(table, &row->a);
        cell_time(table, &row->b);
        if (both) {
            kkt_table_cell(table, "%.3f", row->ratio);
        } else {
            kkt_table_cell(table, "-");
        }
        kkt_table_cell(table, "%s", kkt_compare_verdict_name(row->verdict));
        kkt_table_cell(table, "%s", !both ? "-" : kept ? "the same" : "another");
    }
    kkt_table_print(table, stdout);
    kkt_table_close(table);
    const char *separator = "";
    for (int i = 0; i < KKT_COMPARE_COUNT; i++) {
        if (comparison->counts[i] > 0) {
            printf("%s%zu %s", separator, comparison->counts[i],
                   kkt_compare_verdict_name((kkt_compare_verdict)i));
            separator = ", ";
        }
    }
    printf("; the limit is %g %%\n", comparison->limit_percent);
    kkt_text caution = {0};
    kkt_compare_caution(comparison, &caution);
    fputs(kkt_text_get(&caution), stdout);
    kkt_text_free(&caution);
}

static kkt_status write_junit(const kkt_args *args, const kkt_compared *comparison,
                              kkt_error *err) {
    const char *path = kkt_args_get(args, "--junit");
    if (!path) {
        return KKT_OK;
    }
    kkt_text text = {0};
    kkt_compare_junit(comparison, &text);
    kkt_status status = kkt_file_write(path, text.data, text.length, err);
    kkt_text_free(&text);
    return status;
}

static kkt_status report(const kkt_args *args, const kkt_compared *comparison, kkt_arena *arena,
                         kkt_error *err) {
    const char *a = kkt_args_operand(args, 0);
    const char *b = kkt_args_operand(args, 1);
    if (comparison->row_count == 0) {
        return kkt_fail(err, KKT_ERR_MISSING, 0,
                        "neither '%s' nor '%s' holds a measured time, so there is nothing to "
                        "compare",
                        a, b);
    }
    kkt_status status = write_junit(args, comparison, err);
    if (status != KKT_OK) {
        return status;
    }
    if (kkt_args_has(args, "--json")) {
        kkt_json *root = kkt_json_object();
        kkt_compare_json(comparison, root);
        kkt_print_json(root);
    } else {
        print_text(comparison, arena);
    }
    size_t failures = kkt_compare_failures(comparison);
    return failures == 0
               ? KKT_OK
               : kkt_fail(err, KKT_ERR_MISSING, 0,
                          "%zu of %zu results of '%s' regressed beyond %g %% in '%s'", failures,
                          comparison->row_count, a, comparison->limit_percent, b);
}

static kkt_status open_both(const kkt_args *args, kkt_db *out[2], kkt_error *err) {
    for (size_t i = 0; i < 2; i++) {
        const char *path = kkt_args_operand(args, i);
        if (!kkt_file_exists(path)) {
            return kkt_fail(err, KKT_ERR_INPUT, 0, "there is no database '%s'", path);
        }
        kkt_status status = kkt_db_open(path, KKT_DB_READ, &out[i], err);
        if (status != KKT_OK) {
            return status;
        }
    }
    return KKT_OK;
}

static kkt_status run(const kkt_args *args, kkt_error *err) {
    kkt_db *db[2] = {NULL, NULL};
    kkt_compared comparison;
    const kkt_kernel *kernel = NULL;
    double limit = LIMIT_PERCENT;
    kkt_status status = parse_limit(kkt_args_get(args, "--fail-over"), &limit, err);
    if (status == KKT_OK && kkt_args_has(args, "--kernel")) {
        status = kkt_kernel_parse(kkt_args_get(args, "--kernel"), &kernel, err);
    }
    if (status == KKT_OK) {
        status = open_both(args, db, err);
    }
    kkt_arena *arena = kkt_arena_open();
    if (status == KKT_OK) {
        status =
            kkt_compare(db[0], db[1], kernel ? kernel->name : NULL, limit, arena, &comparison, err);
    }
    kkt_db_close(db[0]);
    kkt_db_close(db[1]);
    if (status == KKT_OK) {
        status = report(args, &comparison, arena, err);
    }
    kkt_arena_close(arena);
    return status;
}

extern const kkt_command kkt_cmd_compare;
const kkt_command kkt_cmd_compare = {
    .name = "compare",
    .operands = "A.db B.db",
    .summary = "compare the best times of two databases; fails where B regressed",
    .details =
        "For each kernel, problem and chunk size: the best of A and of B, whatever source it came\n"
        "from. A time regressed if its interval lies above A's and its median exceeds A's by more\n"
        "than --fail-over; what A could and B tried in vain failed. Either ends with exit code 1.\n"
        "Made-up times of the fake backend are left out where a database has a GPU's.\n"
        "`kkttune --compare A.db B.db` is the same.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
};
