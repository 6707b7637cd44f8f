/* Names in a database that this program does not have: a database outlives devices, kernels, styles
 * and values, so that they are no damage; what they name is in no table. */
#ifndef KKT_CLI_DB_NAMES_H
#define KKT_CLI_DB_NAMES_H

#include "db/store.h"

/* Prints one line on standard error where candidates have such names: how many, and the first's.
 * KKT_OK there, too; else what reading failed with. */
kkt_status kkt_db_names_note(kkt_db *db, const char *path, kkt_error *err);

#endif
