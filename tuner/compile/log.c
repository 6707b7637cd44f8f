#include "tuner/compile/log.h"

#include <ctype.h>
#include <string.h>

/* The number that ends just before `at`, a space between. */
static int64_t number_before(const char *log, const char *at) {
    const char *end = at;
    while (end > log && end[-1] == ' ')
        end--;
    const char *begin = end;
    while (begin > log && isdigit((unsigned char)begin[-1]))
        begin--;
    if (begin == end || end - begin > 9)
        return -1;
    int64_t value = 0;
    for (; begin < end; begin++)
        value = 10 * value + (*begin - '0');
    return value;
}

int64_t kkt_log_number(const char *log, const char *label) {
    const char *at = strstr(log, label);
    return at == NULL ? -1 : number_before(log, at);
}

/* Of one kernel, whose part of the log ends at `end`, with the functions that are not inlined. */
static int64_t sum(const char *log, const char *end, const char *label) {
    int64_t total = 0;
    for (const char *at = strstr(log, label); at != NULL && at < end; at = strstr(at + 1, label)) {
        int64_t value = number_before(log, at);
        total += value > 0 ? value : 0;
    }
    return total;
}

void kkt_log_spills(const char *log, kkt_cubin_info *info) {
    static const char next_kernel[] = "Compiling entry function";
    info->spill_store_bytes = info->spill_load_bytes = 0;
    for (const char *part = log, *end; *part != '\0'; part = end) {
        end = strstr(part + 1, next_kernel);
        if (end == NULL)
            end = part + strlen(part);
        const int64_t stores = sum(part, end, "bytes spill stores");
        const int64_t loads = sum(part, end, "bytes spill loads");
        if (stores > info->spill_store_bytes)
            info->spill_store_bytes = stores;
        if (loads > info->spill_load_bytes)
            info->spill_load_bytes = loads;
    }
}
