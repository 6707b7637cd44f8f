#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Replaces control characters, C0 and the UTF-8 spelling of C1, which a terminal would obey, and
 * cuts a character that the end of the buffer has split. */
static void make_printable(char *text) {
    unsigned char *bytes = (unsigned char *)text;
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        bool c1 = bytes[i] == 0xC2 && bytes[i + 1] >= 0x80 && bytes[i + 1] < 0xA0;
        if (c1) {
            bytes[i] = '?';
            bytes[i + 1] = '?';
        }
        if (bytes[i] < 0x20 || bytes[i] == 0x7F)
            bytes[i] = '?';
    }
    size_t start = length;
    while (start > 0 && length - start < 3 && (bytes[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0 || bytes[start - 1] < 0xC0)
        return;
    unsigned char lead = bytes[start - 1];
    size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (length - start < need)
        bytes[start - 1] = '\0';
}

/* Takes the text from a buffer of its own: an argument may be the message that is being wrapped. */
static kkt_status fill(kkt_error *err, kkt_status status, int native, char *text) {
    make_printable(text);
    err->status = status;
    err->native = native;
    snprintf(err->message, sizeof err->message, "%s", text);
    return status;
}

kkt_status kkt_fail(kkt_error *err, kkt_status status, int native, const char *format, ...) {
    if (!err)
        return status;
    char text[sizeof err->message] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fill(err, status, native, text);
}

kkt_status kkt_fail_errno(kkt_error *err, kkt_status status, int errno_value, const char *format,
                          ...) {
    if (!err)
        return status;
    char text[sizeof err->message] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char cause_buffer[128];
    const char *cause = strerror_r(errno_value, cause_buffer, sizeof cause_buffer);
    /* The cause must survive a long name in front of it. */
    char whole[sizeof err->message];
    int room = (int)(sizeof whole - strlen(cause) - 3);
    snprintf(whole, sizeof whole, "%.*s: %s", room, text, cause);
    return fill(err, status, errno_value, whole);
}
