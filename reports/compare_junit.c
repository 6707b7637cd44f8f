/* A comparison as a JUnit report. */
#include <string.h>

#include "reports/compare.h"

/* Length of the UTF-8 sequence at `at`; 0 where it is none that XML 1.0 may hold (Unicode 15,
 * table 3-7; XML 1.0, production 2). */
static size_t sequence_length(const unsigned char *at) {
    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f ? 1 : 0;
    size_t length = at[0] >= 0xc2 && at[0] <= 0xdf   ? 2
                    : at[0] >= 0xe0 && at[0] <= 0xef ? 3
                    : at[0] >= 0xf0 && at[0] <= 0xf4 ? 4
                                                     : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool beyond = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    bool no_character = at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe; /* U+FFFE, U+FFFF */
    return overlong || beyond || no_character ? 0 : length;
}

static void add_xml(kkt_text *out, const char *raw) {
    char piece[8];
    for (const char *at = raw; *at != '\0';) {
        size_t length = sequence_length((const unsigned char *)at);
        memcpy(piece, length > 0 ? at : "?", length > 0 ? length : 1);
        piece[length > 0 ? length : 1] = '\0';
        kkt_text_add_html(out, piece);
        at += length > 0 ? length : 1;
    }
}

/* What to know of made-up times, as the suite's own output. */
static void add_caution(const kkt_compared *comparison, kkt_text *out) {
    kkt_text caution = {0};
    kkt_compare_caution(comparison, &caution);
    if (caution.length > 0) {
        kkt_text_add(out, "    <system-out>");
        add_xml(out, kkt_text_get(&caution));
        kkt_text_add(out, "</system-out>\n");
    }
    kkt_text_free(&caution);
}

static void add_case(const kkt_compared *comparison, const kkt_compare_row *row, kkt_text *out) {
    kkt_text sentence = {0};
    kkt_compare_sentence(comparison, row, &sentence);
    kkt_text_add(out, "    <testcase classname=\"");
    add_xml(out, row->arch);
    kkt_text_add(out, ".");
    add_xml(out, row->device);
    kkt_text_add(out, ".");
    add_xml(out, row->kernel);
    kkt_text_add(out, "\" name=\"");
    add_xml(out, row->problem);
    kkt_text_printf(out, " C=%lld\" time=\"%.9f\">", (long long)row->chunk,
                    row->b.timed ? row->b.time_us * 1e-6 : 0.0);
    bool fails = row->verdict == KKT_COMPARE_REGRESSED || row->verdict == KKT_COMPARE_FAILED;
    bool skipped = row->verdict == KKT_COMPARE_ABSENT || row->verdict == KKT_COMPARE_NEW;
    const char *element = fails ? "failure" : skipped ? "skipped" : "system-out";
    kkt_text_printf(out, "<%s%s", element, fails || skipped ? " message=\"" : ">");
    add_xml(out, kkt_text_get(&sentence));
    if (fails) {
        kkt_text_printf(out, "\" type=\"%s\">was: ", kkt_compare_verdict_name(row->verdict));
        add_xml(out, row->a.config != NULL ? row->a.config : "-");
        kkt_text_add(out, "; is: ");
        add_xml(out, row->b.config != NULL ? row->b.config : "-");
    }
    if (skipped)
        kkt_text_add(out, "\"/></testcase>\n");
    else
        kkt_text_printf(out, "</%s></testcase>\n", element);
    kkt_text_free(&sentence);
}

void kkt_compare_junit(const kkt_compared *comparison, kkt_text *out) {
    char counts[160];
    snprintf(counts, sizeof counts, "tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"",
             comparison->row_count, kkt_compare_failures(comparison),
             comparison->counts[KKT_COMPARE_ABSENT] + comparison->counts[KKT_COMPARE_NEW]);
    kkt_text_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites %s>\n", counts);
    kkt_text_printf(out, "  <testsuite name=\"kkttune compare\" %s>\n", counts);
    for (size_t i = 0; i < comparison->row_count; i++)
        add_case(comparison, &comparison->rows[i], out);
    add_caution(comparison, out);
    kkt_text_add(out, "  </testsuite>\n</testsuites>\n");
}
