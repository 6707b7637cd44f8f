/* Stands in for libFuzzer where the compiler has none: runs the target over the corpus and over
 * seeded mutations of it. Takes the same arguments: -max_total_time=SECONDS, -runs=N, folders. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEEDS_MAX = 256, SEED_BYTES = 1 << 16, GROWTH = 64 };

typedef struct seed {
    uint8_t *bytes;
    size_t size;
} seed;

typedef struct corpus {
    size_t count;
    seed seeds[SEEDS_MAX];
} corpus;

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void add_file(corpus *all, const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || all->count == SEEDS_MAX) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    seed *at = &all->seeds[all->count++];
    at->bytes = malloc(SEED_BYTES);
    if (at->bytes == NULL)
        exit(2);
    at->size = fread(at->bytes, 1, SEED_BYTES, file);
    fclose(file);
}

static void add_folder(corpus *all, const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(2);
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            add_file(all, name);
    }
    closedir(folder);
}

/* In memory of exactly its size, so that a sanitizer sees every step over the end. */
static void run_exact(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        exit(2);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t mutate(uint8_t *bytes, size_t size, const corpus *all, uint64_t *random) {
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '[', ',', '9', '-'};
    size_t changes = 1 + next_random(random) % 6;
    for (size_t i = 0; i < changes; i++) {
        size_t at = size > 0 ? next_random(random) % size : 0;
        const seed *other = &all->seeds[next_random(random) % all->count];
        size_t piece = other->size > 0 ? next_random(random) % other->size % GROWTH : 0;
        switch (next_random(random) % 5) {
        case 0: /* cut the end off */
            size = at;
            break;
        case 1: /* put a piece of another seed over this place */
            if (piece <= size - at)
                memcpy(bytes + at, other->bytes, piece);
            break;
        case 2: /* repeat a byte */
            if (size < SEED_BYTES && size > 0) {
                memmove(bytes + at + 1, bytes + at, size - at);
                size++;
            }
            break;
        case 3:
            if (size > 0)
                bytes[at] ^= (uint8_t)(1U << next_random(random) % 8);
            break;
        default:
            if (size > 0)
                bytes[at] = edges[next_random(random) % sizeof edges];
            break;
        }
    }
    return size;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    corpus all = {0};
    double limit = 2;
    long runs = 1000000;
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "-max_total_time=%lf", &limit) == 1 ||
            sscanf(argv[i], "-runs=%ld", &runs) == 1)
            continue;
        if (argv[i][0] != '-')
            add_folder(&all, argv[i]);
    }
    if (all.count == 0) {
        fprintf(stderr, "no seeds\n");
        return 2;
    }
    run_exact((const uint8_t *)"", 0);
    for (size_t i = 0; i < all.count; i++)
        run_exact(all.seeds[i].bytes, all.seeds[i].size);
    uint64_t random = 1;
    uint8_t *bytes = malloc(SEED_BYTES + GROWTH);
    if (bytes == NULL)
        return 2;
    double end = seconds() + limit;
    long done = 0;
    for (; done < runs && seconds() < end; done++) {
        const seed *from = &all.seeds[next_random(&random) % all.count];
        memcpy(bytes, from->bytes, from->size);
        run_exact(bytes, mutate(bytes, from->size, &all, &random));
    }
    printf("%zu seeds, %ld mutations\n", all.count, done);
    free(bytes);
    for (size_t i = 0; i < all.count; i++)
        free(all.seeds[i].bytes);
    return 0;
}
