#include "tests/fuzz/sqlite_memory.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if HAS_FEATURE(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define UNSEEN __attribute__((no_sanitize("address")))
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define UNSEEN
#endif

/* ---- allocator ---- */

/* SQLite makes hundreds of small allocations an input. These come from pieces of sizes that are
 * powers of two; what of a piece is not asked for is poisoned, a freed piece is poisoned whole and
 * waits in a queue of its size before it is used again. */
enum { SMALLEST = 5, LARGEST = 20, HEADER = 16, SLAB = 1 << 21 };

typedef union piece {
    struct {
        int size, power;
        union piece *next; /* in the queue */
    } head;
    char bytes[HEADER];
} piece;

typedef struct queue {
    piece *first, *last;
} queue;

typedef struct heap {
    queue free[LARGEST + 1];
    char *slab;
    size_t left;
} heap;

static heap pieces;

static int power_of(int size) {
    int power = SMALLEST;
    while ((1 << power) < size + HEADER)
        power++;
    return power;
}

UNSEEN static piece *take_free(int power) {
    queue *q = &pieces.free[power];
    piece *p = q->first;
    if (p && p != q->last) { /* the last one stays: it has rested least */
        q->first = p->head.next;
        return p;
    }
    return NULL;
}

static piece *carve(int power) {
    size_t size = (size_t)1 << power;
    if (pieces.left < size) {
        pieces.slab = malloc(SLAB); /* kept: what is left of the one before is lost */
        if (!pieces.slab)
            abort();
        pieces.left = SLAB;
        ASAN_POISON_MEMORY_REGION(pieces.slab, SLAB);
    }
    pieces.left -= size;
    return (piece *)(void *)(pieces.slab + pieces.left);
}

UNSEEN static void *allocate(int size) {
    int power = size > 0 ? power_of(size) : SMALLEST;
    if (size < 0 || power > LARGEST)
        return NULL; /* no input needs a megabyte at once: out of memory */
    piece *p = take_free(power);
    if (!p)
        p = carve(power);
    p->head.size = size;
    p->head.power = power;
    ASAN_UNPOISON_MEMORY_REGION(p + 1, (size_t)size);
    return p + 1;
}

UNSEEN static void release(void *memory) {
    piece *p = (piece *)memory - 1;
    queue *q = &pieces.free[p->head.power];
    ASAN_POISON_MEMORY_REGION(p, (size_t)1 << p->head.power);
    p->head.next = NULL;
    if (q->last)
        q->last->head.next = p;
    else
        q->first = p;
    q->last = p;
}

UNSEEN static int size_of(void *memory) {
    return memory ? ((piece *)memory - 1)->head.size : 0;
}

static void *reallocate(void *memory, int size) {
    void *larger = allocate(size);
    int old = size_of(memory);
    if (!larger)
        return NULL;
    memcpy(larger, memory, (size_t)(old < size ? old : size));
    release(memory);
    return larger;
}

static int round_up(int size) {
    return (size + 7) & ~7;
}

static int start(void *unused) {
    (void)unused;
    return SQLITE_OK;
}

static void stop(void *unused) {
    (void)unused;
}

/* ---- files ---- */

enum { FILES = 8, REGIONS = 8, FILE_MAX = 1 << 24 };

typedef struct memory_file {
    char *path; /* NULL: a place that is free */
    uint8_t *data;
    size_t size, room;
    void *regions[REGIONS]; /* shared memory of a write-ahead log */
    int users;
} memory_file;

typedef struct handle {
    sqlite3_file base;
    memory_file *file;
} handle;

static memory_file files[FILES];

static void forget(memory_file *file) {
    for (int i = 0; i < REGIONS; i++)
        free(file->regions[i]);
    free(file->path);
    free(file->data);
    *file = (memory_file){0};
}

static memory_file *find_file(const char *path) {
    for (int i = 0; i < FILES; i++) {
        if (files[i].path && strcmp(files[i].path, path) == 0)
            return &files[i];
    }
    return NULL;
}

static memory_file *make_file(const char *path) {
    for (int i = 0; i < FILES; i++) {
        if (!files[i].path) {
            files[i].path = strdup(path);
            return files[i].path ? &files[i] : NULL;
        }
    }
    return NULL;
}

static memory_file *file_of(sqlite3_file *base) {
    return ((handle *)(void *)base)->file;
}

static int close_file(sqlite3_file *base) {
    file_of(base)->users--;
    return SQLITE_OK;
}

