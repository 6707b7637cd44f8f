/* Recordings: measured rows as text (JSON lines, docs/formats.md), the form in which reference
 * measurements ship. Reading is all or nothing. */
#ifndef KKT_DB_RECORDING_H
#define KKT_DB_RECORDING_H

#include "base/text.h"
#include "db/store.h"

/* Writes every measured (not replayed) row that matches, sorted; the same database gives the same
 * bytes. Rows of more than one architecture or device: KKT_ERR_INPUT; none: KKT_ERR_MISSING,
 * nothing written. */
kkt_status kkt_recording_export(kkt_db *db, const kkt_result_filter *filter, const char *path,
                                int64_t *rows, kkt_error *err);
/* The same appended to `out`; `replayed` takes in the rows that came from recordings. */
kkt_status kkt_recording_export_text(kkt_db *db, const kkt_result_filter *filter, bool replayed,
                                     kkt_text *out, int64_t *rows, kkt_error *err);
/* Imports one recording as provenance REPLAYED, in one transaction. A truncated or malformed
 * file: KKT_ERR_INPUT naming file and line, nothing imported. Rows that are there already are
 * not doubled; `*rows` counts the recording's. */
kkt_status kkt_recording_import(kkt_db *db, const char *path, int64_t *rows, kkt_error *err);
/* The same from memory; `name` is for errors. */
kkt_status kkt_recording_import_text(kkt_db *db, const char *name, const char *text, size_t length,
                                     int64_t *rows, kkt_error *err);
/* Imports every recording "*.jsonl" of a folder whose arch is `arch` (NULL: any) in name order.
 * A folder that does not exist imports nothing. */
kkt_status kkt_recording_import_folder(kkt_db *db, const char *folder, const char *arch,
                                       int64_t *rows, kkt_error *err);
/* The device named by the recordings of an architecture in `folder` (its first one's); malloc'ed,
 * NULL where there are none. */
char *kkt_recording_device(const char *folder, const char *arch);

#endif
