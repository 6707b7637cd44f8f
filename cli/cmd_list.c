/* kkttune list: what there is. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/list_counters.h"
#include "kernels/pipeline.h"
#include "model/arch.h"
#include "model/style.h"
#include "reports/report.h"
#include "tuner/engine/search.h"
#include "tuner/measure/backend.h"

/* One listed thing; strings are borrowed from const tables. */
typedef struct item {
    const char *name, *summary;
} item;

/* Fills item `index`; false at the end. The text of `note` may serve as the summary. */
typedef bool (*lister)(size_t index, item *out, kkt_text *note);

static bool list_archs(size_t index, item *out, kkt_text *note) {
    size_t count = 0;
    const kkt_arch *archs = kkt_archs(&count);
    if (index >= count)
        return false;
    const kkt_arch *arch = &archs[index];
    kkt_text_printf(note, "%s, compute capability %d.%d", arch->generation, arch->major,
                    arch->minor);
    *out = (item){arch->name, kkt_text_get(note)};
    return true;
}

static bool list_devices(size_t index, item *out, kkt_text *note) {
    size_t count = 0;
    const kkt_device *devices = kkt_devices(&count);
    if (index >= count)
        return false;
    const kkt_device *device = &devices[index];
    kkt_text_printf(
        note, "%s (%s), %.0f SMs%s, %.0f GB/s%s", device->full_name, device->arch,
        device->sm_count.value, device->sm_count.source == KKT_SOURCE_UNCONFIRMED ? "?" : "",
        device->hbm_gbps.value, device->hbm_gbps.source == KKT_SOURCE_UNCONFIRMED ? "?" : "");
    *out = (item){device->name, kkt_text_get(note)};
    return true;
}

static bool list_kernels(size_t index, item *out, kkt_text *note) {
    size_t count = 0;
    const kkt_kernel *const *kernels = kkt_kernels(&count);
    if (index >= count)
        return false;
    const kkt_kernel *kernel = kernels[index];
    kkt_text_printf(note, "%s; styles:", kernel->summary);
    for (size_t i = 0; i < kernel->variant_count; i++)
        kkt_text_printf(note, "%s %s", i ? "," : "",
                        kkt_style_get(kernel->variants[i]->style)->name);
    *out = (item){kernel->name, kkt_text_get(note)};
    return true;
}

static bool list_pipelines(size_t index, item *out, kkt_text *note) {
    size_t count = 0;
    const kkt_pipeline *const *all = kkt_pipelines(&count);
    if (index >= count)
        return false;
    kkt_text_printf(note, "%s; kernels:", all[index]->summary);
    for (size_t i = 0; all[index]->members[i]; i++)
        kkt_text_printf(note, "%s %s", i ? "," : "", all[index]->members[i]);
    kkt_pipeline_kernels opened;
    const char *missing = NULL;
    if (!kkt_pipeline_open(all[index], &opened, &missing))
        kkt_text_printf(note, "; %s is not there yet", missing);
    *out = (item){all[index]->name, kkt_text_get(note)};
    return true;
}

static bool list_styles(size_t index, item *out, kkt_text *note) {
    (void)note;
    size_t count = 0;
    const kkt_style *styles = kkt_styles(&count);
    if (index >= count)
        return false;
    *out = (item){styles[index].name, styles[index].summary};
    return true;
}

static bool list_strategies(size_t index, item *out, kkt_text *note) {
    (void)note;
    size_t count = 0;
    const kkt_search_type *const *searches = kkt_searches(&count);
    if (index >= count)
        return false;
    *out = (item){searches[index]->name, searches[index]->summary};
    return true;
}

/* Replay measures nothing (recorded rows are in the database), so it is no backend type; to the
 * user of --backend it is one. */
static bool list_backends(size_t index, item *out, kkt_text *note) {
    (void)note;
    static const item known[] = {
        {"cuda", "checks and times on a GPU of this machine"},
        {"replay", "answers from recorded measurements, without a GPU"},
        {"fake", "seeded times and injected faults: fake:seed=N,fault=KIND"},
    };
    if (index >= sizeof known / sizeof known[0])
        return false;
    *out = known[index];
    return true;
}

