/* Filling a kkt_error. See include/kkttune/status.h for the convention. */
#ifndef KKT_BASE_ERROR_H
#define KKT_BASE_ERROR_H

#include "kkttune/status.h"

#if defined(__GNUC__)
#define KKT_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define KKT_PRINTF(at, first)
#endif

/* Fills `err` (which may be NULL) and returns `status`, so that a failure is one statement:
 *     return kkt_fail(err, KKT_ERR_INPUT, 0, "unknown arch '%s'; known: %s", text, list);
 * Control characters in the message are replaced by '?': the text may hold data from outside. */
kkt_status kkt_fail(kkt_error *err, kkt_status status, int native, const char *format, ...)
    KKT_PRINTF(4, 5);

/* The same with errno's own text appended: "cannot open 'x': No such file or directory". */
kkt_status kkt_fail_errno(kkt_error *err, kkt_status status, int errno_value, const char *format,
                          ...) KKT_PRINTF(4, 5);

#endif
