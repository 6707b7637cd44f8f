#include "tuner/worker/process.h"

#include <stdlib.h>
#include <string.h>

void kkt_frame_free(kkt_frame *frame) {
    free(frame->payload);
    *frame = (kkt_frame){0};
}

void kkt_packer_free(kkt_packer *packer) {
    free(packer->data);
    *packer = (kkt_packer){0};
}

void kkt_pack_bytes(kkt_packer *packer, const void *bytes, size_t size) {
    if (size > packer->capacity - packer->size) {
        size_t capacity = packer->capacity < 256 ? 256 : packer->capacity;
        while (capacity - packer->size < size) {
            if (capacity > SIZE_MAX / 2)
                abort();
            capacity *= 2;
        }
        unsigned char *data = realloc(packer->data, capacity);
        if (data == NULL)
            abort();
        packer->data = data;
        packer->capacity = capacity;
    }
    if (size > 0)
        memcpy(packer->data + packer->size, bytes, size);
    packer->size += size;
}

void kkt_pack_i64(kkt_packer *packer, int64_t value) {
    kkt_pack_bytes(packer, &value, sizeof value);
}

void kkt_pack_real(kkt_packer *packer, double value) {
    kkt_pack_bytes(packer, &value, sizeof value);
}

void kkt_pack_blob(kkt_packer *packer, const void *bytes, size_t size) {
    kkt_pack_i64(packer, (int64_t)size);
    kkt_pack_bytes(packer, bytes, size);
}

/* The NUL goes along, so that the reader can hand out a view. */
void kkt_pack_string(kkt_packer *packer, const char *text) {
    const char *some = text == NULL ? "" : text;
    kkt_pack_blob(packer, some, strlen(some) + 1);
}

void kkt_unpack_bytes(kkt_unpacker *unpacker, void *out, size_t size) {
    if (unpacker->failed || size > unpacker->size - unpacker->at) {
        unpacker->failed = true;
        memset(out, 0, size);
        return;
    }
    memcpy(out, unpacker->data + unpacker->at, size);
    unpacker->at += size;
}

int64_t kkt_unpack_i64(kkt_unpacker *unpacker) {
    int64_t value;
    kkt_unpack_bytes(unpacker, &value, sizeof value);
    return value;
}

double kkt_unpack_real(kkt_unpacker *unpacker) {
    double value;
    kkt_unpack_bytes(unpacker, &value, sizeof value);
    return value;
}

const unsigned char *kkt_unpack_blob(kkt_unpacker *unpacker, size_t *size) {
    *size = 0;
    int64_t length = kkt_unpack_i64(unpacker);
    if (unpacker->failed || length < 0 || (uint64_t)length > unpacker->size - unpacker->at) {
        unpacker->failed = true;
        return NULL;
    }
    const unsigned char *view = unpacker->data + unpacker->at;
    unpacker->at += (size_t)length;
    *size = (size_t)length;
    return view;
}

const char *kkt_unpack_string(kkt_unpacker *unpacker) {
    size_t size;
    const unsigned char *view = kkt_unpack_blob(unpacker, &size);
    if (view == NULL || size == 0 || memchr(view, 0, size) != view + size - 1) {
        unpacker->failed = true;
        return "";
    }
    return (const char *)view;
}

bool kkt_unpack_done(const kkt_unpacker *unpacker) {
    return !unpacker->failed && unpacker->at == unpacker->size;
}
