/* kkttune list counters: the table of counters and, from CUPTI without a GPU, which chips have them
 * in how many passes. */
#ifndef KKT_CLI_LIST_COUNTERS_H
#define KKT_CLI_LIST_COUNTERS_H

#include "base/json.h"

/* Adds the arrays `counters` and `counter_chips` to `root`; where there is no CUPTI the second is
 * empty and `counter_chips_note` says why. */
void kkt_list_counters_json(kkt_json *root);
void kkt_list_counters_print(void);

#endif
