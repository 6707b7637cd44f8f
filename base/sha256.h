/* SHA-256 (libmd). */
#ifndef KKT_BASE_SHA256_H
#define KKT_BASE_SHA256_H

#include <stddef.h>

typedef struct kkt_sha256 kkt_sha256;
kkt_sha256 *kkt_sha256_open(void);
void kkt_sha256_add(kkt_sha256 *hash, const void *bytes, size_t length);
/* 64 hex digits and a NUL; closes the object. */
void kkt_sha256_close(kkt_sha256 *hash, char out[65]);
/* The hash of one piece. */
void kkt_sha256_of(const void *bytes, size_t length, char out[65]);

#endif
