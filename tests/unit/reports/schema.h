/* JSON Schema, the subset that docs/schemas uses. A keyword that is not known here fails the test,
 * so that no part of a schema is silently unchecked. */
#ifndef KKT_TESTS_SCHEMA_H
#define KKT_TESTS_SCHEMA_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

typedef struct schema_check {
    const kkt_json *root; /* of the schema */
    char message[512];    /* of the first violation; "" while there is none */
} schema_check;

static inline bool schema_fail(schema_check *check, const char *at, const char *what) {
    if (check->message[0] == '\0')
        snprintf(check->message, sizeof check->message, "%s: %s", at, what);
    return false;
}

static inline bool schema_has_type(const kkt_json *value, const char *type) {
    int64_t integer;
    double real;
    bool is_object = kkt_json_is_object(value), is_array = kkt_json_is_array(value);
    bool is_string = kkt_json_as_string(value) != NULL, is_real = kkt_json_as_real(value, &real);
    if (strcmp(type, "object") == 0)
        return is_object;
    if (strcmp(type, "array") == 0)
        return is_array;
    if (strcmp(type, "string") == 0)
        return is_string;
    if (strcmp(type, "integer") == 0)
        return kkt_json_as_int(value, &integer);
    if (strcmp(type, "number") == 0)
        return is_real;
    if (strcmp(type, "boolean") == 0)
        return !is_object && !is_array && !is_string && !is_real;
    return false;
}

static inline bool schema_equal(const kkt_json *a, const kkt_json *b) {
    char *left = kkt_json_print(a, false), *right = kkt_json_print(b, false);
    bool equal = strcmp(left, right) == 0;
    free(left);
    free(right);
    return equal;
}

static inline const kkt_json *schema_resolve(schema_check *check, const char *reference) {
    static const char prefix[] = "#/$defs/";
    if (strncmp(reference, prefix, sizeof prefix - 1) != 0)
        return NULL;
    return kkt_json_get(kkt_json_get(check->root, "$defs"), reference + sizeof prefix - 1);
}

static inline bool schema_validate(schema_check *check, const kkt_json *schema,
                                   const kkt_json *value, const char *at);

static inline bool schema_members(schema_check *check, const kkt_json *schema,
                                  const kkt_json *value, const char *at) {
    const kkt_json *properties = kkt_json_get(schema, "properties");
    const kkt_json *rest = kkt_json_get(schema, "additionalProperties");
    const kkt_json *required = kkt_json_get(schema, "required");
    char path[256];
    for (const kkt_json *name = required == NULL ? NULL : kkt_json_first(required); name != NULL;
         name = kkt_json_next(name)) {
        snprintf(path, sizeof path, "%.200s misses '%.40s'", at, kkt_json_as_string(name));
        if (kkt_json_get(value, kkt_json_as_string(name)) == NULL)
            return schema_fail(check, path, "required");
    }
    for (const kkt_json *member = kkt_json_first(value); member != NULL;
         member = kkt_json_next(member)) {
        const kkt_json *own =
            properties == NULL ? NULL : kkt_json_get(properties, kkt_json_key(member));
        snprintf(path, sizeof path, "%.200s.%.50s", at, kkt_json_key(member));
        if (own == NULL)
            own = rest;
        if (own != NULL && !schema_validate(check, own, member, path))
            return false;
    }
    return true;
}

/* One keyword of a schema against a value. */
static inline bool schema_keyword(schema_check *check, const kkt_json *schema,
                                  const kkt_json *keyword, const kkt_json *value, const char *at) {
    static const char *const silent[] = {
        "$schema",     "$id",      "$defs",      "title",
        "description", "required", "properties", "additionalProperties"};
    const char *name = kkt_json_key(keyword), *text = kkt_json_as_string(value);
    double limit = 0, real = 0;
    kkt_json_as_real(keyword, &limit);
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        if (strcmp(name, silent[i]) == 0)
            return true;
    if (strcmp(name, "$ref") == 0) {
        const kkt_json *target = schema_resolve(check, kkt_json_as_string(keyword));
        return target == NULL ? schema_fail(check, at, "a $ref leads nowhere")
                              : schema_validate(check, target, value, at);
    }
    if (strcmp(name, "type") == 0) {
        bool fits = kkt_json_as_string(keyword) != NULL &&
                    schema_has_type(value, kkt_json_as_string(keyword));
        for (const kkt_json *one = kkt_json_is_array(keyword) ? kkt_json_first(keyword) : NULL;
             one != NULL && !fits; one = kkt_json_next(one))
            fits = schema_has_type(value, kkt_json_as_string(one));
        return fits || schema_fail(check, at, "wrong type");
    }
    if (strcmp(name, "const") == 0)
        return schema_equal(keyword, value) || schema_fail(check, at, "not the constant");
    if (strcmp(name, "enum") == 0) {
        for (const kkt_json *one = kkt_json_first(keyword); one != NULL; one = kkt_json_next(one))
            if (schema_equal(one, value))
                return true;
        return schema_fail(check, at, "none of the enumerated values");
    }
    if (strcmp(name, "minimum") == 0)
        return !kkt_json_as_real(value, &real) || real >= limit ||
               schema_fail(check, at, "below the minimum");
    if (strcmp(name, "minLength") == 0)
        return text == NULL || (double)strlen(text) >= limit || schema_fail(check, at, "too short");
    if (strcmp(name, "maxLength") == 0)
        return text == NULL || (double)strlen(text) <= limit || schema_fail(check, at, "too long");
    if (strcmp(name, "minItems") == 0)
        return (double)kkt_json_count(value) >= limit || schema_fail(check, at, "too few items");
    if (strcmp(name, "items") == 0) {
        for (const kkt_json *item = kkt_json_first(value); item != NULL; item = kkt_json_next(item))
            if (!schema_validate(check, keyword, item, at))
                return false;
        return true;
    }
    (void)schema;
    return schema_fail(check, name, "a keyword this validator does not know");
}

static inline bool schema_validate(schema_check *check, const kkt_json *schema,
                                   const kkt_json *value, const char *at) {
    for (const kkt_json *keyword = kkt_json_first(schema); keyword != NULL;
         keyword = kkt_json_next(keyword))
        if (!schema_keyword(check, schema, keyword, value, at))
            return false;
    return !kkt_json_is_object(value) || schema_members(check, schema, value, at);
}

#endif
