#include "base/json.h"

#include <cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/memory.h"
#include "base/text.h"

/* kkt_json is cJSON under another name; both ways are casts. */
static cJSON *item_of(kkt_json *value) {
    return (cJSON *)value;
}

static const cJSON *view_of(const kkt_json *value) {
    return (const cJSON *)value;
}

/* cJSON answers NULL where there is no memory. */
static kkt_json *made(cJSON *item) {
    if (!item)
        kkt_memory_exhausted();
    return (kkt_json *)item;
}

/* ---- parsing ---- */

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The first key that an object holds twice, or NULL. Two readers of such text could disagree. */
static const char *doubled_key(const cJSON *object) {
    size_t count = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        count++;
    if (count < 2)
        return NULL;
    const char **keys = kkt_memory_alloc(count * sizeof *keys);
    size_t at = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        keys[at++] = member->string;
    qsort(keys, count, sizeof *keys, compare_keys);
    const char *found = NULL;
    for (size_t i = 1; i < count && !found; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0)
            found = keys[i];
    }
    free(keys);
    return found;
}

/* Depth is bounded by the scanner, so recursion is too. */
static const char *find_doubled(const cJSON *value) { /* NOLINT(misc-no-recursion) */
    const char *found = cJSON_IsObject(value) ? doubled_key(value) : NULL;
    for (const cJSON *child = value->child; child && !found; child = child->next)
        found = find_doubled(child);
    return found;
}

kkt_status kkt_json_parse(const char *text, size_t length, const char *name, kkt_json **out,
                          kkt_error *err) {
    kkt_status status = kkt_json_scan(text, length, name, err);
    if (status != KKT_OK)
        return status;
    cJSON *root = cJSON_ParseWithLength(text, length);
    if (!root)
        kkt_memory_exhausted(); /* the scanner has passed the text */
    const char *doubled = find_doubled(root);
    if (doubled) {
        status =
            kkt_fail(err, KKT_ERR_INPUT, 0, "%s: member '%.80s' is given twice", name, doubled);
        cJSON_Delete(root);
        return status;
    }
    *out = (kkt_json *)root;
    return KKT_OK;
}

/* ---- building ---- */

kkt_json *kkt_json_object(void) {
    return made(cJSON_CreateObject());
}

kkt_json *kkt_json_array(void) {
    return made(cJSON_CreateArray());
}

void kkt_json_close(kkt_json *root) {
    cJSON_Delete(item_of(root));
}

void kkt_json_add_root(kkt_json *parent, const char *key, kkt_json *root) {
    cJSON_bool done = key ? cJSON_AddItemToObject(item_of(parent), key, item_of(root))
                          : cJSON_AddItemToArray(item_of(parent), item_of(root));
    if (!done)
        kkt_memory_exhausted();
}

kkt_json *kkt_json_add_object(kkt_json *parent, const char *key) {
    kkt_json *object = kkt_json_object();
    kkt_json_add_root(parent, key, object);
    return object;
}

kkt_json *kkt_json_add_array(kkt_json *parent, const char *key) {
    kkt_json *array = kkt_json_array();
    kkt_json_add_root(parent, key, array);
    return array;
}

void kkt_json_add_string(kkt_json *parent, const char *key, const char *value) {
    if (!value) {
        kkt_json_add_root(parent, key, made(cJSON_CreateNull()));
        return;
    }
    /* JSON is UTF-8; a byte that is not (a file's name, say) becomes U+FFFD. */
    kkt_text clean = {0};
    size_t left = strlen(value);
    while (left > 0) {
        size_t size = kkt_utf8_length(value, left);
        if (size > 0)
            kkt_text_add_bytes(&clean, value, size);
        else
            kkt_text_add(&clean, "\xEF\xBF\xBD");
        value += size > 0 ? size : 1;
        left -= size > 0 ? size : 1;
    }
    kkt_json_add_root(parent, key, made(cJSON_CreateString(kkt_text_get(&clean))));
    kkt_text_free(&clean);
}

