#include "base/npy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define FILE_LIMIT ((size_t)1 << 36) /* 64 GiB: more than a problem's largest tensor */
#define ALIGNMENT 64                 /* of the data, by NumPy's format description */

typedef struct type_row {
    const char *descr;
    size_t bytes;
} type_row;

static const type_row TYPES[] = {
    [KKT_NPY_F2] = {"<f2", 2}, [KKT_NPY_F4] = {"<f4", 4}, [KKT_NPY_F8] = {"<f8", 8},
    [KKT_NPY_U2] = {"<u2", 2}, [KKT_NPY_I4] = {"<i4", 4}, [KKT_NPY_I8] = {"<i8", 8},
};
#define TYPE_COUNT (sizeof TYPES / sizeof TYPES[0])

/* The header's dictionary is Python source; the cursor reads the few literals that may occur. */
typedef struct cursor {
    const char *at, *end;
    const char *name; /* of the file */
    kkt_error *err;
} cursor;

static kkt_status fail(const cursor *c, const char *what) {
    return kkt_fail(c->err, KKT_ERR_INPUT, 0, "'%s': %s", c->name, what);
}

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool take(cursor *c, char expected) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != expected)
        return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    skip_blanks(c);
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(cursor *c, char *out, size_t size) {
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    char quote = *c->at++;
    size_t length = 0;
    while (c->at < c->end && *c->at != quote) {
        if (*c->at == '\\' || *c->at == '\0' || length + 1 >= size)
            return false;
        out[length++] = *c->at++;
    }
    if (c->at == c->end)
        return false;
    c->at++;
    out[length] = '\0';
    return true;
}

static kkt_status read_type(cursor *c, kkt_npy *out) {
    char descr[32];
    if (!take_string(c, descr, sizeof descr))
        return fail(c, "structured or damaged element type; save one plain array");
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (strcmp(descr, TYPES[i].descr) == 0) {
            out->type = (kkt_npy_type)i;
            return KKT_OK;
        }
    }
    const char *why = descr[0] == '>'      ? "is big endian; save little endian"
                      : strchr(descr, 'O') ? "holds Python objects; save plain numbers"
                                           : "is not supported; known: <f2, <f4, <f8, <u2 (bf16 "
                                             "bits), <i4, <i8";
    return kkt_fail(c->err, KKT_ERR_INPUT, 0, "'%s': element type '%s' %s", c->name, descr, why);
}

static kkt_status read_order(cursor *c) {
    if (take_word(c, "False"))
        return KKT_OK;
    if (take_word(c, "True"))
        return fail(c, "the array is in Fortran order; save numpy.ascontiguousarray of it");
    return fail(c, "damaged header: 'fortran_order' is neither True nor False");
}

static kkt_status read_shape(cursor *c, kkt_npy *out) {
    if (!take(c, '('))
        return fail(c, "damaged header: 'shape' is not a tuple");
    out->rank = 0;
    while (!take(c, ')')) {
        if (out->rank == KKT_NPY_DIMS)
            return fail(c, "more than 8 dimensions");
        char digits[24];
        size_t length = 0;
        while (c->at < c->end && *c->at >= '0' && *c->at <= '9' && length + 1 < sizeof digits)
            digits[length++] = *c->at++;
        digits[length] = '\0';
        if (!kkt_parse_i64(digits, 0, INT64_MAX, &out->dims[out->rank]))
            return fail(c, "damaged header: a dimension is not a non-negative integer");
        out->rank++;
        bool comma = take(c, ',');
        skip_blanks(c);
        bool closes = c->at < c->end && *c->at == ')';
        if (!comma && (!closes || out->rank == 1)) /* "(3)" is no tuple in Python */
            return fail(c, "damaged header: 'shape' is not a tuple");
    }
    return KKT_OK;
}

static kkt_status read_dictionary(cursor *c, kkt_npy *out) {
    enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };
    unsigned seen = 0;
    if (!take(c, '{'))
        return fail(c, "damaged header: no dictionary");
    while (!take(c, '}')) {
        char key[32];
        if (!take_string(c, key, sizeof key) || !take(c, ':'))
            return fail(c, "damaged header: a key is missing");
        unsigned bit = strcmp(key, "descr") == 0           ? DESCR
                       : strcmp(key, "fortran_order") == 0 ? ORDER
                       : strcmp(key, "shape") == 0         ? SHAPE
                                                           : 0;
        if (bit == 0 || (seen & bit))
            return kkt_fail(c->err, KKT_ERR_INPUT, 0, "'%s': damaged header: key '%s' is %s",
                            c->name, key, bit ? "given twice" : "unknown");
        seen |= bit;
        skip_blanks(c);
        kkt_status status = bit == DESCR   ? read_type(c, out)
                            : bit == ORDER ? read_order(c)
                                           : read_shape(c, out);
        if (status != KKT_OK)
            return status;
        skip_blanks(c);
        if (!take(c, ',') && !(c->at < c->end && *c->at == '}'))
            return fail(c, "damaged header: a comma is missing");
    }
    skip_blanks(c);
    if (c->at != c->end)
        return fail(c, "damaged header: text after the dictionary");
    if (seen != ALL)
        return fail(c, "damaged header: 'descr', 'fortran_order' or 'shape' is missing");
    return KKT_OK;
}

