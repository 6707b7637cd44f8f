/* Whether an entry of an export makes sense; a part of reading one back (view_read.c). */
#ifndef KKT_REPORTS_VIEW_CHECK_H
#define KKT_REPORTS_VIEW_CHECK_H

#include "base/json.h"
#include "reports/view.h"

/* Members of `json`, and what was read from them into `entry`: kernel and style exist,
 * problem and configuration have known keys with values that are listed, figures are of the right
 * kind and in the range of `arch`. Else KKT_ERR_INPUT names the member and its value
 * ("launch.threads is -5, not 1 to 1024"); members that may be left out may be absent. */
kkt_status kkt_view_check_entry(const kkt_json *json, const kkt_entry *entry, const kkt_arch *arch,
                                kkt_error *err);

#endif
