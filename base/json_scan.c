#include "base/json_scan.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_CHARS 63 /* what the parser behind this scanner can take */

typedef struct scanner {
    const char *text;
    size_t length, at;
    const char *fault; /* what is wrong at `at`; NULL: nothing yet */
} scanner;

static int peek(const scanner *s) {
    return s->at < s->length ? (unsigned char)s->text[s->at] : -1;
}

static bool fault(scanner *s, const char *what) {
    s->fault = what;
    return false;
}

static void skip_blanks(scanner *s) {
    while (s->at < s->length && s->text[s->at] && strchr(" \t\r\n", s->text[s->at]))
        s->at++;
}

size_t kkt_utf8_length(const char *text, size_t left) {
    const unsigned char *b = (const unsigned char *)text;
    if (left == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    size_t size = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    if (b[0] < 0xC2 || b[0] > 0xF4 || left < size)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 0;
    }
    /* Overlong forms, surrogates, and what lies above U+10FFFF. */
    if ((b[0] == 0xE0 && b[1] < 0xA0) || (b[0] == 0xED && b[1] > 0x9F) ||
        (b[0] == 0xF0 && b[1] < 0x90) || (b[0] == 0xF4 && b[1] > 0x8F))
        return 0;
    return size;
}

/* Four hex digits at `at`; -1 where they are not. */
static long hex4(const scanner *s, size_t at) {
    long value = 0;
    if (s->length < 4 || at > s->length - 4)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        const char *digits = "0123456789abcdefABCDEF";
        const char *found = s->text[i] ? strchr(digits, s->text[i]) : NULL;
        if (!found)
            return -1;
        long digit = (long)(found - digits);
        value = value * 16 + (digit < 16 ? digit : digit - 6);
    }
    return value;
}

static bool scan_escape(scanner *s) {
    int kind = s->at + 1 < s->length ? s->text[s->at + 1] : 0;
    if (kind == 0 || !strchr("\"\\/bfnrtu", kind))
        return fault(s, "unknown escape in a string");
    if (kind != 'u') {
        s->at += 2;
        return true;
    }
    long unit = hex4(s, s->at + 2);
    if (unit < 0)
        return fault(s, "\\u is not followed by four hex digits");
    if (unit == 0)
        return fault(s, "a string may not hold \\u0000");
    if (unit < 0xD800 || unit > 0xDFFF) {
        s->at += 6;
        return true;
    }
    bool pair = unit < 0xDC00 && s->at + 7 < s->length && s->text[s->at + 6] == '\\' &&
                s->text[s->at + 7] == 'u';
    long low = pair ? hex4(s, s->at + 8) : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return fault(s, "half a surrogate pair in a string");
    s->at += 12;
    return true;
}

static bool scan_string(scanner *s) {
    s->at++;
    for (;;) {
        int byte = peek(s);
        if (byte < 0)
            return fault(s, "the string does not end");
        if (byte == '"')
            break;
        if (byte < 0x20)
            return fault(s, "a control character in a string; write it as an escape");
        if (byte == '\\') {
            if (!scan_escape(s))
                return false;
            continue;
        }
        size_t size = kkt_utf8_length(s->text + s->at, s->length - s->at);
        if (size == 0)
            return fault(s, "the text is not UTF-8");
        s->at += size;
    }
    s->at++;
    return true;
}

static size_t skip_digits(scanner *s) {
    size_t start = s->at;
    while (peek(s) >= '0' && peek(s) <= '9')
        s->at++;
    return s->at - start;
}

static bool scan_number(scanner *s) {
    size_t start = s->at;
    if (peek(s) == '-')
        s->at++;
    bool zero = peek(s) == '0';
    size_t digits = skip_digits(s);
    if (digits == 0 || (zero && digits > 1))
        return fault(s, "a malformed number");
    if (peek(s) == '.') {
        s->at++;
        if (skip_digits(s) == 0)
            return fault(s, "a malformed number");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-')
            s->at++;
        if (skip_digits(s) == 0)
            return fault(s, "a malformed number");
    }
    char number[NUMBER_CHARS + 1];
    if (s->at - start > NUMBER_CHARS) {
        s->at = start;
        return fault(s, "a number of more than 63 characters");
    }
    memcpy(number, s->text + start, s->at - start);
    number[s->at - start] = '\0';
    if (!isfinite(strtod(number, NULL))) {
        s->at = start;
        return fault(s, "a number too large for double precision");
    }
    return true;
}

static bool scan_word(scanner *s, const char *word) {
    size_t length = strlen(word);
    if (s->length - s->at < length || memcmp(s->text + s->at, word, length) != 0)
        return fault(s, "a value was expected");
    s->at += length;
    return true;
}

static bool scan_scalar(scanner *s) {
    int byte = peek(s);
    if (byte == '"')
        return scan_string(s);
    if (byte == '-' || (byte >= '0' && byte <= '9'))
        return scan_number(s);
    if (byte == 't')
        return scan_word(s, "true");
    if (byte == 'f')
        return scan_word(s, "false");
    return byte == 'n' ? scan_word(s, "null") : fault(s, "a value was expected");
}

/* "key" : */
static bool scan_key(scanner *s) {
    skip_blanks(s);
    if (peek(s) != '"')
        return fault(s, "a member name in double quotes was expected");
    if (!scan_string(s))
        return false;
    skip_blanks(s);
    if (peek(s) != ':')
        return fault(s, "':' was expected");
    s->at++;
    return true;
}

/* A value and then as many closing brackets as there are; `stack` holds the brackets open. */
static bool scan_document(scanner *s) {
    char stack[KKT_JSON_DEPTH];
    size_t depth = 0;
    do {
        skip_blanks(s);
        int byte = peek(s);
        if (byte == '{' || byte == '[') {
            if (depth == KKT_JSON_DEPTH)
                return fault(s, "more than 64 levels of nesting");
            char close = byte == '{' ? '}' : ']';
            s->at++;
            skip_blanks(s);
            if (peek(s) != close) {
                stack[depth++] = close;
                if (close == '}' && !scan_key(s))
                    return false;
                continue;
            }
            s->at++;
        } else if (!scan_scalar(s)) {
            return false;
        }
        for (skip_blanks(s); depth > 0 && peek(s) == stack[depth - 1]; skip_blanks(s)) {
            s->at++;
            depth--;
        }
        if (depth > 0) {
            if (peek(s) != ',')
                return fault(s, stack[depth - 1] == '}' ? "',' or '}' was expected"
                                                        : "',' or ']' was expected");
            s->at++;
            if (stack[depth - 1] == '}' && !scan_key(s))
                return false;
        }
    } while (depth > 0);
    skip_blanks(s);
    return s->at == s->length || fault(s, "text after the end of the value");
}

kkt_status kkt_json_scan(const char *text, size_t length, const char *name, kkt_error *err) {
    if (length > KKT_JSON_BYTES)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "%s: %zu bytes of JSON; at most %zu are read", name,
                        length, KKT_JSON_BYTES);
    scanner s = {.text = text, .length = length};
    if (scan_document(&s))
        return KKT_OK;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < s.at; i++) {
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
    }
    return kkt_fail(err, KKT_ERR_INPUT, 0, "%s:%zu:%zu: not valid JSON: %s", name, line, column,
                    s.fault);
}