/* Elements and bytes of the shape; false on overflow, beside a 0 too: who multiplies some of an
 * array's dimensions need not look out. */
static bool count_elements(kkt_npy *array, size_t *bytes) {
    uint64_t total = 1;
    bool empty = false;
    for (int i = 0; i < array->rank; i++) {
        uint64_t dim = (uint64_t)array->dims[i];
        empty = empty || dim == 0;
        if (dim > 0 && __builtin_mul_overflow(total, dim, &total))
            return false;
    }
    if (total > (uint64_t)INT64_MAX / 8)
        return false;
    if (empty)
        total = 0;
    array->elements = (int64_t)total;
    *bytes = (size_t)total * TYPES[array->type].bytes;
    return true;
}

/* Everything but the data; `*offset` is where it starts, `*size` its length. */
static kkt_status parse_header(const char *name, const unsigned char *bytes, size_t length,
                               kkt_npy *out, size_t *offset, size_t *size, kkt_error *err) {
    cursor c = {.name = name, .err = err};
    if (length < MAGIC_BYTES + 4 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return fail(&c, "not a .npy file");
    int major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "'%s': .npy version %d.%d; known: 1.0, 2.0, 3.0",
                        name, major, minor);
    size_t start = major == 1 ? 10 : 12;
    if (length < start)
        return fail(&c, "the header is cut off");
    size_t header = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1)
        header |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (header > length - start)
        return fail(&c, "the header is cut off");
    c.at = (const char *)bytes + start;
    c.end = c.at + header;
    kkt_status status = read_dictionary(&c, out);
    if (status != KKT_OK)
        return status;
    if (!count_elements(out, size))
        return fail(&c, "the shape is larger than any file");
    *offset = start + header;
    if (length - *offset != *size)
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "'%s': the shape needs %zu bytes of data, the file holds %zu", name, *size,
                        length - *offset);
    return KKT_OK;
}

kkt_status kkt_npy_parse(const char *name, const void *bytes, size_t length, kkt_npy *out,
                         kkt_error *err) {
    kkt_npy array = {0};
    size_t offset = 0, size = 0;
    kkt_status status = parse_header(name, bytes, length, &array, &offset, &size, err);
    if (status != KKT_OK)
        return status;
    array.data = kkt_memory_alloc(size);
    memcpy(array.data, (const char *)bytes + offset, size);
    *out = array;
    return KKT_OK;
}

kkt_status kkt_npy_read(const char *path, kkt_npy *out, kkt_error *err) {
    char *bytes = NULL;
    size_t length = 0, offset = 0, size = 0;
    kkt_status status = kkt_file_read(path, FILE_LIMIT, &bytes, &length, err);
    if (status != KKT_OK)
        return status;
    kkt_npy array = {0};
    status = parse_header(path, (unsigned char *)bytes, length, &array, &offset, &size, err);
    if (status != KKT_OK) {
        free(bytes);
        return status;
    }
    memmove(bytes, bytes + offset, size); /* no second copy of a large tensor */
    array.data = bytes;
    *out = array;
    return KKT_OK;
}

kkt_status kkt_npy_write(const char *path, kkt_npy_type type, int rank, const int64_t *dims,
                         const void *data, kkt_error *err) {
    kkt_npy array = {.type = type, .rank = rank};
    if (rank < 0 || rank > KKT_NPY_DIMS)
        return kkt_fail(err, KKT_ERR_INPUT, 0, "'%s': %d dimensions; at most %d", path, rank,
                        KKT_NPY_DIMS);
    kkt_text header = {0};
    kkt_text_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                    TYPES[type].descr);
    for (int i = 0; i < rank; i++) {
        array.dims[i] = dims[i];
        kkt_text_printf(&header, "%s%" PRId64, i ? ", " : "", dims[i]);
    }
    kkt_text_add(&header, rank == 1 ? ",), }" : "), }");
    while ((10 + header.length + 1) % ALIGNMENT != 0)
        kkt_text_add(&header, " ");
    kkt_text_add(&header, "\n");
    size_t size = 0;
    kkt_status status = KKT_OK;
    if (!count_elements(&array, &size)) {
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "'%s': the shape is larger than any file", path);
    } else {
        const char start[] = {'\1', '\0', (char)(header.length & 0xFF), (char)(header.length >> 8)};
        kkt_text file = {0};
        kkt_text_add_bytes(&file, MAGIC, MAGIC_BYTES);
        kkt_text_add_bytes(&file, start, sizeof start);
        kkt_text_add_bytes(&file, header.data, header.length);
        kkt_text_add_bytes(&file, data, size);
        status = kkt_file_write(path, file.data, file.length, err);
        kkt_text_free(&file);
    }
    kkt_text_free(&header);
    return status;
}

void kkt_npy_free(kkt_npy *array) {
    free(array->data);
    *array = (kkt_npy){0};
}