static int read_file(sqlite3_file *base, void *out, int amount, sqlite3_int64 offset) {
    const memory_file *f = file_of(base);
    size_t at = (size_t)offset, wanted = (size_t)amount;
    size_t there = at < f->size ? f->size - at : 0;
    size_t given = there < wanted ? there : wanted;
    if (given > 0)
        memcpy(out, f->data + at, given);
    memset((char *)out + given, 0, wanted - given);
    return given < wanted ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int resize(memory_file *f, size_t size) {
    if (size > FILE_MAX)
        return SQLITE_FULL;
    if (size > f->room) {
        uint8_t *larger = realloc(f->data, 2 * size);
        if (!larger)
            return SQLITE_FULL;
        f->data = larger;
        f->room = 2 * size;
    }
    if (size > f->size)
        memset(f->data + f->size, 0, size - f->size);
    f->size = size;
    return SQLITE_OK;
}

static int write_file(sqlite3_file *base, const void *data, int amount, sqlite3_int64 offset) {
    memory_file *f = file_of(base);
    if (offset < 0 || offset > FILE_MAX)
        return SQLITE_FULL;
    size_t end = (size_t)offset + (size_t)amount;
    int code = end > f->size ? resize(f, end) : SQLITE_OK;
    if (code == SQLITE_OK)
        memcpy(f->data + offset, data, (size_t)amount);
    return code;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size) {
    return resize(file_of(base), (size_t)size);
}

static int sync_file(sqlite3_file *base, int flags) {
    (void)base;
    (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *out) {
    *out = (sqlite3_int64)file_of(base)->size;
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *base, int level) {
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int check_lock(sqlite3_file *base, int *out) {
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int control_file(sqlite3_file *base, int operation, void *argument) {
    (void)base;
    (void)operation;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *base) {
    (void)base;
    return 512;
}

static int characteristics(sqlite3_file *base) {
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int map_shared(sqlite3_file *base, int region, int size, int extend, void volatile **out) {
    memory_file *f = file_of(base);
    *out = NULL;
    if (region >= REGIONS)
        return SQLITE_NOMEM;
    if (!f->regions[region] && extend)
        f->regions[region] = calloc(1, (size_t)size);
    *out = f->regions[region];
    return SQLITE_OK;
}

static int lock_shared(sqlite3_file *base, int offset, int count, int flags) {
    (void)base;
    (void)offset;
    (void)count;
    (void)flags;
    return SQLITE_OK;
}

static void order_shared(sqlite3_file *base) {
    (void)base;
}

static int unmap_shared(sqlite3_file *base, int drop) {
    memory_file *f = file_of(base);
    for (int i = 0; drop && i < REGIONS; i++) {
        free(f->regions[i]);
        f->regions[i] = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = lock_file,
    .xCheckReservedLock = check_lock,
    .xFileControl = control_file,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = map_shared,
    .xShmLock = lock_shared,
    .xShmBarrier = order_shared,
    .xShmUnmap = unmap_shared,
};

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *got) {
    (void)vfs;
    handle *h = (handle *)(void *)base;
    *h = (handle){0};
    memory_file *file = path ? find_file(path) : NULL;
    if (!file && path && (flags & SQLITE_OPEN_CREATE))
        file = make_file(path);
    if (!file)
        return SQLITE_CANTOPEN; /* nothing of the store's needs a nameless file on disk */
    file->users++;
    *h = (handle){.base.pMethods = &methods, .file = file};
    if (got)
        *got = flags;
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *vfs, const char *path, int sync) {
    (void)vfs;
    (void)sync;
    memory_file *file = find_file(path);
    if (!file)
        return SQLITE_IOERR_DELETE_NOENT;
    if (file->users > 0)
        return SQLITE_IOERR_DELETE;
    forget(file);
    return SQLITE_OK;
}

static int access_file(sqlite3_vfs *vfs, const char *path, int flags, int *out) {
    (void)vfs;
    (void)flags;
    *out = find_file(path) != NULL;
    return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *path, int size, char *out) {
    (void)vfs;
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
}

/* ---- both ---- */

void fuzz_sqlite_start(void) {
    static const sqlite3_mem_methods memory = {allocate, release, reallocate, size_of,
                                               round_up, start,   stop,       NULL};
    static sqlite3_vfs vfs;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (sqlite3_initialize() != SQLITE_OK)
        abort();
    vfs = *sqlite3_vfs_find(NULL); /* clocks and chance are the system's */
    vfs.zName = "fuzz";
    vfs.pNext = NULL;
    vfs.szOsFile = sizeof(handle);
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    vfs.xAccess = access_file;
    vfs.xFullPathname = full_path;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        abort();
}

void fuzz_sqlite_put(const char *path, const uint8_t *data, size_t size) {
    for (int i = 0; i < FILES; i++) {
        if (files[i].users != 0)
            abort();
        forget(&files[i]);
    }
    memory_file *file = make_file(path);
    if (!file || resize(file, size) != SQLITE_OK)
        abort();
    if (size > 0)
        memcpy(file->data, data, size);
}

void fuzz_sqlite_rename(const char *from, const char *to) {
    memory_file *file = find_file(from), *old = find_file(to);
    char *path = strdup(to);
    if (!file || !path || file->users > 0 || (old && old->users > 0))
        abort();
    if (old)
        forget(old);
    free(file->path);
    file->path = path;
}
