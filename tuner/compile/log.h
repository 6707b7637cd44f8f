/* What ptxas says in the program log and a cubin does not hold. */
#ifndef KKT_TUNER_LOG_H
#define KKT_TUNER_LOG_H

#include "tuner/compile/compile.h"

/* Sums spill stores and loads over the functions the log speaks of. */
void kkt_log_spills(const char *log, kkt_cubin_info *info);
/* The integer before `label`, as in "12 bytes spill stores", at its first place; -1: none. Used by
 * tests to compare log and cubin. */
int64_t kkt_log_number(const char *log, const char *label);

#endif
