/* The chunk size of a pipeline for a problem, and what each of its kernels runs with at it. */
#include "cli/lookup_pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/pipeline_print.h"
#include "cli/stale_print.h"
#include "reports/lookup.h"
#include "reports/report.h"
#include "tuner/engine/freshness.h"

/* What is looked for, and what was found. */
typedef struct finding {
    kkt_pipeline_kernels p;
    kkt_values problem;
    const kkt_curve *curve; /* NULL: no problem with a choice is near enough */
    const kkt_curve *own;   /* of the very problem, where it has times; NULL: it has none */
    double distance;
    int64_t chunk;
    bool asked;                   /* the chunk size was named */
    bool on_curve;                /* the curve has a point of that chunk size */
    const kkt_curve_point *timed; /* that of the very problem at that chunk size; NULL: none is */
    size_t form;
    kkt_lookup members[KKT_MEMBERS_MAX];
} finding;

/* The nearest problem for which the pipeline has chosen, and what was timed for the very one. */
static void find_curve(const kkt_view *views, size_t count, finding *out) {
    for (size_t v = 0; v < count; v++) {
        for (size_t i = 0; i < views[v].curve_count; i++) {
            const kkt_curve *curve = &views[v].curves[i];
            kkt_values other;
            if (curve->pipeline != out->p.pipeline || curve->measured == 0) {
                continue;
            }
            kkt_params_defaults(&out->p.whole->problem, &other);
            kkt_params_parse(&out->p.whole->problem, curve->problem, &other, NULL, NULL);
            if (v == 0 && kkt_values_equal(&out->p.whole->problem, &out->problem, &other)) {
                out->own = curve;
            }
            if (!curve->best) {
                continue;
            }
            double distance = kkt_lookup_distance(out->p.whole, &out->problem, &other) +
                              (v > 0 ? KKT_LOOKUP_OTHER_DEVICE : 0.0);
            if (distance <= KKT_LOOKUP_FAR && (!out->curve || distance < out->distance)) {
                out->curve = curve;
                out->distance = distance;
            }
        }
    }
}

static const kkt_curve_point *point_at(const kkt_curve *curve, int64_t chunk) {
    for (size_t i = 0; curve && i < curve->count; i++) {
        if (curve->points[i].chunk == chunk) {
            return &curve->points[i];
        }
    }
    return NULL;
}

/* Chunk size and form of what was found, else the default ones. */
static kkt_status settle(const kkt_args *args, finding *out, kkt_error *err) {
    const char *text = kkt_args_get(args, "--chunk");
    int64_t asked = 0;
    char buffer[24];
    const kkt_curve_point *point = out->curve ? out->curve->best : NULL, *at;
    if (text && !kkt_parse_i64(text, 1, 1 << 20, &asked)) {
        return kkt_fail(err, KKT_ERR_INPUT, 0, "--chunk '%s' is no chunk size", text);
    }
    out->asked = asked != 0;
    out->on_curve = point && !asked;
    if (asked && (at = point_at(out->curve, asked)) != NULL) {
        point = at;
        out->on_curve = true;
    }
    out->chunk = asked ? asked : point ? point->chunk : KKT_DEFAULT_CHUNK;
    /* What was timed for the very problem tells more than another problem's choice. */
    if ((at = point_at(out->own, out->chunk)) != NULL && isfinite(at->time_us)) {
        point = at;
        out->timed = at;
    }
    for (size_t f = 0; point && f < out->p.forms; f++) {
        if (strcmp(kkt_pipeline_form_name(&out->p, f, buffer), point->form) == 0) {
            out->form = f;
        }
    }
    return KKT_OK;
}

static kkt_status find_members(const kkt_view *views, size_t count, const kkt_arch *arch,
                               const kkt_device *device, kkt_arena *arena, finding *out,
                               kkt_error *err) {
    kkt_status status = KKT_OK;
    for (size_t m = 0; m < out->p.count && status == KKT_OK; m++) {
        kkt_values own;
        kkt_pipeline_member_problem(&out->p, m, &out->problem, out->form, &own);
        status = kkt_lookup_find(views, count, out->p.members[m], &own, out->chunk, arch, device,
                                 arena, &out->members[m], err);
    }
    return status;
}

static const char *tier_of(const finding *found) {
    return found->timed          ? kkt_lookup_tier_name(KKT_LOOKUP_EXACT)
           : !found->on_curve    ? kkt_lookup_tier_name(KKT_LOOKUP_DEFAULT)
           : found->distance > 0 ? kkt_lookup_tier_name(KKT_LOOKUP_NEAREST)
                                 : kkt_lookup_tier_name(KKT_LOOKUP_EXACT);
}

