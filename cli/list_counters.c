#include "cli/list_counters.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/arch.h"
#include "tuner/measure/cupti.h"

static void add_metrics(kkt_json *object, kkt_counter_id id) {
    size_t count = 0;
    const kkt_arch *archs = kkt_archs(&count);
    kkt_json *metrics = kkt_json_add_object(object, "metrics");
    for (size_t i = 0; i < count; i++) {
        const char *metric = kkt_counter_metric(id, archs[i].cupti_chip);
        kkt_json_add_string(metrics, archs[i].cupti_chip, metric); /* NULL: null */
    }
}

static void add_chip_json(const kkt_cupti *cupti, const kkt_arch *arch, kkt_json *array) {
    kkt_error err = {0};
    kkt_cupti_config config;
    kkt_json *object = kkt_json_add_object(array, NULL);
    kkt_json_add_string(object, "chip", arch->cupti_chip);
    kkt_json_add_string(object, "arch", arch->name);
    if (kkt_cupti_config_open(cupti, arch->cupti_chip, &config, &err) != KKT_OK) {
        kkt_json_add_string(object, "note", err.message);
        return;
    }
    kkt_json_add_int(object, "counters", (int64_t)config.count);
    kkt_json_add_int(object, "passes", (int64_t)config.passes);
    kkt_json *missing = kkt_json_add_array(object, "missing");
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        bool there = false;
        for (size_t j = 0; j < config.count; j++)
            there = there || config.ids[j] == (kkt_counter_id)i;
        if (!there)
            kkt_json_add_string(missing, NULL, kkt_counters()[i].name);
    }
    kkt_cupti_config_close(cupti, &config);
}

void kkt_list_counters_json(kkt_json *root) {
    kkt_json *counters = kkt_json_add_array(root, "counters");
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        const kkt_counter *counter = &kkt_counters()[i];
        kkt_json *object = kkt_json_add_object(counters, NULL);
        kkt_json_add_string(object, "name", counter->name);
        kkt_json_add_string(object, "summary", counter->help);
        kkt_json_add_string(object, "unit", counter->unit);
        add_metrics(object, (kkt_counter_id)i);
    }
    kkt_error err = {0};
    kkt_cupti *cupti = NULL;
    size_t count = 0;
    const kkt_arch *archs = kkt_archs(&count);
    kkt_json *chips = kkt_json_add_array(root, "counter_chips");
    if (kkt_cupti_open(&cupti, &err) != KKT_OK) {
        kkt_json_add_string(root, "counter_chips_note", err.message);
        return;
    }
    for (size_t i = 0; i < count; i++)
        add_chip_json(cupti, &archs[i], chips);
    kkt_cupti_close(cupti);
}

/* ---- for people ---- */

static void print_overrides(const kkt_counter *counter) {
    if (counter->only_chip)
        printf("  %-22s  on %s alone\n", "", counter->only_chip);
    for (const kkt_counter_override *o = counter->overrides; o && o->chip; o++)
        printf("  %-22s  on %s: %s\n", "", o->chip, o->metric ? o->metric : "none");
}

/* Without CUPTI: what its names are known to be. */
static void print_names_known(const kkt_arch *arch) {
    int known = 0;
    for (int i = 0; i < KKT_COUNTER_COUNT; i++)
        known += kkt_counter_metric((kkt_counter_id)i, arch->cupti_chip) != NULL;
    printf("  %-6s  %-6s  %d counters\n", arch->cupti_chip, arch->name, known);
}

static void print_chip(const kkt_cupti *cupti, const kkt_arch *arch) {
    kkt_error err = {0};
    kkt_cupti_config config;
    if (kkt_cupti_config_open(cupti, arch->cupti_chip, &config, &err) != KKT_OK) {
        printf("  %-6s  %-6s  %s\n", arch->cupti_chip, arch->name, err.message);
        return;
    }
    printf("  %-6s  %-6s  %zu counters in %zu passes\n", arch->cupti_chip, arch->name, config.count,
           config.passes);
    for (size_t i = 0; i < config.refused_count; i++)
        printf("  %-6s  %-6s  this CUPTI refuses %s\n", "", "",
               kkt_counters()[config.refused[i]].name);
    kkt_cupti_config_close(cupti, &config);
}

void kkt_list_counters_print(void) {
    puts("counters:");
    for (int i = 0; i < KKT_COUNTER_COUNT; i++) {
        const kkt_counter *counter = &kkt_counters()[i];
        printf("  %-22s  %s (%s)\n  %-22s  %s\n", counter->name, counter->help, counter->unit, "",
               counter->metric);
        print_overrides(counter);
    }
    kkt_error err = {0};
    kkt_cupti *cupti = NULL;
    size_t count = 0;
    const kkt_arch *archs = kkt_archs(&count);
    puts("chips (a pass is one more run of the candidate):");
    if (kkt_cupti_open(&cupti, &err) != KKT_OK) {
        for (size_t i = 0; i < count; i++)
            print_names_known(&archs[i]);
        printf("  in how many passes is unknown: %s\n", err.message);
        return;
    }
    for (size_t i = 0; i < count; i++)
        print_chip(cupti, &archs[i]);
    kkt_cupti_close(cupti);
}
