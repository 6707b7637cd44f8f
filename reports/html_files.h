/* What the HTML page carries, as the build embeds it (reports/CMakeLists.txt): chart.js, plots.js,
 * style.css. */
#ifndef KKT_REPORTS_HTML_FILES_H
#define KKT_REPORTS_HTML_FILES_H

#include "kernels/embedded.h"

/* Ends in a row whose path is NULL. */
extern const kkt_embedded_file kkt_html_files[];

#endif
