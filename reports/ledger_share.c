#include "reports/ledger_share.h"

#include <math.h>

#include "reports/canonical.h"

static double row_fma(double n) {
    return n * (n - 1) * (n - 2) / 6;
}

static double recursive_fma(int64_t n, int64_t base) {
    if (n <= base)
        return row_fma((double)n);
    double half = (double)(n / 2);
    return 2 * recursive_fma(n / 2, base) + 2 * half * half * half;
}

/* m diagonal blocks, then block row by block row. */
static double flat_fma(int64_t n, int64_t base) {
    int64_t m = n / base;
    double products = 0;
    for (int64_t d = 1; d < m; d++)
        products += (double)((m - d) * (d + 1));
    double b = (double)base;
    return (double)m * row_fma(b) + products * b * b * b;
}

double kkt_ledger_share(const char *config, const char *problem) {
    int64_t chunk = kkt_pair_integer(config, "chunk", 0);
    int64_t base = kkt_pair_integer(config, "base", 16);
    if (chunk < 1 || chunk > 65536 || base < 1)
        return (double)NAN;
    if (base > chunk)
        base = chunk;
    double inverse;
    if (kkt_pair_is(config, "inverse", "row"))
        inverse = row_fma((double)chunk);
    else if (kkt_pair_is(config, "inverse", "recursive"))
        inverse = recursive_fma(chunk, base);
    else if (kkt_pair_is(config, "inverse", "flat"))
        inverse = flat_fma(chunk, base);
    else
        return (double)NAN;
    inverse /= (double)chunk;
    int64_t dk_keys = kkt_pair_integer(problem, "dk", 128);
    double dk = (double)dk_keys, dv = (double)kkt_pair_integer(problem, "dv", dk_keys);
    double main_part = 3 * dk * dv + 2 * (double)chunk * (dk + dv);
    return inverse / (inverse + main_part);
}