/* Numbers are added as text: cJSON itself keeps doubles only, and prints 15 digits of them. */
void kkt_json_add_int(kkt_json *parent, const char *key, int64_t value) {
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, value);
    kkt_json_add_root(parent, key, made(cJSON_CreateRaw(number)));
}

void kkt_json_add_real(kkt_json *parent, const char *key, double value) {
    if (!isfinite(value)) {
        kkt_json_add_root(parent, key, made(cJSON_CreateNull()));
        return;
    }
    char number[32];
    for (int digits = 15; digits <= 17; digits++) { /* the shortest text that reads back the same */
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    kkt_json_add_root(parent, key, made(cJSON_CreateRaw(number)));
}

void kkt_json_add_bool(kkt_json *parent, const char *key, bool value) {
    kkt_json_add_root(parent, key, made(cJSON_CreateBool(value)));
}

/* ---- reading ---- */

const kkt_json *kkt_json_get(const kkt_json *object, const char *key) {
    return (const kkt_json *)cJSON_GetObjectItemCaseSensitive(view_of(object), key);
}

bool kkt_json_is_object(const kkt_json *value) {
    return cJSON_IsObject(view_of(value));
}

bool kkt_json_is_array(const kkt_json *value) {
    return cJSON_IsArray(view_of(value));
}

size_t kkt_json_count(const kkt_json *array_or_object) {
    size_t count = 0;
    for (const kkt_json *each = kkt_json_first(array_or_object); each; each = kkt_json_next(each))
        count++;
    return count;
}

const kkt_json *kkt_json_first(const kkt_json *parent) {
    return parent ? (const kkt_json *)view_of(parent)->child : NULL;
}

const kkt_json *kkt_json_next(const kkt_json *value) {
    return value ? (const kkt_json *)view_of(value)->next : NULL;
}

const char *kkt_json_key(const kkt_json *member) {
    return member ? view_of(member)->string : NULL;
}

const char *kkt_json_as_string(const kkt_json *value) {
    return cJSON_IsString(view_of(value)) ? view_of(value)->valuestring : NULL;
}

bool kkt_json_as_int(const kkt_json *value, int64_t *out) {
    const cJSON *item = view_of(value);
    if (cJSON_IsRaw(item))
        return kkt_parse_i64(item->valuestring, INT64_MIN, INT64_MAX, out);
    /* From 2^53 on a double no longer tells neighbouring integers apart. */
    if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) < 0x1p53) ||
        trunc(item->valuedouble) != item->valuedouble)
        return false;
    *out = (int64_t)item->valuedouble;
    return true;
}

bool kkt_json_as_real(const kkt_json *value, double *out) {
    const cJSON *item = view_of(value);
    if (cJSON_IsRaw(item))
        return kkt_parse_double(item->valuestring, out);
    if (!cJSON_IsNumber(item))
        return false;
    *out = item->valuedouble;
    return true;
}

const char *kkt_json_string(const kkt_json *object, const char *key) {
    return kkt_json_as_string(kkt_json_get(object, key));
}

bool kkt_json_int(const kkt_json *object, const char *key, int64_t *out) {
    return kkt_json_as_int(kkt_json_get(object, key), out);
}

bool kkt_json_real(const kkt_json *object, const char *key, double *out) {
    return kkt_json_as_real(kkt_json_get(object, key), out);
}

bool kkt_json_bool(const kkt_json *object, const char *key, bool *out) {
    const cJSON *item = view_of(kkt_json_get(object, key));
    if (!cJSON_IsBool(item))
        return false;
    *out = cJSON_IsTrue(item);
    return true;
}

/* ---- printing ---- */

char *kkt_json_print(const kkt_json *value, bool pretty) {
    char *text = pretty ? cJSON_Print(view_of(value)) : cJSON_PrintUnformatted(view_of(value));
    if (!text)
        kkt_memory_exhausted();
    return text;
}
