#include "cli/explain.h"

#include <stdio.h>
#include <string.h>

#include "cli/pool_open.h"

bool explain_predict(const explain_query *q, const kkt_values *problem, const kkt_values *config,
                     explain_point *out, char reason[EXPLAIN_REASON]) {
    if ((!kkt_kernel_problem_valid(q->kernel, problem, reason, EXPLAIN_REASON)) ||
        !q->variant->applicable(problem, config, q->arch, reason, EXPLAIN_REASON))
        return false;
    memset(&out->footprint, 0, sizeof out->footprint);
    q->variant->footprint(problem, config, q->arch, &out->footprint);
    kkt_predict(&out->footprint, q->arch, q->device, NULL, &out->prediction);
    kkt_prediction_reason(&out->footprint, q->arch, q->device, &out->prediction, out->reason,
                          sizeof out->reason);
    return true;
}

static kkt_occupancy_request request_of(const explain_query *q) {
    const kkt_prediction *p = &q->here.prediction;
    return (kkt_occupancy_request){
        .threads = q->here.footprint.threads,
        .registers = p->registers,
        .dynamic_smem = p->dynamic_smem_bytes,
        .static_smem = p->smem_bytes - p->dynamic_smem_bytes,
        .barriers = q->here.footprint.barriers,
    };
}

static void take_build(explain_query *q, const kkt_compile_result *result) {
    if (!result->ok) {
        int length = (int)strcspn(result->log, "\n");
        snprintf(q->compile_note, sizeof q->compile_note, "%.*s", length < 300 ? length : 300,
                 result->log);
        return;
    }
    q->compiled = true;
    q->info = result->info;
    q->compile_ms = result->compile_ms;
    kkt_occupancy_request request = request_of(q);
    request.registers = result->info.registers;
    request.static_smem = result->info.static_smem_bytes;
    request.barriers = result->info.barriers;
    kkt_occupancy_compute(q->arch, &request, &q->compiled_blocks);
}

static kkt_status compile_one(explain_query *q, kkt_compile_pool *pool, kkt_error *err) {
    kkt_text defines = {0};
    kkt_compile_job job;
    kkt_compile_result result = {0};
    bool got = false;
    int64_t tag;
    kkt_compile_job_fill(q->kernel, q->variant, &q->problem, &q->config, q->arch, &defines, &job);
    kkt_status status = kkt_compile_pool_submit(pool, q->variant, &job, 1, err);
    if (status == KKT_OK)
        status = kkt_compile_pool_next(pool, 3600, &got, &tag, &result, err);
    if (status == KKT_OK && got) {
        kkt_compile_check_entries(q->variant, &q->problem, &q->config, q->arch, &result);
        take_build(q, &result);
    }
    kkt_compile_result_free(&result);
    kkt_text_free(&defines);
    return status;
}

kkt_status explain_compile(explain_query *q, const char *cache, kkt_error *err) {
    if (q->variant->source == NULL) {
        snprintf(q->compile_note, sizeof q->compile_note,
                 "%s has no device code yet: the model alone knows it", q->kernel->name);
        return KKT_OK;
    }
    if (q->here.prediction.infeasible != KKT_FEASIBLE) {
        snprintf(q->compile_note, sizeof q->compile_note, "not compiled: it cannot launch");
        return KKT_OK;
    }
    kkt_compile_pool *pool = NULL;
    kkt_status status = kkt_pool_open(cache, 1, &pool, err);
    if (status != KKT_OK)
        return status;
    snprintf(q->compiler, sizeof q->compiler, "%s", kkt_compile_pool_version(pool));
    status = compile_one(q, pool, err);
    const char *unavailable = kkt_compile_pool_unavailable(pool);
    if (!q->compiled && unavailable != NULL)
        snprintf(q->compile_note, sizeof q->compile_note, "%.300s", unavailable);
    kkt_compile_pool_close(pool);
    return status;
}

/* ---- limits ---- */

static int blocks_with(const explain_query *q, const kkt_occupancy_request *request) {
    kkt_occupancy occupancy;
    kkt_occupancy_compute(q->arch, request, &occupancy);
    return occupancy.blocks_per_sm;
}

/* How far `*value`, a member of `request`, can grow up to `most` without losing a block; blocks
 * only fall as it grows, so halving finds the place. */
static int64_t headroom(const explain_query *q, kkt_occupancy_request *request, int64_t value,
                        int64_t most, void (*set)(kkt_occupancy_request *request, int64_t value)) {
    set(request, value);
    int blocks = blocks_with(q, request);
    set(request, most);
    if (blocks_with(q, request) >= blocks)
        return -1;
    int64_t good = value, bad = most;
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        set(request, middle);
        if (blocks_with(q, request) >= blocks)
            good = middle;
        else
            bad = middle;
    }
    set(request, value);
    return good - value;
}

static void set_registers(kkt_occupancy_request *request, int64_t value) {
    request->registers = (int)value;
}

static void set_smem(kkt_occupancy_request *request, int64_t value) {
    request->dynamic_smem = value;
}

static void set_threads(kkt_occupancy_request *request, int64_t value) {
    request->threads = (int)value;
}

static void set_barriers(kkt_occupancy_request *request, int64_t value) {
    request->barriers = (int)value;
}

