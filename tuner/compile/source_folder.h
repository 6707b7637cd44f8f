/* Device sources from a folder instead of the embedded ones: a changed copy can be compiled and
 * checked by the program as it is. */
#ifndef KKT_TUNER_SOURCE_FOLDER_H
#define KKT_TUNER_SOURCE_FOLDER_H

#include "base/error.h"
#include "base/text.h"

/* Appends `path` (relative to `folder`, which is laid out as kernels/ is) to `out`, with each
 * `#include "name"` that begins a line replaced by that file where it is met first and left out
 * after that: one text for kkt_compile_job.source_text. #line directives keep the compiler's
 * messages true. KKT_ERR_INPUT where a file is missing, over 1 MiB, or leads out of the folder. */
kkt_status kkt_source_folder_read(const char *folder, const char *path, kkt_text *out,
                                  kkt_error *err);

#endif
