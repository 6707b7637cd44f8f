/* A strict reading of JSON syntax (RFC 8259) that builds nothing: depth, size, encoding and
 * numbers are checked, and the place of the first fault is told, before a parser sees the text.
 * Used by json.c alone. */
#ifndef KKT_BASE_JSON_SCAN_H
#define KKT_BASE_JSON_SCAN_H

#include <stddef.h>

#include "base/error.h"

#define KKT_JSON_DEPTH 64
#define KKT_JSON_BYTES ((size_t)256 << 20)

/* KKT_ERR_INPUT: "NAME:LINE:COLUMN: what is wrong"; both count from 1, columns in bytes. */
kkt_status kkt_json_scan(const char *text, size_t length, const char *name, kkt_error *err);

/* Bytes of the valid UTF-8 character at `text` (1 to 4), 0 where there is none. */
size_t kkt_utf8_length(const char *text, size_t left);

#endif
