#include "tuner/engine/search.h"

#include <string.h>

extern const kkt_search_type kkt_search_model;
extern const kkt_search_type kkt_search_random;
extern const kkt_search_type kkt_search_exhaustive;

/* The list; the first is the default. */
static const kkt_search_type *const searches[] = {
    &kkt_search_model,
    &kkt_search_random,
    &kkt_search_exhaustive,
};

const kkt_search_type *const *kkt_searches(size_t *count) {
    *count = sizeof searches / sizeof *searches;
    return searches;
}

kkt_status kkt_search_parse(const char *name, const kkt_search_type **out, kkt_error *err) {
    kkt_text known = {0};
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        if (strcmp(searches[i]->name, name) == 0) {
            kkt_text_free(&known);
            *out = searches[i];
            return KKT_OK;
        }
        kkt_text_printf(&known, "%s%s", i ? ", " : "", searches[i]->name);
    }
    kkt_status status = kkt_fail(err, KKT_ERR_INPUT, 0, "unknown strategy '%s'; known: %s", name,
                                 kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
}
