/* Parameters as data: one table names the keys of a problem or of a configuration, their allowed
 * values and their meaning. The table drives parsing, printing, enumeration, the database's
 * canonical text, --help and the -D macros given to the compiler. */
#ifndef KKT_BASE_PARAMS_H
#define KKT_BASE_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

#define KKT_PARAMS_MAX 40  /* parameters of one table */
#define KKT_CHOICES_MAX 16 /* listed values of one parameter */

typedef struct kkt_param {
    const char *name;  /* the key in "k=v,..." text, in the database and in exports */
    const char *macro; /* the compiler's -D name; NULL where the value is a run-time argument */
    const char *help;  /* one line */
    /* The listed values, in the order they are tried. count 0: any integer in [low, high]. */
    size_t count;
    int64_t values[KKT_CHOICES_MAX];
    /* Names of the values ("row", "recursive"); NULL where values are plain integers. The
     * value's text is then its name, and the macro receives the integer. */
    const char *const *names;
    int64_t low, high; /* for count 0 */
    int64_t fallback;  /* the value where none is given */
    /* A parameter that only some values of another give an effect: elsewhere its fallback stands
     * for all its values, and a walk over the space passes the others by. */
    int depends_on;          /* 1 + index of that parameter, earlier in the table; 0: none */
    uint64_t depends_values; /* bit v: it has an effect where that parameter's value is v (0..63) */
} kkt_param;

typedef struct kkt_param_table {
    const char *what; /* "problem key" or "parameter", for errors */
    const kkt_param *params;
    size_t count;
} kkt_param_table;

/* The values of one problem or configuration, in the table's order. Plain data: copy freely. */
typedef struct kkt_values {
    int64_t v[KKT_PARAMS_MAX];
} kkt_values;

void kkt_params_defaults(const kkt_param_table *table, kkt_values *out);
/* Index of a key, or -1. */
int kkt_params_find(const kkt_param_table *table, const char *name);
/* Value by key; the key must exist (it is a programming error otherwise: aborts). */
int64_t kkt_params_get(const kkt_param_table *table, const kkt_values *values, const char *name);
/* Overrides `values` by "k=v,k=v". Unknown key, value not listed, key given twice, not a number:
 * KKT_ERR_INPUT naming it and listing what exists; `values` is then unchanged. "" is no
 * override; blanks around names and values do not count.
 * `given`, where not NULL, receives a bit for each key that the text names. */
kkt_status kkt_params_parse(const kkt_param_table *table, const char *text, kkt_values *values,
                            uint64_t *given, kkt_error *err);
/* Canonical text "k=v,...", keys sorted bytewise; appended to `out`. */
void kkt_params_format(const kkt_param_table *table, const kkt_values *values, kkt_text *out);
/* The same, in the arena's memory. */
const char *kkt_params_text(kkt_arena *arena, const kkt_param_table *table,
                            const kkt_values *values);
/* The same with only the keys whose value is not the fallback: short, and what a person would type;
 * "default" where there are none. */
void kkt_params_format_short(const kkt_param_table *table, const kkt_values *values, kkt_text *out);
/* The text of one value ("recursive", "64"); `buffer` is used for integers. */
const char *kkt_param_value_text(const kkt_param *param, int64_t value, char buffer[24]);
bool kkt_values_equal(const kkt_param_table *table, const kkt_values *a, const kkt_values *b);

#endif
