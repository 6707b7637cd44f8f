#include "cli/db_names.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "reports/modelled.h"

typedef struct census {
    int64_t candidates, unknown;
    char first[200]; /* what is wrong with the first */
} census;

/* Tables are of one architecture and device, by the names that the program has for them. */
static bool place_known(const kkt_identity *id) {
    const kkt_arch *arch = kkt_arch_find(id->arch);
    const kkt_device *device = NULL;
    return arch && strcmp(arch->name, id->arch) == 0 &&
           kkt_device_parse(id->device, arch, &device, NULL) == KKT_OK &&
           strcmp(device->name, id->device) == 0;
}

/* Whether all names are known; `why` else gets what is not. */
static bool known(const kkt_identity *id, char *why, size_t size) {
    const kkt_kernel *kernel;
    const kkt_variant *variant;
    kkt_values problem, config;
    kkt_error error = {0};
    if (!place_known(id)) {
        snprintf(why, size, "architecture '%.40s', device '%.60s'", id->arch, id->device);
        return false;
    }
    if (!kkt_modelled_find(id->kernel, id->style, &kernel, &variant)) {
        snprintf(why, size, "kernel '%.60s', style '%.60s'", id->kernel, id->style);
        return false;
    }
    kkt_params_defaults(&variant->params, &config);
    if (kkt_kernel_problem_parse(kernel, id->problem, &problem, &error) == KKT_OK &&
        kkt_params_parse(&variant->params, id->config, &config, NULL, &error) == KKT_OK)
        return true;
    snprintf(why, size, "%s: %.120s", kernel->name, error.message);
    return false;
}

static kkt_status count(void *context, const kkt_result *result, kkt_error *err) {
    census *c = context;
    char why[sizeof c->first];
    (void)err;
    c->candidates++;
    if (!known(&result->id, why, sizeof why) && c->unknown++ == 0)
        memcpy(c->first, why, sizeof why);
    return KKT_OK;
}

kkt_status kkt_db_names_note(kkt_db *db, const char *path, kkt_error *err) {
    census c = {0};
    kkt_status status = kkt_db_results(db, NULL, NULL, count, &c, err);
    if (status == KKT_OK && c.unknown > 0)
        fprintf(stderr,
                "kkttune: %s: %lld of %lld candidates have names that this kkttune does not know, "
                "and stay out of all tables (the first: %s)\n",
                path, (long long)c.unknown, (long long)c.candidates, c.first);
    return status;
}
