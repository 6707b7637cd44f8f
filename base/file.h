/* Files and folders. All writing of results goes through kkt_file_write: a temporary file in the
 * same folder, flushed, then renamed, so that a reader never sees half a file. What a killed
 * process leaves of that is taken and renamed by the next who writes the same file. */
#ifndef KKT_BASE_FILE_H
#define KKT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Reads a whole file; `*data` is malloc'ed and NUL-terminated (length excludes the NUL). Larger
 * than `limit` bytes, or not a regular file: KKT_ERR_INPUT. Unreadable: KKT_ERR_INPUT for a file
 * that does not exist, KKT_ERR_ENVIRONMENT otherwise. */
kkt_status kkt_file_read(const char *path, size_t limit, char **data, size_t *length,
                         kkt_error *err);
/* Atomic replacement. KKT_ERR_ENVIRONMENT names path and cause; nothing is left behind. */
kkt_status kkt_file_write(const char *path, const void *data, size_t length, kkt_error *err);
/* Makes a folder and its parents. */
kkt_status kkt_folder_make(const char *path, kkt_error *err);
/* Checks that files can be made in an existing or creatable folder, by making and removing one. */
kkt_status kkt_folder_check_writable(const char *path, kkt_error *err);
bool kkt_file_exists(const char *path);
/* "a/b" from "a" and "b"; malloc'ed. An absolute `name` is returned as it is. */
char *kkt_path_join(const char *folder, const char *name);
/* The folder this program lies in (from /proc/self/exe); malloc'ed, NULL if it cannot be told. */
char *kkt_program_folder(void);

#endif
