/* What of a kernel the C header holds: rows of one style, that of its first problem's best. */
#ifndef KKT_REPORTS_HEADER_ROWS_H
#define KKT_REPORTS_HEADER_ROWS_H

#include "reports/view.h"

/* The entry that a kernel's macros in the header are of, whose style all its rows have; NULL: the
 * header has nothing of the kernel. */
const kkt_entry *kkt_header_standing(const kkt_view *view, const char *kernel);

/* The entry of another style that is faster than a row of the header, on its problem at its chunk
 * size: by times that compare, or, where the row has no time, by KKT_LOOKUP_STYLE of what it is
 * predicted to take. NULL: none is. */
const kkt_entry *kkt_header_faster(const kkt_view *view, const kkt_entry *row);

/* The problems and chunk sizes of a kernel on which `style` is the fastest and not the header's
 * (which is slower there by kkt_header_faster, or has no row where this one has a time). */
size_t kkt_header_left_out(const kkt_view *view, const char *kernel, const char *style);

#endif
