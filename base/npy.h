/* NumPy .npy files, version 1.0 to 3.0, C order, little endian. Input is hostile. */
#ifndef KKT_BASE_NPY_H
#define KKT_BASE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

#define KKT_NPY_DIMS 8

typedef enum kkt_npy_type {
    KKT_NPY_F2,
    KKT_NPY_F4,
    KKT_NPY_F8,
    KKT_NPY_U2,
    KKT_NPY_I4,
    KKT_NPY_I8
} kkt_npy_type;

typedef struct kkt_npy {
    kkt_npy_type type;
    int rank;
    int64_t dims[KKT_NPY_DIMS];
    int64_t elements; /* the product of dims */
    void *data;       /* malloc'ed; freed by kkt_npy_free */
} kkt_npy;

/* Fortran order, big endian, objects, a header or shape that does not match the file's length:
 * KKT_ERR_INPUT naming the file and what is wrong. */
kkt_status kkt_npy_read(const char *path, kkt_npy *out, kkt_error *err);
/* Parses a file already in memory (the fuzzers' way in); `name` is for errors. */
kkt_status kkt_npy_parse(const char *name, const void *bytes, size_t length, kkt_npy *out,
                         kkt_error *err);
kkt_status kkt_npy_write(const char *path, kkt_npy_type type, int rank, const int64_t *dims,
                         const void *data, kkt_error *err);
void kkt_npy_free(kkt_npy *array); /* and zeroes it */

#endif
