#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Makes room for `more` bytes and a NUL. */
static void reserve(kkt_text *text, size_t more) {
    if (more > SIZE_MAX / 2 - text->length - 1)
        kkt_memory_exhausted();
    size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    text->data = kkt_memory_resize(text->data, capacity);
    text->capacity = capacity;
}

void kkt_text_free(kkt_text *text) {
    free(text->data);
    *text = (kkt_text){0};
}

void kkt_text_add_bytes(kkt_text *text, const void *bytes, size_t length) {
    reserve(text, length);
    if (length > 0)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void kkt_text_add(kkt_text *text, const char *piece) {
    kkt_text_add_bytes(text, piece, strlen(piece));
}

void kkt_text_printf(kkt_text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0) {
        reserve(text, (size_t)length);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

const char *kkt_text_get(const kkt_text *text) {
    return text->data ? text->data : "";
}

void kkt_text_add_html(kkt_text *text, const char *raw) {
    for (; *raw; raw++) {
        switch (*raw) {
        case '&':
            kkt_text_add(text, "&amp;");
            break;
        case '<':
            kkt_text_add(text, "&lt;");
            break;
        case '>':
            kkt_text_add(text, "&gt;");
            break;
        case '"':
            kkt_text_add(text, "&quot;");
            break;
        case '\'':
            kkt_text_add(text, "&#39;");
            break;
        default:
            kkt_text_add_bytes(text, raw, 1);
        }
    }
}

void kkt_text_add_markdown(kkt_text *text, const char *raw) {
    for (; *raw; raw++) {
        if (*raw == '\r' && raw[1] == '\n')
            continue; /* the line feed that follows stands for both */
        if (*raw == '\n' || *raw == '\r')
            kkt_text_add(text, " ");
        else if (*raw == '<')
            kkt_text_add(text, "&lt;"); /* a backslash does not stop raw HTML everywhere */
        else if (*raw == '>')
            kkt_text_add(text, "&gt;");
        else if (strchr("|\\`*_[]", *raw))
            kkt_text_printf(text, "\\%c", *raw);
        else
            kkt_text_add_bytes(text, raw, 1);
    }
}

void kkt_text_add_c_string(kkt_text *text, const char *raw) {
    kkt_text_add(text, "\"");
    for (; *raw; raw++) {
        unsigned char byte = (unsigned char)*raw;
        if (byte == '\\' || byte == '"')
            kkt_text_printf(text, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7F || byte == '?') /* '?': trigraphs */
            kkt_text_printf(text, "\\%03o", byte);
        else
            kkt_text_add_bytes(text, raw, 1);
    }
    kkt_text_add(text, "\"");
}

bool kkt_parse_i64(const char *text, int64_t low, int64_t high, int64_t *out) {
    const char *digits = *text == '-' ? text + 1 : text;
    if (!*digits || digits[strspn(digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE || value < low || value > high)
        return false;
    *out = value;
    return true;
}

bool kkt_parse_double(const char *text, double *out) {
    /* strtod would take blanks, hexadecimal, "inf" and "nan" as well. */
    if (!*text || text[strspn(text, "0123456789+-.eE")] != '\0')
        return false;
    char *end = NULL;
    double value = strtod(text, &end);
    if (*end != '\0' || end == text || !isfinite(value))
        return false;
    *out = value;
    return true;
}

kkt_status kkt_parse_i64_list(const char *text, const char *what, int64_t low, int64_t high,
                              int64_t *out, size_t max, size_t *count, kkt_error *err) {
    size_t found = 0;
    for (const char *piece = text;; piece++) {
        size_t length = strcspn(piece, ",");
        char number[32] = "";
        if (length < sizeof number)
            memcpy(number, piece, length);
        if (found == max)
            return kkt_fail(err, KKT_ERR_INPUT, 0, "%s: more than %zu values in '%s'", what, max,
                            text);
        if (!kkt_parse_i64(number, low, high, &out[found]))
            return kkt_fail(err, KKT_ERR_INPUT, 0,
                            "%s: '%.*s' is not an integer from %lld to %lld; give a list such as "
                            "16,32,64",
                            what, (int)(length < 60 ? length : 60), piece, (long long)low,
                            (long long)high);
        found++;
        piece += length;
        if (*piece == '\0')
            break;
    }
    *count = found;
    return KKT_OK;
}