static bool list_reports(size_t index, item *out, kkt_text *note) {
    (void)note;
    size_t count = 0;
    const kkt_report_type *const *reports = kkt_reports(&count);
    if (index >= count)
        return false;
    *out = (item){reports[index]->name, reports[index]->summary};
    return true;
}

typedef struct topic {
    const char *name;
    lister list; /* NULL: what follows tells more than a name and a summary */
    void (*add_json)(kkt_json *root);
    void (*print)(void);
} topic;

static const topic TOPICS[] = {
    {.name = "archs", .list = list_archs},
    {.name = "devices", .list = list_devices},
    {.name = "kernels", .list = list_kernels},
    {.name = "pipelines", .list = list_pipelines},
    {.name = "styles", .list = list_styles},
    {.name = "strategies", .list = list_strategies},
    {.name = "backends", .list = list_backends},
    {.name = "reports", .list = list_reports},
    {.name = "counters", .add_json = kkt_list_counters_json, .print = kkt_list_counters_print},
};
#define TOPIC_COUNT (sizeof TOPICS / sizeof TOPICS[0])

static kkt_status choose(const char *text, bool chosen[TOPIC_COUNT], kkt_error *err) {
    for (const char *piece = text;; piece++) {
        size_t length = strcspn(piece, ",");
        bool found = false;
        for (size_t i = 0; i < TOPIC_COUNT; i++) {
            if (strlen(TOPICS[i].name) == length && memcmp(TOPICS[i].name, piece, length) == 0)
                found = chosen[i] = true;
        }
        if (!found) {
            kkt_text list = {0};
            for (size_t i = 0; i < TOPIC_COUNT; i++)
                kkt_text_printf(&list, "%s%s", i ? ", " : "", TOPICS[i].name);
            kkt_status status =
                kkt_fail(err, KKT_ERR_INPUT, 0, "unknown list '%.*s'; known: %s",
                         (int)(length < 60 ? length : 60), piece, kkt_text_get(&list));
            kkt_text_free(&list);
            return status;
        }
        piece += length;
        if (*piece == '\0')
            return KKT_OK;
    }
}

static void add_json(const topic *of, kkt_json *root) {
    if (of->add_json) {
        of->add_json(root);
        return;
    }
    kkt_json *array = kkt_json_add_array(root, of->name);
    kkt_text note = {0};
    item each;
    for (size_t i = 0; of->list(i, &each, &note); i++) {
        kkt_json *object = kkt_json_add_object(array, NULL);
        kkt_json_add_string(object, "name", each.name);
        kkt_json_add_string(object, "summary", each.summary);
        kkt_text_free(&note);
    }
}

static void print_topic(const topic *of) {
    if (of->print) {
        of->print();
        return;
    }
    printf("%s:\n", of->name);
    kkt_text note = {0};
    item each;
    for (size_t i = 0; of->list(i, &each, &note); i++) {
        printf("  %-16s  %s\n", each.name, each.summary);
        kkt_text_free(&note);
    }
}

static kkt_status run(const kkt_args *args, kkt_error *err) {
    bool chosen[TOPIC_COUNT] = {false};
    const char *what = kkt_args_operand(args, 0);
    for (size_t i = 0; i < TOPIC_COUNT; i++)
        chosen[i] = !what;
    kkt_status status = what ? choose(what, chosen, err) : KKT_OK;
    if (status != KKT_OK)
        return status;
    bool json = kkt_args_has(args, "--json");
    kkt_json *root = json ? kkt_json_object() : NULL;
    if (json)
        kkt_json_add_string(root, "schema", "kkttune.list/1");
    for (size_t i = 0; i < TOPIC_COUNT; i++) {
        if (chosen[i] && json)
            add_json(&TOPICS[i], root);
        else if (chosen[i])
            print_topic(&TOPICS[i]);
    }
    if (json)
        kkt_print_json(root);
    return KKT_OK;
}

static const kkt_option OPTIONS[] = {KKT_OPTION_JSON};

const kkt_command kkt_cmd_list = {
    .name = "list",
    .operands = "[WHAT,...]",
    .summary = "what there is: archs, devices, kernels, pipelines, styles, strategies, backends, "
               "reports, counters",
    .details = "WHAT is one of these words, or several with commas; all where it is left out.",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
    .run = run,
};
