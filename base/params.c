#include "base/params.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void kkt_params_defaults(const kkt_param_table *table, kkt_values *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < table->count; i++)
        out->v[i] = table->params[i].fallback;
}

int kkt_params_find(const kkt_param_table *table, const char *name) {
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->params[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

int64_t kkt_params_get(const kkt_param_table *table, const kkt_values *values, const char *name) {
    int index = kkt_params_find(table, name);
    if (index < 0)
        abort();
    return values->v[index];
}

const char *kkt_param_value_text(const kkt_param *param, int64_t value, char buffer[24]) {
    for (size_t i = 0; param->names && i < param->count; i++) {
        if (param->values[i] == value)
            return param->names[i];
    }
    snprintf(buffer, 24, "%" PRId64, value);
    return buffer;
}

static bool parse_value(const kkt_param *param, const char *text, int64_t *out) {
    if (param->names) {
        for (size_t i = 0; i < param->count; i++) {
            if (strcmp(param->names[i], text) == 0) {
                *out = param->values[i];
                return true;
            }
        }
        return false;
    }
    int64_t value = 0;
    if (!kkt_parse_i64(text, INT64_MIN, INT64_MAX, &value))
        return false;
    bool listed = param->count == 0 && value >= param->low && value <= param->high;
    for (size_t i = 0; i < param->count; i++)
        listed = listed || param->values[i] == value;
    if (listed)
        *out = value;
    return listed;
}

static void add_allowed(const kkt_param *param, kkt_text *out) {
    char buffer[24];
    if (param->count == 0) {
        kkt_text_printf(out, "an integer from %" PRId64 " to %" PRId64, param->low, param->high);
        return;
    }
    for (size_t i = 0; i < param->count; i++)
        kkt_text_printf(out, "%s%s", i ? ", " : "",
                        kkt_param_value_text(param, param->values[i], buffer));
}

static kkt_status fail_key(const kkt_param_table *table, const char *key, kkt_error *err) {
    kkt_text list = {0};
    for (size_t i = 0; i < table->count; i++)
        kkt_text_printf(&list, "%s%s", i ? ", " : "", table->params[i].name);
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown %s '%.60s'; known: %s",
                                 table->what, key, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

#define FEW_KEYS 3

/* A number alone, of a table with few keys: "evals=5 or seconds=5" says more than their list. */
static kkt_status fail_number(const kkt_param_table *table, const char *number, kkt_error *err) {
    kkt_text list = {0};
    for (size_t i = 0; i < table->count; i++)
        kkt_text_printf(&list, "%s%s=%s", i ? " or " : "", table->params[i].name, number);
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "'%s' names no %s; write %s", number,
                                 table->what, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

static kkt_status fail_value(const kkt_param_table *table, const kkt_param *param,
                             const char *value, kkt_error *err) {
    kkt_text list = {0};
    add_allowed(param, &list);
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s '%s' cannot be '%.60s'; allowed: %s",
                                 table->what, param->name, value, kkt_text_get(&list));
    kkt_text_free(&list);
    return status;
}

/* `text` without the blanks at both its ends, which is cut in place. */
static char *trimmed(char *text) {
    static const char blanks[] = " \t\n";
    text += strspn(text, blanks);
    size_t length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

/* One "k=v", which is cut in two in place. */
static kkt_status parse_pair(const kkt_param_table *table, char *pair, kkt_values *values,
                             uint64_t *seen, kkt_error *err) {
    char *equals = strchr(pair, '=');
    if (equals)
        *equals = '\0';
    pair = trimmed(pair);
    int64_t number;
    int index = kkt_params_find(table, pair);
    if (!equals && table->count > 0 && table->count <= FEW_KEYS &&
        kkt_parse_i64(pair, INT64_MIN, INT64_MAX, &number))
        return fail_number(table, pair, err);
    if (index < 0 && (equals || *pair))
        return fail_key(table, pair, err);
    if (!equals)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s '%.60s' has no value; write name=value,...",
                        table->what, pair);
    uint64_t bit = (uint64_t)1 << index;
    if (*seen & bit)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s '%s' is given twice; give it once", table->what,
                        pair);
    *seen |= bit;
    const kkt_param *param = &table->params[index];
    const char *value = trimmed(equals + 1);
    if (!parse_value(param, value, &values->v[index]))
        return fail_value(table, param, value, err);
    return KKT_OK;
}

kkt_status kkt_params_parse(const kkt_param_table *table, const char *text, kkt_values *values,
                            uint64_t *given, kkt_error *err) {
    kkt_values parsed = *values;
    uint64_t seen = 0;
    kkt_status status = KKT_OK;
    char *copy = kkt_memory_strdup(text);
    for (char *pair = *trimmed(copy) ? copy : NULL; pair && status == KKT_OK;) {
        char *comma = strchr(pair, ',');
        if (comma)
            *comma = '\0';
        status = parse_pair(table, pair, &parsed, &seen, err);
        pair = comma ? comma + 1 : NULL;
    }
    free(copy);
    if (status != KKT_OK)
        return status;
    *values = parsed;
    if (given)
        *given = seen;
    return KKT_OK;
}

/* Keys sorted bytewise; `all` false: only those whose value is not the fallback. */
static size_t format_values(const kkt_param_table *table, const kkt_values *values, bool all,
                            kkt_text *out) {
    size_t order[KKT_PARAMS_MAX];
    for (size_t i = 0; i < table->count; i++) {
        size_t at = i;
        for (; at > 0 && strcmp(table->params[order[at - 1]].name, table->params[i].name) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    size_t written = 0;
    for (size_t i = 0; i < table->count; i++) {
        const kkt_param *param = &table->params[order[i]];
        int64_t value = values->v[order[i]];
        char buffer[24];
        if (all || value != param->fallback)
            kkt_text_printf(out, "%s%s=%s", written++ ? "," : "", param->name,
                            kkt_param_value_text(param, value, buffer));
    }
    return written;
}

void kkt_params_format(const kkt_param_table *table, const kkt_values *values, kkt_text *out) {
    format_values(table, values, true, out);
}

const char *kkt_params_text(kkt_arena *arena, const kkt_param_table *table,
                            const kkt_values *values) {
    kkt_text text = {0};
    kkt_params_format(table, values, &text);
    const char *copy = kkt_arena_strdup(arena, kkt_text_get(&text));
    kkt_text_free(&text);
    return copy;
}

void kkt_params_format_short(const kkt_param_table *table, const kkt_values *values,
                             kkt_text *out) {
    if (format_values(table, values, false, out) == 0)
        kkt_text_add(out, "default");
}

bool kkt_values_equal(const kkt_param_table *table, const kkt_values *a, const kkt_values *b) {
    return memcmp(a->v, b->v, table->count * sizeof a->v[0]) == 0;
}
