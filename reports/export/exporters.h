/* The exporters and reports, one a file; report.c lists them. */
#ifndef KKT_REPORTS_EXPORTERS_H
#define KKT_REPORTS_EXPORTERS_H

#include "reports/report.h"

extern const kkt_report_type kkt_report_json;
extern const kkt_report_type kkt_report_header;
extern const kkt_report_type kkt_report_dispatch;
extern const kkt_report_type kkt_report_markdown;
extern const kkt_report_type kkt_report_html;

#endif
