/* Findings: pure arithmetic on readings. */
#include <math.h>

#include "reports/ablation.h"

/* No change of a count is known better than this share of it: counts of one configuration differ by
 * up to 0.2 % between runs of one problem on an H200, and more between problems (docs/ablation.md).
 */
#define COUNT_VARIES 0.005

const char *kkt_evidence_name(kkt_evidence evidence) {
    static const char *const names[KKT_EVIDENCE_COUNT] = {
        [KKT_EVIDENCE_PREDICTED] = "predicted",
        [KKT_EVIDENCE_COMPILED] = "compiled",
        [KKT_EVIDENCE_COUNTED] = "counted",
        [KKT_EVIDENCE_TIMED] = "timed",
    };
    return names[evidence];
}

const char *kkt_finding_name(kkt_finding finding) {
    static const char *const names[KKT_FINDING_COUNT] = {
        [KKT_FINDING_CONFIRMED] = "confirmed",     [KKT_FINDING_REFUTED] = "refuted",
        [KKT_FINDING_CONDITIONAL] = "conditional", [KKT_FINDING_WITHIN_NOISE] = "within_noise",
        [KKT_FINDING_UNDECIDED] = "undecided",
    };
    return names[finding];
}

const char *kkt_finding_words(kkt_finding finding) {
    static const char *const words[KKT_FINDING_COUNT] = {
        [KKT_FINDING_CONFIRMED] = "confirmed",
        [KKT_FINDING_REFUTED] = "refuted",
        [KKT_FINDING_CONDITIONAL] = "only under conditions",
        [KKT_FINDING_WITHIN_NOISE] = "within noise",
        [KKT_FINDING_UNDECIDED] = "not decidable here",
    };
    return words[finding];
}

bool kkt_reading_known(const kkt_reading *reading) {
    return isfinite(reading->low) && isfinite(reading->value) && isfinite(reading->high);
}

static kkt_finding moves_down(bool noisy, const kkt_reading *from, const kkt_reading *to) {
    if (to->high < from->low)
        return KKT_FINDING_CONFIRMED;
    if (to->low > from->high || !noisy)
        return KKT_FINDING_REFUTED;
    return KKT_FINDING_WITHIN_NOISE;
}

static kkt_finding stays(double within, bool noisy, const kkt_reading *from,
                         const kkt_reading *to) {
    if (noisy && to->low <= from->high && from->low <= to->high)
        return KKT_FINDING_CONFIRMED;
    return fabs(to->value - from->value) <= within * fabs(from->value) ? KKT_FINDING_CONFIRMED
                                                                       : KKT_FINDING_REFUTED;
}

static kkt_finding as_predicted(double within, const kkt_reading *from, const kkt_reading *to,
                                double model_from, double model_to) {
    if (!isfinite(model_from) || !isfinite(model_to))
        return KKT_FINDING_UNDECIDED;
    double change = to->value - from->value;
    double difference = fabs(model_to - model_from - change);
    bool good = difference <= fmax(within * fabs(change), COUNT_VARIES * fabs(from->value));
    return good ? KKT_FINDING_CONFIRMED : KKT_FINDING_REFUTED;
}

kkt_finding kkt_finding_of(kkt_expectation expect, double within, bool noisy,
                           const kkt_reading *from, const kkt_reading *to, double model_from,
                           double model_to) {
    if (!kkt_reading_known(from) || !kkt_reading_known(to))
        return KKT_FINDING_UNDECIDED;
    switch (expect) {
    case KKT_EXPECT_LOWER:
        return moves_down(noisy, from, to);
    case KKT_EXPECT_HIGHER:
        return moves_down(noisy, to, from);
    case KKT_EXPECT_SAME:
        return stays(within, noisy, from, to);
    case KKT_EXPECT_AS_PREDICTED:
        return as_predicted(within, from, to, model_from, model_to);
    }
    return KKT_FINDING_UNDECIDED;
}

kkt_finding kkt_finding_join(const kkt_finding *findings, size_t count) {
    size_t of[KKT_FINDING_COUNT] = {0};
    for (size_t i = 0; i < count; i++)
        of[findings[i]]++;
    size_t decided = count - of[KKT_FINDING_UNDECIDED];
    if (decided == 0)
        return KKT_FINDING_UNDECIDED;
    if (of[KKT_FINDING_CONFIRMED] == decided)
        return KKT_FINDING_CONFIRMED;
    if (of[KKT_FINDING_CONFIRMED] + of[KKT_FINDING_CONDITIONAL] > 0)
        return KKT_FINDING_CONDITIONAL;
    return of[KKT_FINDING_REFUTED] > 0 ? KKT_FINDING_REFUTED : KKT_FINDING_WITHIN_NOISE;
}
