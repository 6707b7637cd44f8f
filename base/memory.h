/* Allocation that does not fail: out of memory ends the process with one line on standard error
 * and exit code 3, for there is nothing a command could still do. Freed with free(). */
#ifndef KKT_BASE_MEMORY_H
#define KKT_BASE_MEMORY_H

#include <stddef.h>

_Noreturn void kkt_memory_exhausted(void);
void *kkt_memory_alloc(size_t size); /* zeroed; size 0 gives a unique pointer */
void *kkt_memory_resize(void *block, size_t size);
char *kkt_memory_strdup(const char *text);

#endif
