#include "reports/canonical.h"

#include <string.h>

#include "base/text.h"

static void cut(char out[KKT_CANONICAL_TEXT], const char *from, size_t length) {
    if (length >= KKT_CANONICAL_TEXT)
        length = KKT_CANONICAL_TEXT - 1;
    memcpy(out, from, length);
    out[length] = '\0';
}

bool kkt_pair_next(const char **cursor, kkt_pair *out) {
    const char *at = *cursor;
    if (at == NULL || *at == '\0')
        return false;
    size_t length = strcspn(at, ",");
    size_t key = strcspn(at, ",=");
    cut(out->key, at, key);
    if (key < length)
        cut(out->text, at + key + 1, length - key - 1);
    else
        out->text[0] = '\0';
    out->integer = 0;
    out->is_integer = kkt_parse_i64(out->text, INT64_MIN, INT64_MAX, &out->integer);
    at += length;
    *cursor = *at == ',' ? at + 1 : at;
    return true;
}

int64_t kkt_pair_integer(const char *text, const char *key, int64_t fallback) {
    kkt_pair pair;
    while (kkt_pair_next(&text, &pair))
        if (strcmp(pair.key, key) == 0)
            return pair.is_integer ? pair.integer : fallback;
    return fallback;
}

bool kkt_pair_is(const char *text, const char *key, const char *value) {
    kkt_pair pair;
    while (kkt_pair_next(&text, &pair))
        if (strcmp(pair.key, key) == 0)
            return strcmp(pair.text, value) == 0;
    return false;
}
