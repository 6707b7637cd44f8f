/* The cubin cache: one file a key, written beside its place and renamed. An entry that is damaged
 * or of another layout counts as absent and is written anew. */
#ifndef KKT_TUNER_CACHE_H
#define KKT_TUNER_CACHE_H

#include "tuner/compile/compile.h"
#include "tuner/worker/process.h"

typedef struct kkt_cache kkt_cache;

/* `folder` NULL: $XDG_CACHE_HOME/kkttune, else ~/.cache/kkttune. Never fails: a folder that cannot
 * be made or written serves what it holds. */
kkt_cache *kkt_cache_open(const char *folder);
void kkt_cache_close(kkt_cache *cache); /* NULL is a no-op */
const char *kkt_cache_folder(const kkt_cache *cache);
bool kkt_cache_writable(const kkt_cache *cache);
/* One line why nothing could be kept when it was opened, or NULL. */
const char *kkt_cache_note(const kkt_cache *cache);

/* True with `out` filled (from_cache set) where there is a good entry. */
bool kkt_cache_get(const kkt_cache *cache, const char *key, kkt_compile_result *out);
/* Keeps a result that is ok; a write that fails makes the cache read-only from here on. */
void kkt_cache_put(kkt_cache *cache, const char *key, const kkt_compile_result *result);

/* An entry's bytes, made and read (hostile input). */
void kkt_cache_entry_make(const char *key, const kkt_compile_result *result, kkt_packer *out);
bool kkt_cache_entry_parse(const void *bytes, size_t size, const char *key,
                           kkt_compile_result *out);

/* A result as a payload: what an entry holds and what a compile worker answers. */
void kkt_result_pack(const kkt_compile_result *result, kkt_packer *out);
bool kkt_result_unpack(kkt_unpacker *in, kkt_compile_result *out);

#endif
