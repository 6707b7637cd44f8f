/* JSON in and out. The only user of cJSON. Input is hostile: depth and size are bounded. */
#ifndef KKT_BASE_JSON_H
#define KKT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A value. A root (parsed or made by kkt_json_object) is owned by the caller and closed with
 * kkt_json_close; everything got from or added to it is borrowed and lives as long as the root. */
typedef struct kkt_json kkt_json;

/* `name` says in errors where the text came from ("kkttune_sm90.json"); line and column of the
 * error are named. At most 256 MiB and 64 levels. KKT_ERR_INPUT on malformed or oversized text. */
kkt_status kkt_json_parse(const char *text, size_t length, const char *name, kkt_json **out,
                          kkt_error *err);
kkt_json *kkt_json_object(void);     /* a new root */
kkt_json *kkt_json_array(void);      /* a new root */
void kkt_json_close(kkt_json *root); /* NULL is a no-op */

/* Builders: add to an object (`key` non-NULL) or append to an array (`key` NULL). */
kkt_json *kkt_json_add_object(kkt_json *parent, const char *key);
kkt_json *kkt_json_add_array(kkt_json *parent, const char *key);
void kkt_json_add_string(kkt_json *parent, const char *key, const char *value); /* NULL adds null */
void kkt_json_add_int(kkt_json *parent, const char *key, int64_t value); /* exact at any size */
void kkt_json_add_real(kkt_json *parent, const char *key, double value); /* not finite adds null */
void kkt_json_add_bool(kkt_json *parent, const char *key, bool value);
void kkt_json_add_root(kkt_json *parent, const char *key, kkt_json *root); /* takes `root` over */

/* Readers: NULL or false where the member is absent or of another type. */
const kkt_json *kkt_json_get(const kkt_json *object, const char *key);
bool kkt_json_is_object(const kkt_json *value);
bool kkt_json_is_array(const kkt_json *value);
size_t kkt_json_count(const kkt_json *array_or_object);
const kkt_json *kkt_json_first(const kkt_json *parent); /* iterate: first, then next until NULL */
const kkt_json *kkt_json_next(const kkt_json *value);
const char *kkt_json_key(const kkt_json *member);
const char *kkt_json_string(const kkt_json *object, const char *key);
bool kkt_json_int(const kkt_json *object, const char *key,
                  int64_t *out); /* integral, |x| < 2^53 (a built value: any) */
bool kkt_json_real(const kkt_json *object, const char *key, double *out);
bool kkt_json_bool(const kkt_json *object, const char *key, bool *out);
const char *kkt_json_as_string(const kkt_json *value);
bool kkt_json_as_int(const kkt_json *value, int64_t *out);
bool kkt_json_as_real(const kkt_json *value, double *out);

/* Text of a value; malloc'ed, the caller frees it. `pretty`: indented, one member a line. */
char *kkt_json_print(const kkt_json *value, bool pretty);

#endif
