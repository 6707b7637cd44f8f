/* Which views a look-up looks in, and for which chunk size. */
#include <string.h>

#include "reports/curve.h"
#include "reports/lookup.h"

kkt_status kkt_lookup_views(kkt_db *db, const kkt_freshness *freshness, const kkt_arch *arch,
                            const kkt_device *device, const char *kernel, kkt_arena *arena,
                            kkt_view **views, size_t *count, kkt_error *err) {
    size_t devices;
    const kkt_device *all = kkt_devices(&devices);
    *views = kkt_arena_array(arena, devices + 1, sizeof **views);
    kkt_status status =
        kkt_view_make(db, freshness, arch, device, kernel, arena, &(*views)[0], err);
    *count = 1;
    for (size_t i = 0; i < devices && status == KKT_OK; i++)
        if (&all[i] != device && strcmp(all[i].arch, arch->name) == 0)
            status = kkt_view_make(db, freshness, arch, &all[i], kernel, arena,
                                   &(*views)[(*count)++], err);
    return status;
}

const kkt_device *kkt_lookup_own_device(kkt_view *views, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (views[i].measured + views[i].replayed > 0) {
            kkt_view own = views[i];
            memmove(views + 1, views, i * sizeof *views);
            views[0] = own;
            break;
        }
    return views[0].device;
}

/* What a pipeline chose for the first problem of a kernel that has a view; else KKT_DEFAULT_CHUNK.
 */
static int64_t standing_chunk(const kkt_view *views, size_t count, const kkt_kernel *kernel) {
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].standing_count; i++)
            if (strcmp(views[v].standing[i].kernel, kernel->name) == 0)
                return views[v].standing[i].chunk;
    return KKT_DEFAULT_CHUNK;
}

kkt_status kkt_lookup_chunk(const kkt_view *views, size_t count, const kkt_kernel *kernel,
                            int64_t asked, int64_t *out, kkt_error *err) {
    *out = 0;
    if (kernel->chunk_param == NULL)
        return asked == 0 ? KKT_OK
                          : kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no chunk size", kernel->name);
    const kkt_param_table *table = &kernel->variants[0]->params;
    int index = kkt_params_find(table, kernel->chunk_param);
    if (index < 0)
        return KKT_OK;
    const kkt_param *param = &table->params[index];
    int64_t wanted = asked == 0 ? standing_chunk(views, count, kernel) : asked;
    kkt_text known = {0};
    for (size_t i = 0; i < param->count; i++) {
        if (param->values[i] == wanted)
            *out = wanted;
        kkt_text_printf(&known, "%s%lld", i == 0 ? "" : ", ", (long long)param->values[i]);
    }
    kkt_status status = KKT_OK;
    if (*out == 0 && asked == 0)
        *out = param->fallback;
    else if (*out == 0)
        status = kkt_fail(err, KKT_ERR_INPUT, 0, "%s has no chunk size %lld; known: %s",
                          kernel->name, (long long)asked, kkt_text_get(&known));
    kkt_text_free(&known);
    return status;
}
