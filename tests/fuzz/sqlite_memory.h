/* SQLite for a fuzz target: files in memory, and an allocator that costs little under
 * AddressSanitizer and still shows it every step outside of an allocation. */
#ifndef KKT_TESTS_FUZZ_SQLITE_MEMORY_H
#define KKT_TESTS_FUZZ_SQLITE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Once, before SQLite is used. Every file that is opened by a path afterwards is one of these. */
void fuzz_sqlite_start(void);
/* Forgets all files and makes one of these bytes (copied). A file that is still open then is a
 * handle or a statement that was never closed: ends the process. */
void fuzz_sqlite_put(const char *path, const uint8_t *data, size_t size);
/* Puts a file in the place of another; both must be closed, and the first must be there. */
void fuzz_sqlite_rename(const char *from, const char *to);

#endif
