/* Status codes and the error object of every fallible kkttune function.
 *
 * A function that can fail returns kkt_status and takes a `kkt_error *` as its last parameter.
 * On KKT_OK the error is left untouched; otherwise it is filled with one sentence that names the
 * file, key or value and the remedy. `err` may be NULL where the caller does not want the text.
 * No function prints; only the command-line program does. */
#ifndef KKTTUNE_STATUS_H
#define KKTTUNE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The values are the program's exit codes. */
typedef enum kkt_status {
    KKT_OK = 0,
    KKT_ERR_MISSING = 1,     /* something asked for failed or is not there */
    KKT_ERR_INPUT = 2,       /* bad usage or bad input (file, key, value) */
    KKT_ERR_ENVIRONMENT = 3, /* disk, permission, memory, GPU, driver */
} kkt_status;

typedef struct kkt_error {
    kkt_status status;
    int native;        /* errno, SQLite, CUDA, NVRTC or CUPTI code; 0 where there is none */
    char message[480]; /* one sentence, no line break */
} kkt_error;

#ifdef __cplusplus
}
#endif

#endif
