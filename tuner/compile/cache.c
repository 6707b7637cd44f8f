#include "tuner/compile/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"

/* An entry: mark, SHA-256 (hex) of all that follows it, key, result. The mark names the layout. */
static const char MARK[8] = {'k', 'k', 't', 'c', 'u', 'b', '0', '1'};
enum { HASH_BYTES = 64, HEAD_BYTES = 8 + HASH_BYTES };
static const size_t ENTRY_LIMIT = (size_t)256 << 20;

struct kkt_cache {
    char *folder; /* NULL where the environment names none */
    bool writable;
    char *note; /* why nothing can be kept; NULL: it can */
};

static char *default_folder(void) {
    const char *base = getenv("XDG_CACHE_HOME");
    if (base != NULL && base[0] == '/')
        return kkt_path_join(base, "kkttune");
    const char *home = getenv("HOME");
    return home != NULL && home[0] == '/' ? kkt_path_join(home, ".cache/kkttune") : NULL;
}

kkt_cache *kkt_cache_open(const char *folder) {
    kkt_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        abort();
    cache->folder = folder != NULL ? strdup(folder) : default_folder();
    kkt_error err = {0};
    if (cache->folder == NULL)
        cache->note = strdup("no folder is named: neither HOME nor XDG_CACHE_HOME is set");
    else if (kkt_folder_check_writable(cache->folder, &err) != KKT_OK)
        cache->note = strdup(err.message);
    cache->writable = cache->note == NULL;
    return cache;
}

void kkt_cache_close(kkt_cache *cache) {
    if (cache == NULL)
        return;
    free(cache->folder);
    free(cache->note);
    free(cache);
}

const char *kkt_cache_folder(const kkt_cache *cache) {
    return cache->folder == NULL ? "" : cache->folder;
}

bool kkt_cache_writable(const kkt_cache *cache) {
    return cache->writable;
}

const char *kkt_cache_note(const kkt_cache *cache) {
    return cache->note;
}

/* ---- results as bytes ---- */

void kkt_result_pack(const kkt_compile_result *result, kkt_packer *out) {
    const kkt_cubin_info *info = &result->info;
    kkt_pack_i64(out, result->ok);
    kkt_pack_i64(out, info->registers);
    kkt_pack_i64(out, info->static_smem_bytes);
    kkt_pack_i64(out, info->spill_store_bytes);
    kkt_pack_i64(out, info->spill_load_bytes);
    kkt_pack_i64(out, info->stack_bytes);
    kkt_pack_i64(out, info->barriers);
    kkt_pack_i64(out, info->max_threads);
    kkt_pack_real(out, result->compile_ms);
    kkt_pack_string(out, result->log);
    kkt_pack_blob(out, result->cubin, result->cubin_size);
}

bool kkt_result_unpack(kkt_unpacker *in, kkt_compile_result *out) {
    *out = (kkt_compile_result){.ok = kkt_unpack_i64(in) == 1};
    kkt_cubin_info *info = &out->info;
    info->registers = (int)(kkt_unpack_i64(in) & 0xff);
    info->static_smem_bytes = kkt_unpack_i64(in);
    info->spill_store_bytes = kkt_unpack_i64(in);
    info->spill_load_bytes = kkt_unpack_i64(in);
    info->stack_bytes = kkt_unpack_i64(in);
    info->barriers = (int)(kkt_unpack_i64(in) & 0xff);
    info->max_threads = (int)(kkt_unpack_i64(in) & 0x7ff);
    out->compile_ms = kkt_unpack_real(in);
    const char *log = kkt_unpack_string(in);
    size_t size;
    const unsigned char *cubin = kkt_unpack_blob(in, &size);
    if (!kkt_unpack_done(in) || (out->ok && size == 0)) {
        *out = (kkt_compile_result){0};
        return false;
    }
    out->log = strdup(log);
    if (out->log == NULL)
        abort();
    if (!out->ok)
        return true;
    info->cubin_bytes = (int64_t)size;
    out->cubin_size = size;
    out->cubin = malloc(size);
    if (out->cubin == NULL)
        abort();
    memcpy(out->cubin, cubin, size);
    return true;
}

void kkt_cache_entry_make(const char *key, const kkt_compile_result *result, kkt_packer *out) {
    kkt_packer body = {0};
    char hash[HASH_BYTES + 1];
    kkt_pack_string(&body, key);
    kkt_result_pack(result, &body);
    kkt_sha256_of(body.data, body.size, hash);
    kkt_pack_bytes(out, MARK, sizeof MARK);
    kkt_pack_bytes(out, hash, HASH_BYTES);
    kkt_pack_bytes(out, body.data, body.size);
    kkt_packer_free(&body);
}

bool kkt_cache_entry_parse(const void *bytes, size_t size, const char *key,
                           kkt_compile_result *out) {
    const unsigned char *entry = bytes;
    char hash[HASH_BYTES + 1];
    if (size < HEAD_BYTES || memcmp(entry, MARK, sizeof MARK) != 0)
        return false;
    kkt_sha256_of(entry + HEAD_BYTES, size - HEAD_BYTES, hash);
    if (memcmp(hash, entry + sizeof MARK, HASH_BYTES) != 0)
        return false;
    kkt_unpacker in = {.data = entry + HEAD_BYTES, .size = size - HEAD_BYTES};
    if (strcmp(kkt_unpack_string(&in), key) != 0 || !kkt_result_unpack(&in, out))
        return false;
    out->from_cache = true;
    if (!out->ok)
        kkt_compile_result_free(out);
    return out->from_cache;
}

/* ---- files ---- */

static char *entry_path(const kkt_cache *cache, const char *key) {
    char name[HASH_BYTES + 16];
    snprintf(name, sizeof name, "%.64s.cubin", key);
    return kkt_path_join(cache->folder, name);
}

bool kkt_cache_get(const kkt_cache *cache, const char *key, kkt_compile_result *out) {
    if (cache->folder == NULL)
        return false;
    char *path = entry_path(cache, key), *data = NULL;
    size_t size = 0;
    bool found = kkt_file_read(path, ENTRY_LIMIT, &data, &size, NULL) == KKT_OK;
    if (found) {
        found = kkt_cache_entry_parse(data, size, key, out);
        free(data);
    }
    free(path);
    return found;
}

void kkt_cache_put(kkt_cache *cache, const char *key, const kkt_compile_result *result) {
    if (!cache->writable || !result->ok)
        return;
    kkt_packer entry = {0};
    kkt_cache_entry_make(key, result, &entry);
    char *path = entry_path(cache, key);
    cache->writable = kkt_folder_make(cache->folder, NULL) == KKT_OK &&
                      kkt_file_write(path, entry.data, entry.size, NULL) == KKT_OK;
    free(path);
    kkt_packer_free(&entry);
}
