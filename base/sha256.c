#include "base/sha256.h"

#include <sha2.h>
#include <stdlib.h>

#include "base/memory.h"

struct kkt_sha256 {
    SHA2_CTX context;
};

kkt_sha256 *kkt_sha256_open(void) {
    kkt_sha256 *hash = kkt_memory_alloc(sizeof *hash);
    SHA256Init(&hash->context);
    return hash;
}

void kkt_sha256_add(kkt_sha256 *hash, const void *bytes, size_t length) {
    SHA256Update(&hash->context, bytes, length);
}

void kkt_sha256_close(kkt_sha256 *hash, char out[65]) {
    SHA256End(&hash->context, out);
    free(hash);
}

void kkt_sha256_of(const void *bytes, size_t length, char out[65]) {
    kkt_sha256 *hash = kkt_sha256_open();
    kkt_sha256_add(hash, bytes, length);
    kkt_sha256_close(hash, out);
}
