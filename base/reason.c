#include <stdarg.h>
#include <string.h>

#include "base/text.h"

/* Where the next byte goes, and what is left beside the NUL. */
typedef struct place {
    char *at;
    size_t left;
} place;

static void put(place *to, const char *bytes, size_t length) {
    if (length > to->left)
        length = to->left;
    memcpy(to->at, bytes, length);
    to->at += length;
    to->left -= length;
}

static void put_integer(place *to, long long value) {
    char digits[24];
    size_t at = sizeof digits;
    unsigned long long left = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        digits[--at] = '-';
    put(to, digits + at, sizeof digits - at);
}

/* Formats what it knows; false at anything else. */
static bool plain(place *to, const char *format, va_list args) {
    for (;;) {
        const char *mark = strchrnul(format, '%');
        put(to, format, (size_t)(mark - format));
        if (*mark == '\0')
            return true;
        format = mark + 2;
        if (mark[1] == 's') {
            const char *text = va_arg(args, const char *);
            put(to, text, strlen(text));
        } else if (mark[1] == 'd') {
            put_integer(to, va_arg(args, int));
        } else if (strncmp(mark + 1, "lld", 3) == 0) {
            put_integer(to, va_arg(args, long long));
            format += 2;
        } else if (strncmp(mark + 1, "ld", 2) == 0) {
            put_integer(to, va_arg(args, long));
            format += 1;
        } else {
            return false;
        }
    }
}

void kkt_reason(char *out, size_t size, const char *format, ...) {
    va_list args;
    if (size == 0)
        return;
    place to = {out, size - 1};
    va_start(args, format);
    const bool done = plain(&to, format, args);
    va_end(args);
    *to.at = '\0';
    if (done)
        return;
    va_start(args, format);
    vsnprintf(out, size, format, args);
    va_end(args);
}