void explain_limits(explain_query *q) {
    kkt_occupancy_request request = request_of(q), r = request;
    if (request.threads > 1024 || q->here.prediction.infeasible != KKT_FEASIBLE)
        return; /* nothing launches: there is no headroom to speak of */
    const kkt_occupancy *now = &q->here.prediction.occupancy;
    int64_t smem = request.static_smem + request.dynamic_smem;
    q->limits[KKT_LIMIT_REGISTERS] =
        (explain_limit){.unit = "registers per thread",
                        .used = request.registers,
                        .headroom = headroom(q, &r, request.registers,
                                             q->arch->max_registers_per_thread, set_registers)};
    r = request;
    q->limits[KKT_LIMIT_SHARED_MEMORY] = (explain_limit){
        .unit = "bytes per block",
        .used = smem,
        .headroom =
            headroom(q, &r, request.dynamic_smem,
                     (int64_t)q->arch->smem_optin_bytes + 1 - request.static_smem, set_smem)};
    r = request;
    q->limits[KKT_LIMIT_THREADS] = (explain_limit){
        .unit = "threads per block",
        .used = request.threads,
        .headroom = headroom(q, &r, request.threads, q->arch->max_threads_per_block, set_threads)};
    q->limits[KKT_LIMIT_BLOCKS] =
        (explain_limit){.unit = "blocks per SM",
                        .used = now->blocks_per_sm,
                        .headroom = q->arch->max_blocks_per_sm - now->blocks_per_sm};
    r = request;
    q->limits[KKT_LIMIT_BARRIERS] =
        (explain_limit){.unit = "barriers per block",
                        .used = request.barriers,
                        .headroom = headroom(q, &r, request.barriers, 16, set_barriers)};
    for (int i = 0; i < KKT_OCCUPANCY_LIMITS; i++)
        q->limits[i].blocks_per_sm = now->limits[i];
}

/* ---- moves ---- */

const char *explain_verdict_name(explain_verdict verdict) {
    static const char *const names[] = {
        [EXPLAIN_REJECTED] = "rejected",
        [EXPLAIN_INFEASIBLE] = "infeasible",
        [EXPLAIN_SPILLS] = "spills",
        [EXPLAIN_FEWER_BLOCKS] = "fewer_blocks",
        [EXPLAIN_OTHER_LIMITER] = "other_limiter",
        [EXPLAIN_MORE_BLOCKS] = "more_blocks",
        [EXPLAIN_SAME] = "same",
    };
    return names[verdict];
}

static explain_verdict judge(const kkt_prediction *from, const kkt_prediction *to) {
    if (to->infeasible != KKT_FEASIBLE)
        return EXPLAIN_INFEASIBLE;
    if (to->spills && !from->spills)
        return EXPLAIN_SPILLS;
    if (to->occupancy.blocks_per_sm < from->occupancy.blocks_per_sm)
        return EXPLAIN_FEWER_BLOCKS;
    if (to->occupancy.blocks_per_sm > from->occupancy.blocks_per_sm)
        return EXPLAIN_MORE_BLOCKS;
    bool other = to->occupancy.limiter != from->occupancy.limiter || to->limiter != from->limiter;
    return other ? EXPLAIN_OTHER_LIMITER : EXPLAIN_SAME;
}

static void add_move(explain_query *q, const kkt_param *param, bool of_problem, size_t index,
                     int64_t to) {
    if (q->move_count == EXPLAIN_MOVES)
        return;
    kkt_values problem = q->problem, config = q->config;
    int64_t *value = of_problem ? &problem.v[index] : &config.v[index];
    explain_move *move = &q->moves[q->move_count++];
    *move = (explain_move){.param = param, .of_problem = of_problem, .from = *value, .to = to};
    *value = to;
    explain_point point;
    if (!explain_predict(q, &problem, &config, &point, move->reason)) {
        move->verdict = EXPLAIN_REJECTED;
        return;
    }
    move->prediction = point.prediction;
    move->verdict = judge(&q->here.prediction, &point.prediction);
    snprintf(move->reason, sizeof move->reason, "%s", point.reason);
}

/* Whether no listed number lies between two; lists begin with what is likely to serve. Names have
 * no order but the list's. */
static bool next_to(const kkt_param *param, int64_t a, int64_t b) {
    const int64_t low = a < b ? a : b, high = a < b ? b : a;
    size_t at_a = 0, at_b = 0;
    for (size_t v = 0; v < param->count; v++) {
        at_a = param->values[v] == a ? v : at_a;
        at_b = param->values[v] == b ? v : at_b;
        if (!param->names && param->values[v] > low && param->values[v] < high)
            return false;
    }
    return a != b && (!param->names || at_a + 1 == at_b || at_b + 1 == at_a);
}

/* The listed values beside the present one. */
static void add_neighbours(explain_query *q, const kkt_param *param, bool of_problem, size_t index,
                           int64_t value) {
    for (size_t v = 0; v < param->count; v++)
        if (next_to(param, value, param->values[v]))
            add_move(q, param, of_problem, index, param->values[v]);
}

/* Every parameter, and of the problem what shapes the kernel: listed keys, and the head dimensions
 * halved and doubled. Counts of tokens and heads change the grid alone. */
void explain_moves(explain_query *q) {
    const kkt_param_table *table = &q->variant->params;
    for (size_t p = 0; p < table->count; p++)
        add_neighbours(q, &table->params[p], false, p, q->config.v[p]);
    table = &q->kernel->problem;
    for (size_t p = 0; p < table->count; p++) {
        const kkt_param *param = &table->params[p];
        int64_t value = q->problem.v[p];
        if (param->count > 0)
            add_neighbours(q, param, true, p, value);
        if (strcmp(param->name, "dk") != 0 && strcmp(param->name, "dv") != 0)
            continue;
        if (value / 2 >= param->low)
            add_move(q, param, true, p, value / 2);
        if (value * 2 <= param->high)
            add_move(q, param, true, p, value * 2);
    }
}