static void print_json(const finding *found, const kkt_device *device) {
    char buffer[24];
    kkt_json *root = kkt_json_object();
    kkt_json_add_string(root, "schema", "kkttune.lookup/1");
    kkt_json_add_string(root, "arch", device->arch);
    kkt_json_add_string(root, "device", device->full_name);
    kkt_json_add_string(root, "device_id", device->name);
    kkt_json_add_string(root, "pipeline", found->p.pipeline->name);
    kkt_json_add_string(root, "tier", tier_of(found));
    kkt_json_add_real(root, "distance", found->timed ? 0 : found->distance);
    kkt_json_add_int(root, "chunk", found->chunk);
    kkt_json_add_string(root, "form", kkt_pipeline_form_name(&found->p, found->form, buffer));
    if (found->curve) {
        kkt_curve_add_json(found->curve, root, "choice");
    }
    if (found->own && found->own != found->curve) {
        kkt_curve_add_json(found->own, root, "own");
    }
    kkt_json *members = kkt_json_add_array(root, "members");
    for (size_t m = 0; m < found->p.count; m++) {
        kkt_json *member = kkt_json_add_object(members, NULL);
        kkt_json_add_string(member, "tier", kkt_lookup_tier_name(found->members[m].tier));
        kkt_json_add_real(member, "distance", found->members[m].distance);
        if (found->members[m].tier == KKT_LOOKUP_DEFAULT) {
            kkt_json_add_string(member, "reason", found->members[m].entry.reason);
        }
        kkt_entry_add_json(&found->members[m].entry, member, "entry");
    }
    kkt_print_json(root);
}

static void print_text(const finding *found) {
    char buffer[24];
    const char *form = kkt_pipeline_form_name(&found->p, found->form, buffer);
    printf("tier        %s", tier_of(found));
    const bool near = found->curve && found->distance > 0;
    if (found->timed && near && !found->asked) {
        printf(", at the chunk size of %s (distance %.3g)", found->curve->problem, found->distance);
    } else if (!found->timed && near) {
        printf(", distance %.3g from %s", found->distance, found->curve->problem);
    }
    printf("\nchunk       %lld\n", (long long)found->chunk);
    if (form[0] != '\0') {
        printf("form        %s\n", form);
    }
    for (size_t m = 0; m < found->p.count; m++) {
        const kkt_entry *entry = &found->members[m].entry;
        const bool unfit = found->members[m].tier == KKT_LOOKUP_DEFAULT;
        printf("%s (%s, %s, %s%s%s)\n  %s\n", entry->kernel, entry->style, kkt_entry_shown(entry),
               kkt_lookup_tier_name(found->members[m].tier),
               unfit ? ", nothing is known to run: " : "", unfit ? entry->reason : "",
               entry->config);
    }
    if (found->own && found->own != found->curve) {
        kkt_curve_print(found->own);
    }
    if (found->curve) {
        kkt_curve_print(found->curve);
    }
}

/* Every view that a pipeline needs: those of all its kernels, which is those of all kernels. */
static kkt_status open_views(const kkt_args *args, const kkt_arch *arch, const kkt_device *device,
                             kkt_db **db, kkt_arena *arena, kkt_view **views, size_t *count,
                             kkt_error *err) {
    const char *path = kkt_args_get(args, "--db");
    if (kkt_args_get(args, "--config")) {
        return kkt_fail(err, KKT_ERR_INPUT, 0,
                        "a pipeline is looked up in a database: give --db, not --config");
    }
    if (!path && !kkt_file_exists("kkttune.db")) {
        return KKT_OK;
    }
    kkt_status status = kkt_db_open(path ? path : "kkttune.db", KKT_DB_READ, db, err);
    return status == KKT_OK ? kkt_lookup_views(*db, kkt_freshness_make(arena, NULL), arch, device,
                                               NULL, arena, views, count, err)
                            : status;
}

kkt_status kkt_lookup_pipeline(const kkt_args *args, const kkt_pipeline *pipeline, kkt_error *err) {
    const kkt_arch *arch = NULL;
    const kkt_device *device = NULL;
    const char *missing = NULL;
    const char *text = kkt_args_get(args, "--problem");
    kkt_view *views = NULL;
    kkt_db *db = NULL;
    size_t count = 0;
    kkt_arena *arena = kkt_arena_open();
    finding *found = kkt_arena_alloc(arena, sizeof *found);
    kkt_status status = kkt_args_arch(args, &arch, &device, err);
    if (status == KKT_OK && !kkt_pipeline_open(pipeline, &found->p, &missing)) {
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s needs the kernel %s, which is not there yet",
                          pipeline->name, missing);
    }
    if (status == KKT_OK) {
        kkt_params_defaults(&found->p.whole->problem, &found->problem);
        status = kkt_params_parse(&found->p.whole->problem, text ? text : "", &found->problem, NULL,
                                  err);
    }
    if (status == KKT_OK) {
        status = open_views(args, arch, device, &db, arena, &views, &count, err);
    }
    if (status == KKT_OK && count > 0 && !kkt_args_has(args, "--device")) {
        device = kkt_lookup_own_device(views, count);
    }
    if (status == KKT_OK) {
        find_curve(views, count, found);
        status = settle(args, found, err);
    }
    if (status == KKT_OK) {
        status = find_members(views, count, arch, device, arena, found, err);
    }
    if (status == KKT_OK && kkt_args_has(args, "--json")) {
        print_json(found, device);
    } else if (status == KKT_OK) {
        print_text(found);
    }
    if (status == KKT_OK && count > 0) {
        kkt_stale_print(&views[0], NULL, pipeline, stderr);
    }
    kkt_db_close(db);
    kkt_arena_close(arena);
    return status;
}
