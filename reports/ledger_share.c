#include "reports/ledger_share.h"

#include <math.h>
#include <stddef.h>

#include "model/ledger.h"
#include "reports/canonical.h"

double kkt_ledger_share(const char *config, const char *problem) {
    int64_t chunk = kkt_pair_integer(config, "chunk", 0);
    int64_t base = kkt_pair_integer(config, "base", 16);
    int64_t dk = kkt_pair_integer(problem, "dk", 128);
    kkt_ledger ledger;
    if (base > chunk)
        base = chunk;
    if (kkt_ledger_compute(chunk, base, dk, kkt_pair_integer(problem, "dv", dk), 2, &ledger,
                           NULL) != KKT_OK)
        return (double)NAN;
    int64_t inverse;
    if (kkt_pair_is(config, "inverse", "row"))
        inverse = ledger.fma_row;
    else if (kkt_pair_is(config, "inverse", "recursive"))
        inverse = ledger.fma_recursive;
    else if (kkt_pair_is(config, "inverse", "flat"))
        inverse = ledger.fma_flat;
    else
        return (double)NAN;
    double per_token = (double)inverse / (double)chunk;
    return per_token / (per_token + (double)ledger.fma_main_per_token_full);
}
