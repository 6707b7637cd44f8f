/* Growing text, escapes and strict number parsing. */
#ifndef KKT_BASE_TEXT_H
#define KKT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* Zero-initialise: `kkt_text text = {0};`. `data` is always NUL-terminated once anything was
 * added; NULL before. Out of memory ends the process (see arena.h). */
typedef struct kkt_text {
    char *data;
    size_t length;
    size_t capacity;
} kkt_text;

void kkt_text_free(kkt_text *text); /* and zeroes it */
void kkt_text_add(kkt_text *text, const char *piece);
void kkt_text_add_bytes(kkt_text *text, const void *bytes, size_t length);
void kkt_text_printf(kkt_text *text, const char *format, ...) KKT_PRINTF(2, 3);
const char *kkt_text_get(const kkt_text *text); /* "" when empty; never NULL */

/* Escapes for the places where data from outside ends up. Each appends to `text`. */
void kkt_text_add_html(kkt_text *text, const char *raw); /* & < > " ' */
void kkt_text_add_markdown(kkt_text *text,
                           const char *raw); /* table cell: | \ ` * _ < > [ ] and line breaks */
void kkt_text_add_c_string(kkt_text *text,
                           const char *raw); /* with the quotes; \, ", ?, non-ASCII as octal */

/* snprintf for a reason that may be nobody's to read: with `size` 0 nothing is formatted, and what
 * constraints say (%s, %d, %lld) is without the C library, which takes several times as long; a
 * walk through a space has millions of them. */
void kkt_reason(char *out, size_t size, const char *format, ...) KKT_PRINTF(3, 4);

/* Whole-string parsers: no leading or trailing characters, range checked. False if not a number
 * or out of [low, high]. */
bool kkt_parse_i64(const char *text, int64_t low, int64_t high, int64_t *out);
bool kkt_parse_double(const char *text, double *out); /* finite only, '.' as decimal point */

/* A list "16,32,64" of at most `max` integers. KKT_ERR_INPUT names `what` and the bad piece. */
kkt_status kkt_parse_i64_list(const char *text, const char *what, int64_t low, int64_t high,
                              int64_t *out, size_t max, size_t *count, kkt_error *err);

/* A table for people: cells added row by row, columns aligned on print (numbers to the right). */
typedef struct kkt_table kkt_table;
kkt_table *kkt_table_open(size_t columns, const char *const *headings);
void kkt_table_close(kkt_table *table);
void kkt_table_cell(kkt_table *table, const char *format, ...) KKT_PRINTF(2, 3);
void kkt_table_print(const kkt_table *table, FILE *out); /* aligned plain text */

#endif
