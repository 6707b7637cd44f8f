/* A user's tensors: .npy files named after a kernel's tensors, in one folder. */
#ifndef KKT_CLI_TENSORS_H
#define KKT_CLI_TENSORS_H

#include "base/npy.h"
#include "kernels/kernel.h"

typedef struct kkt_tensor_request {
    const kkt_kernel *kernel;
    const kkt_values *config;
    const char *folder;  /* of the files */
    const char *problem; /* "k=v,..." or NULL; keys not named follow from the files' shapes */
    const char *dtype;   /* --dtype or NULL; "bf16" says what u2 files hold */
    bool exact;          /* keep the files' values as they are; else round to the tensors' types */
} kkt_tensor_request;

/* Reads the input tensors and fills `problem`. `out` lists the kernel's tensors in its order, with
 * outputs and absent optional tensors without data; the caller frees it with
 * kkt_host_tensors_free. f2, f4, f8 and (as bf16) u2 serve for floating tensors, i4 and i8 for
 * integer ones; a leading batch of 1 may be left out. KKT_ERR_INPUT names tensor and file, and for
 * shapes the expected and the given one. */
kkt_status kkt_tensors_read(const kkt_tensor_request *request, kkt_values *problem,
                            kkt_host_tensors *out, kkt_error *err);
/* One file as a tensor of the given shape, its values as they are in the file; u2 is bf16.
 * `*found` false where there is no such file. */
kkt_status kkt_tensor_read(const char *path, const kkt_tensor *shape, kkt_host_tensor *out,
                           bool *found, kkt_error *err);
/* "FOLDER/NAME.npy"; malloc'ed. */
char *kkt_tensor_path(const char *folder, const char *name);
/* Writes FOLDER/NAME.npy, making the folder: fp64 as f8, fp32 as f4, fp16 as f2, bf16 as u2. */
kkt_status kkt_tensor_write(const char *folder, const kkt_host_tensor *host, kkt_error *err);
/* KKT_ERR_INPUT where writing `name` into `out_folder` would replace a file of `in_folder`. */
kkt_status kkt_tensors_check_out(const char *in_folder, const char *out_folder, const char *name,
                                 kkt_error *err);
/* The type of a file's values; u2 is bf16. */
kkt_dtype kkt_npy_dtype(kkt_npy_type type);
/* A type by name; KKT_ERR_INPUT lists the floating types. */
kkt_status kkt_dtype_parse(const char *name, kkt_dtype *out, kkt_error *err);

#endif
