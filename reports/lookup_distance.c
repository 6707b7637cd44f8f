/* How far two problems are from each other. */
#include <math.h>
#include <string.h>

#include "reports/lookup.h"

kkt_lookup_rule kkt_lookup_rule_of(const kkt_param *param) {
    static const struct {
        const char *key;
        kkt_lookup_rule rule;
    } rules[] = {{"batch", {1, false}},
                 {"sequences", {1, false}},
                 {"dk", {8, true}},
                 {"dv", {8, true}},
                 {"gated", {8, true}}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].key, param->name) == 0)
            return rules[i].rule;
    return (kkt_lookup_rule){2, param->names != NULL};
}

const kkt_lookup_quotient kkt_lookup_quotients[] = {{"heads_v", "heads_k"}, {NULL, NULL}};

/* 4 to the power of the distance: products of quotients alone, so that the header, which has no
 * logarithm, compares the very same numbers. */
static double apart(const kkt_kernel *kernel, const kkt_values *a, const kkt_values *b) {
    double out = 1;
    for (size_t p = 0; p < kernel->problem.count; p++) {
        int64_t x = a->v[p], y = b->v[p];
        if (x == y)
            continue;
        if (kernel->problem.params[p].names != NULL)
            return (double)INFINITY;
        double ratio = x <= 0 || y <= 0 ? 2 : x > y ? (double)x / (double)y : (double)y / (double)x;
        int halves = x <= 0 || y <= 0 ? 8 : kkt_lookup_rule_of(&kernel->problem.params[p]).halves;
        double power = 1;
        for (; halves > 0; halves--)
            power *= ratio;
        out *= power;
    }
    return out;
}

double kkt_lookup_distance(const kkt_kernel *kernel, const kkt_values *a, const kkt_values *b) {
    return log2(apart(kernel, a, b)) / 2;
}
