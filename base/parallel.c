#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS_MAX = 16 };

typedef struct job {
    atomic_int_least64_t next;
    int64_t count;
    void (*work)(void *context, int64_t index);
    void *context;
} job;

static void *run(void *argument) {
    job *j = argument;
    for (;;) {
        const int64_t index = atomic_fetch_add(&j->next, 1);
        if (index >= j->count)
            return NULL;
        j->work(j->context, index);
    }
}

void kkt_parallel_for(int64_t count, void (*work)(void *context, int64_t index), void *context) {
    job j = {.count = count, .work = work, .context = context};
    pthread_t threads[THREADS_MAX];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t wanted = processors < THREADS_MAX ? processors : THREADS_MAX;
    wanted = wanted < count ? wanted : count;
    int started = 0;
    while (started < wanted - 1 && pthread_create(&threads[started], NULL, run, &j) == 0)
        started++;
    run(&j);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
