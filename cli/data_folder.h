/* Where the recorded measurements that ship with the program lie. */
#ifndef KKT_CLI_DATA_FOLDER_H
#define KKT_CLI_DATA_FOLDER_H

#include "base/error.h"

/* $KKTTUNE_REFERENCE, else share/kkttune/reference beside an installed bin/, else db/reference of
 * the source tree around the program or, last, of the one it was built from. `*out` is malloc'ed,
 * NULL where none exists. KKT_ERR_INPUT: $KKTTUNE_REFERENCE names no folder. */
kkt_status kkt_reference_folder(char **out, kkt_error *err);

#endif
