/* Reading canonical texts "k=v,k=v" (base/params.h) without a table: a database may hold kernels
 * and parameters that this program no longer has. */
#ifndef KKT_REPORTS_CANONICAL_H
#define KKT_REPORTS_CANONICAL_H

#include <stdbool.h>
#include <stdint.h>

#define KKT_CANONICAL_TEXT 64 /* longest key or value that is read; longer ones are cut */

typedef struct kkt_pair {
    char key[KKT_CANONICAL_TEXT];
    char text[KKT_CANONICAL_TEXT];
    bool is_integer;
    int64_t integer;
} kkt_pair;

/* The next pair; advances `*cursor`. False at the end. A piece without '=' gives text "". */
bool kkt_pair_next(const char **cursor, kkt_pair *out);
/* The integer of a key; `fallback` where it is absent or not an integer. */
int64_t kkt_pair_integer(const char *text, const char *key, int64_t fallback);
/* Whether a key has this value's text. */
bool kkt_pair_is(const char *text, const char *key, const char *value);

#endif
