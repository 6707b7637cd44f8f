#include "db/record.h"

#include <string.h>

static const char *const outcome_names[KKT_OUTCOME_COUNT] = {
    [KKT_OUTCOME_PREDICTED] = "predicted",
    [KKT_OUTCOME_COMPILED] = "compiled",
    [KKT_OUTCOME_OK] = "ok",
    [KKT_OUTCOME_REJECTED] = "rejected",
    [KKT_OUTCOME_BUILD_FAILED] = "build_failed",
    [KKT_OUTCOME_LAUNCH_FAILED] = "launch_failed",
    [KKT_OUTCOME_WRONG_RESULT] = "wrong_result",
    [KKT_OUTCOME_RACY] = "racy",
    [KKT_OUTCOME_TIMED_OUT] = "timed_out",
    [KKT_OUTCOME_CRASHED] = "crashed",
    [KKT_OUTCOME_NOISY] = "noisy",
};

static const char *const provenance_names[KKT_PROVENANCE_COUNT] = {
    [KKT_PREDICTED] = "predicted",
    [KKT_COMPILED] = "compiled",
    [KKT_MEASURED] = "measured",
    [KKT_REPLAYED] = "replayed",
};

static const char *const order_names[KKT_LAUNCH_ORDER_COUNT] = {
    [KKT_IN_ORDER] = "in_order",
    [KKT_OVERLAPPED] = "overlapped",
};

static int find_name(const char *const *names, int count, const char *name) {
    for (int i = 0; name && i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

const char *kkt_outcome_name(kkt_outcome outcome) {
    return (unsigned)outcome < KKT_OUTCOME_COUNT ? outcome_names[outcome] : "unknown";
}

bool kkt_outcome_parse(const char *name, kkt_outcome *out) {
    int index = find_name(outcome_names, KKT_OUTCOME_COUNT, name);
    if (index >= 0)
        *out = (kkt_outcome)index;
    return index >= 0;
}

bool kkt_outcome_failed(kkt_outcome outcome) {
    switch (outcome) {
    case KKT_OUTCOME_BUILD_FAILED:
    case KKT_OUTCOME_LAUNCH_FAILED:
    case KKT_OUTCOME_WRONG_RESULT:
    case KKT_OUTCOME_RACY:
    case KKT_OUTCOME_TIMED_OUT:
    case KKT_OUTCOME_CRASHED:
        return true;
    case KKT_OUTCOME_PREDICTED:
    case KKT_OUTCOME_COMPILED:
    case KKT_OUTCOME_OK:
    case KKT_OUTCOME_REJECTED:
    case KKT_OUTCOME_NOISY:
    case KKT_OUTCOME_COUNT:
        break;
    }
    return false;
}

const char *kkt_provenance_name(kkt_provenance provenance) {
    return (unsigned)provenance < KKT_PROVENANCE_COUNT ? provenance_names[provenance] : "unknown";
}

bool kkt_provenance_parse(const char *name, kkt_provenance *out) {
    int index = find_name(provenance_names, KKT_PROVENANCE_COUNT, name);
    if (index >= 0)
        *out = (kkt_provenance)index;
    return index >= 0;
}

const char *kkt_launch_order_name(kkt_launch_order order) {
    return (unsigned)order < KKT_LAUNCH_ORDER_COUNT ? order_names[order] : "unknown";
}

bool kkt_launch_order_parse(const char *name, kkt_launch_order *out) {
    int index = find_name(order_names, KKT_LAUNCH_ORDER_COUNT, name);
    if (index >= 0)
        *out = (kkt_launch_order)index;
    return index >= 0;
}

bool kkt_run_made_up(const kkt_run_record *run) {
    return run->gpu != NULL && strcmp(run->gpu, "fake") == 0;
}
