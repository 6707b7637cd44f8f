/* Where a command measures: --backend, a GPU of the architecture, else the recorded measurements.
 */
#ifndef KKT_CLI_BACKEND_CHOICE_H
#define KKT_CLI_BACKEND_CHOICE_H

#include "cli/command.h"
#include "model/arch.h"
#include "tuner/measure/backend.h"

typedef struct kkt_backend_choice {
    const kkt_args *args; /* --backend, --device, --gpu, --cache */
    bool json;            /* standard output is for JSON */
    const kkt_arch *arch;
    const kkt_device *device;     /* in: asked for; out: the GPU's or the recorded one */
    char *reference_folder;       /* of the recordings; NULL: none; freed by _drop */
    const kkt_backend_type *type; /* NULL: none, see `replay` */
    kkt_backend *backend;
    bool replay;    /* the recorded measurements serve */
    char line[700]; /* which it is and why */
} kkt_backend_choice;

/* Whether --backend names one; KKT_ERR_INPUT lists what there is. Opens nothing. */
kkt_status kkt_backend_choice_check(const kkt_args *args, kkt_error *err);
/* Opens the backend and notes in one line which it is and why. `args`, `json`, `arch` and `device`
 * are filled by the caller. KKT_ERR_INPUT: no such backend; KKT_ERR_ENVIRONMENT: it was asked for
 * and cannot be had. Drop it in any case. */
kkt_status kkt_backend_choice_make(kkt_backend_choice *choice, kkt_error *err);
/* Where `db_path` is no file yet and recordings will serve: reads them into memory, so that a
 * refused one leaves no empty database behind. */
kkt_status kkt_backend_choice_try_recordings(const kkt_backend_choice *choice, const char *db_path,
                                             kkt_error *err);
/* Prints that line: on standard output, or on standard error where that is for JSON. */
void kkt_backend_choice_say(const kkt_backend_choice *choice);
void kkt_backend_choice_drop(kkt_backend_choice *choice);

#endif
