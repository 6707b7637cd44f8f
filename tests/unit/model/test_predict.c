#include "golden.h"

#include "model/predict.h"

/* A solver in the manner of the fastest known kkt_solve: a 128-thread block a chunk and key head,
 * four value heads each, K K^T on tensor cores, couplings in registers. */
static kkt_footprint solver(int64_t tokens, int64_t heads_k, int64_t heads_v, int64_t smem) {
    kkt_footprint fp = {.style = KKT_STYLE_MATERIALIZED,
                        .chunk = 64,
                        .tokens = tokens,
                        .blocks = tokens / 64 * heads_k,
                        .chunks_per_block = 1,
                        .threads = 128,
                        .cluster = 1,
                        .barriers = 1,
                        .launches = 1};
    double heads = (double)heads_v, t = (double)tokens;
    kkt_footprint_role(&fp, "all", 128);
    kkt_footprint_buffer(&fp, KKT_PLACE_REGISTER, "acc", 64, 64, 4);
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "tile", 1, smem, 1);
    fp.hbm_read_bytes = t * (2.0 * (double)heads_k * 128 + 8 * heads);
    fp.hbm_write_bytes = t * heads * 128;
    fp.l2_read_bytes = fp.hbm_read_bytes;
    fp.tensor_flop = t / 64 * (double)heads_k * 2 * 64 * 64 * 128;
    fp.instructions = t / 64 * heads * 1132; /* counted on the card */
    fp.smem_wavefronts = t / 64 * heads * 444;
    kkt_footprint_step(&fp, KKT_STEP_GLOBAL_LOAD, 1, 0);
    kkt_footprint_step(&fp, KKT_STEP_SUBSTITUTION, 7, 4);
    kkt_footprint_step(&fp, KKT_STEP_MMA, 6, 0);
    kkt_footprint_step(&fp, KKT_STEP_BARRIER, 4, 0);
    return fp;
}

static kkt_prediction predict(const kkt_footprint *fp, const char *device_name) {
    const kkt_device *device;
    kkt_prediction out;
    assert_int_equal(kkt_device_parse(device_name, NULL, &device, NULL), KKT_OK);
    kkt_predict(fp, kkt_arch_find(device->arch), device, NULL, &out);
    return out;
}

/* Measured on an H200 (L2 flushed by reading, one graph launch): the bound stays below each and is
 * of use, the prediction is near. */
static void test_bound_below_measured(void **state) {
    (void)state;
    static const struct {
        int64_t tokens, heads_k, heads_v;
        double measured_us;
    } cases[] = {{32768, 16, 64, 107.0}, {8192, 16, 64, 30.6}, {32768, 32, 32, 100.2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        kkt_footprint fp = solver(cases[i].tokens, cases[i].heads_k, cases[i].heads_v, 42 * 1024);
        kkt_prediction p = predict(&fp, "h200");
        assert_true(p.lower_bound_us < cases[i].measured_us);
        assert_true(p.lower_bound_us > 0.4 * cases[i].measured_us);
        assert_true(p.predicted_us >= p.lower_bound_us);
        golden_near(p.predicted_us, cases[i].measured_us, 0.25 * cases[i].measured_us);
        assert_int_equal(p.limiter, KKT_LIMIT_HBM);
        assert_true(p.calibrated);
    }
    kkt_footprint other = solver(32768, 16, 64, 42 * 1024);
    assert_false(predict(&other, "h100").calibrated); /* fitted on an H200 */
}

/* A plain copy of 419 MB takes 101.5 us there; nothing about it but its bytes counts. */
static void test_copy(void **state) {
    (void)state;
    kkt_footprint fp = {.style = KKT_STYLE_MATERIALIZED,
                        .tokens = 1,
                        .blocks = 100000,
                        .chunks_per_block = 1,
                        .threads = 256,
                        .hbm_read_bytes = 209.7e6,
                        .hbm_write_bytes = 209.7e6};
    kkt_footprint_role(&fp, "all", 256);
    kkt_prediction p = predict(&fp, "h200");
    assert_true(p.lower_bound_us < 101.5);
    golden_near(p.predicted_us, 101.5, 5);
    /* Read in runs of 512 bytes it takes longer; the bound takes the bytes alone. */
    fp.run_bytes = 512;
    kkt_prediction short_runs = predict(&fp, "h200");
    assert_true(short_runs.lower_bound_us == p.lower_bound_us);
    golden_near((short_runs.predicted_us - 4.2) / (p.predicted_us - 4.2), 1 + 70.0 / 512, 1e-3);
}

/* Siblings that move the same bytes get different bounds: more wavefronts, longer chains on fewer
 * resident blocks. */
static void test_bound_depends_on_configuration(void **state) {
    (void)state;
    kkt_footprint fp = solver(32768, 16, 64, 42 * 1024);
    double base = predict(&fp, "h200").lower_bound_us;
    fp.smem_wavefronts *= 10;
    double conflicts = predict(&fp, "h200").lower_bound_us;
    assert_true(conflicts > base);
    golden_near(conflicts, fp.smem_wavefronts / (132 * 1980.0), 1e-6 * conflicts);
    kkt_footprint small = solver(32768, 16, 64, 20 * 1024), large = solver(32768, 16, 64, 220000);
    kkt_footprint_step(&small, KKT_STEP_SUBSTITUTION, 2000, 0);
    kkt_footprint_step(&large, KKT_STEP_SUBSTITUTION, 2000, 0);
    assert_true(predict(&large, "h200").lower_bound_us >
                3 * predict(&small, "h200").lower_bound_us);
    assert_int_equal(predict(&large, "h200").limiter, KKT_LIMIT_LATENCY);
}

/* Expected registers must not tighten the bound: the compiler may need fewer. */
static void test_bound_ignores_expected_registers(void **state) {
    (void)state;
    kkt_footprint fp = solver(32768, 16, 64, 1024);
    kkt_footprint_step(&fp, KKT_STEP_SUBSTITUTION, 4000, 0);
    double before = predict(&fp, "h200").lower_bound_us;
    fp.roles[0].extra_registers = 150;
    assert_true(predict(&fp, "h200").lower_bound_us == before);
    assert_true(predict(&fp, "h200").occupancy.blocks_per_sm < 4);
}

/* Loads that a ring has on their way while a block works are no bound: the first one is, and of
 * each later one what neither the style nor the slots can hide. */
static void test_bound_of_loads_ahead(void **state) {
    (void)state;
    static const struct {
        kkt_style_id style;
        int stages;
        double seen;
    } cases[] = {{KKT_STYLE_PIPELINED, 1, 1},
                 {KKT_STYLE_PIPELINED, 4, 0.2}, /* what the style does not hide */
                 {KKT_STYLE_PIPELINED, 8, 1.0 / 8},
                 {KKT_STYLE_FRAGMENT, 4, 1.0 / 4},
                 {KKT_STYLE_WARP_SPECIALIZED, 4, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        kkt_footprint fp = {.style = cases[i].style,
                            .tokens = 1,
                            .blocks = 100,
                            .chunks_per_block = 256,
                            .threads = 256};
        kkt_footprint_role(&fp, "all", 256);
        kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "ring", 64, 16, 2)->stages = cases[i].stages;
        kkt_footprint_step(&fp, KKT_STEP_GLOBAL_LOAD, 3, 0);
        kkt_footprint_step(&fp, KKT_STEP_PRODUCT, 1, 0);
        /* 250 cycles a load and 16 a product, at least. */
        golden_near(predict(&fp, "h200").lower_bound_us,
                    (3 * 250 + 256 * 16 + 255 * 3 * 250 * cases[i].seen) / 1980.0, 1e-6);
    }
}

/* Style A of the article: three C x C fp32 tables at 128 threads. */
static void test_fragment_registers(void **state) {
    (void)state;
    static const struct {
        int64_t chunk;
        int threads;
        double tables;
        bool spills;
    } cases[] = {
        {32, 128, 24, false}, {64, 128, 96, false}, {128, 128, 384, true}, {128, 256, 192, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        kkt_footprint fp = {.style = KKT_STYLE_FRAGMENT,
                            .tokens = 1,
                            .blocks = 1,
                            .chunks_per_block = 1,
                            .threads = cases[i].threads};
        kkt_footprint_role(&fp, "all", cases[i].threads);
        for (int table = 0; table < 3; ++table)
            kkt_footprint_buffer(&fp, KKT_PLACE_REGISTER, "table", cases[i].chunk, cases[i].chunk,
                                 4);
        kkt_prediction p = predict(&fp, "h200");
        assert_true(p.table_registers == cases[i].tables);
        assert_int_equal(p.spills, cases[i].spills);
        assert_int_equal(p.infeasible, KKT_FEASIBLE);
        assert_true(p.registers <= 255 &&
                    (cases[i].spills ? p.registers == 255 : p.registers > p.table_registers));
    }
}

static kkt_footprint specialized(int state_registers) {
    kkt_footprint fp = {.style = KKT_STYLE_WARP_SPECIALIZED,
                        .tokens = 32768,
                        .blocks = 128,
                        .chunks_per_block = 512,
                        .threads = 512,
                        .barriers = 8};
    static const int registers[] = {0, 128, 128, 32};
    for (int i = 0; i < 4; ++i)
        kkt_footprint_role(&fp, "role", 128)->declared_registers =
            i ? registers[i] : state_registers;
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "ring", 63, 1024, 1);
    return fp;
}

/* setmaxnreg: the launch allocates the whole file to 512 threads, so one block fits, whatever the
 * roles keep; roles that keep more than that cannot run. */
static void test_role_registers(void **state) {
    (void)state;
    kkt_footprint fp = specialized(160);
    kkt_prediction p = predict(&fp, "h200");
    assert_int_equal(p.registers, 128);
    assert_int_equal(p.occupancy.blocks_per_sm, 1);
    assert_int_equal(p.occupancy.limiter, KKT_LIMIT_REGISTERS);
    assert_int_equal(p.infeasible, KKT_FEASIBLE);
    fp = specialized(232);
    p = predict(&fp, "h200");
    assert_int_equal(p.infeasible, KKT_TOO_MANY_REGISTERS);
    assert_int_equal(p.limiter, KKT_LIMIT_REGISTERS);
    assert_true(isinf(p.predicted_us) && isinf(p.lower_bound_us));
}

/* FlashInfer's fused kernel declares the file exactly; a role off the grid of 8 cannot run. */
static void test_role_declarations(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    static const int registers[] = {24, 192, 192, 104};
    kkt_footprint fp = specialized(160);
    for (int i = 0; i < 4; ++i)
        fp.roles[i].declared_registers = registers[i];
    assert_int_equal(predict(&fp, "h200").infeasible, KKT_FEASIBLE);
    static const int wrong[] = {20, 16, 100, 264};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        char reason[200], text[80];
        fp.roles[3].declared_registers = wrong[i];
        kkt_prediction p = predict(&fp, "h200");
        assert_int_equal(p.infeasible, KKT_TOO_MANY_REGISTERS);
        kkt_prediction_reason(&fp, arch, kkt_device_first(arch), &p, reason, sizeof reason);
        snprintf(text, sizeof text, "declares %d registers; setmaxnreg takes multiples", wrong[i]);
        assert_non_null(strstr(reason, text));
    }
    /* One role alone: a limit given to the compiler, any number. */
    fp = solver(32768, 16, 64, 1024);
    fp.roles[0].extra_registers = 60;
    fp.roles[0].declared_registers = 50;
    kkt_prediction p = predict(&fp, "h200");
    assert_int_equal(p.registers, 50);
    assert_true(p.spills && p.infeasible == KKT_FEASIBLE);
}

/* Of several roles the one that spills is named, with its own figures and not the launch's. */
static void test_spilling_role(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    kkt_footprint fp = {.style = KKT_STYLE_WARP_SPECIALIZED,
                        .tokens = 1,
                        .blocks = 1,
                        .chunks_per_block = 1,
                        .threads = 384};
    char reason[400];
    kkt_role *state_role = kkt_footprint_role(&fp, "state", 256);
    kkt_role *service = kkt_footprint_role(&fp, "service", 128);
    state_role->declared_registers = 232;
    state_role->extra_registers = 128;
    service->declared_registers = 32;
    service->least_registers = 37;
    kkt_prediction p = predict(&fp, "h200");
    assert_true(p.spills && p.register_demand < p.registers);
    kkt_prediction_reason(&fp, arch, kkt_device_first(arch), &p, reason, sizeof reason);
    assert_non_null(strstr(reason, "role 'service' wants 37 registers a thread and has 32"));
    state_role->extra_registers = 240; /* it lacks more */
    p = predict(&fp, "h200");
    kkt_prediction_reason(&fp, arch, kkt_device_first(arch), &p, reason, sizeof reason);
    assert_non_null(strstr(reason, "role 'state' wants 264 registers a thread and has 232"));
    /* One role alone has what the launch gives a thread. */
    fp.role_count = 1;
    fp.roles[0] = (kkt_role){.name = "all", .threads = 384, .extra_registers = 200};
    p = predict(&fp, "h200");
    kkt_prediction_reason(&fp, arch, kkt_device_first(arch), &p, reason, sizeof reason);
    assert_non_null(strstr(reason, "; spills: it wants 224 registers a thread and has 168"));
}

/* Launch bounds: 1024 threads can have 64 registers each, 256 threads of 4 blocks too. */
static void test_launch_bounds(void **state) {
    (void)state;
    static const struct {
        int threads, min_blocks, most;
    } cases[] = {{1024, 0, 64}, {256, 4, 64}, {128, 0, 255},
                 {128, 3, 168}, {96, 0, 255}, {384, 0, 168}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        kkt_footprint fp = {.style = KKT_STYLE_FRAGMENT,
                            .tokens = 1,
                            .blocks = 1,
                            .chunks_per_block = 1,
                            .threads = cases[i].threads,
                            .min_blocks = cases[i].min_blocks};
        kkt_footprint_role(&fp, "all", cases[i].threads)->extra_registers = 300;
        kkt_prediction p = predict(&fp, "h200");
        assert_int_equal(p.registers, cases[i].most);
        assert_true(p.spills);
        assert_true(p.occupancy.blocks_per_sm >= (cases[i].min_blocks ? cases[i].min_blocks : 1));
    }
}

/* Between the least registers and enough of them nobody knows, and the reason says so. */
static void test_at_the_cap(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    static const struct {
        int min_blocks;
        bool spills, at_the_cap;
    } cases[] = {{0, false, false}, {3, false, true}, {4, true, false}}; /* 255, 168, 128 */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char reason[400];
        kkt_footprint fp = solver(32768, 16, 64, 1024);
        fp.threads = 128;
        fp.min_blocks = cases[i].min_blocks;
        fp.roles[0].threads = 128;
        fp.roles[0].least_registers = 150;
        fp.roles[0].enough_registers = 180;
        kkt_prediction p = predict(&fp, "h200");
        assert_int_equal(p.spills, cases[i].spills);
        assert_int_equal(p.at_the_cap, cases[i].at_the_cap);
        kkt_prediction_reason(&fp, arch, kkt_device_first(arch), &p, reason, sizeof reason);
        assert_int_equal(strstr(reason, "may spill") != NULL, cases[i].at_the_cap);
    }
}

static void test_infeasible_and_reasons(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm89");
    const kkt_device *device = kkt_device_first(arch);
    kkt_prediction p;
    char reason[300];
    kkt_footprint fp = solver(32768, 16, 64, 137 * 1024);
    kkt_predict(&fp, arch, device, NULL, &p);
    assert_int_equal(p.infeasible, KKT_TOO_MUCH_SMEM);
    assert_int_equal(p.occupancy.blocks_per_sm, 0);
    assert_int_equal(p.limiter, KKT_LIMIT_SHARED_MEMORY);
    kkt_prediction_reason(&fp, arch, device, &p, reason, sizeof reason);
    assert_string_equal(reason, "needs 140288 bytes of shared memory a block; sm89 allows 101376");
    fp = solver(32768, 16, 64, 1024);
    fp.threads = 1056;
    kkt_predict(&fp, arch, device, NULL, &p);
    assert_int_equal(p.infeasible, KKT_TOO_MANY_THREADS);
    kkt_prediction_reason(&fp, arch, device, &p, reason, sizeof reason);
    assert_string_equal(reason, "1056 threads a block; at most 1024 can be launched");
    fp = specialized(232);
    kkt_predict(&fp, kkt_arch_find("90"), device, NULL, &p);
    kkt_prediction_reason(&fp, kkt_arch_find("90"), device, &p, reason, sizeof reason);
    assert_non_null(strstr(reason, "declare 66560 registers a block; the launch allocates 128 x "
                                   "512 = 65536"));
    fp = solver(32768, 16, 64, 1024);
    kkt_predict(&fp, arch, device, NULL, &p);
    kkt_prediction_reason(&fp, arch, device, &p, reason, sizeof reason);
    assert_non_null(strstr(reason, "takes the time"));
    assert_null(strstr(reason, "the pipe of"));
    fp.smem_wavefronts = 1e15;
    kkt_predict(&fp, arch, device, NULL, &p);
    kkt_prediction_reason(&fp, arch, device, &p, reason, sizeof reason);
    assert_memory_equal(reason, "shared_bandwidth (the pipe of L1 and shared memory) takes the",
                        61);
    /* A short buffer is cut, never overrun. */
    kkt_prediction_reason(&fp, arch, device, &p, reason, 8);
    assert_int_equal(strlen(reason), 7);
}

/* Each resource can be what takes the time. */
static void test_time_limiters(void **state) {
    (void)state;
    static const struct {
        size_t offset;
        kkt_limiter limiter;
    } cases[] = {
        {offsetof(kkt_footprint, hbm_read_bytes), KKT_LIMIT_HBM},
        {offsetof(kkt_footprint, l2_read_bytes), KKT_LIMIT_L2},
        {offsetof(kkt_footprint, smem_wavefronts), KKT_LIMIT_SHARED_BANDWIDTH},
        {offsetof(kkt_footprint, tensor_flop), KKT_LIMIT_TENSOR},
        {offsetof(kkt_footprint, mma_sync_flop), KKT_LIMIT_TENSOR},
        {offsetof(kkt_footprint, tf32_flop), KKT_LIMIT_TENSOR},
        {offsetof(kkt_footprint, fp32_flop), KKT_LIMIT_FP32},
        {offsetof(kkt_footprint, instructions), KKT_LIMIT_ISSUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        kkt_footprint fp = solver(32768, 16, 64, 1024); /* warps enough to issue all the time */
        *(double *)(void *)((char *)&fp + cases[i].offset) = 1e15;
        kkt_prediction p = predict(&fp, "h200");
        assert_int_equal(p.limiter, cases[i].limiter);
        assert_true(p.lower_bound_us > 1000 && p.predicted_us > p.lower_bound_us);
    }
}

/* What an architecture is known to do otherwise than an H200. */
static void test_rates_of_an_architecture(void **state) {
    (void)state;
    kkt_footprint fp = solver(32768, 16, 64, 1024);
    fp.l2_read_bytes = 1e14; /* of 8.7 TB/s that an RTX PRO 6000's L2 was measured to give */
    kkt_prediction p = predict(&fp, "rtxpro6000");
    assert_int_equal(p.limiter, KKT_LIMIT_L2);
    assert_true(p.predicted_us > 1e14 / 8.8e6 && p.predicted_us < 1.1 * 1e14 / 8.6e6);
    /* mma.sync beside tcgen05: a quarter of the tensor rate, not all of it. */
    fp = solver(32768, 16, 64, 1024);
    fp.mma_sync_flop = 1e15;
    const double by_mma = predict(&fp, "b300").predicted_us;
    fp.mma_sync_flop = 0;
    fp.tensor_flop = 1e15;
    const double by_tensor = predict(&fp, "b300").predicted_us;
    assert_true(by_mma > 3.9 * by_tensor && by_mma < 4.1 * by_tensor);
}

/* Four blocks of 46 KB an SM leave 60 KB of an H200's 256 to L1, those of 50 KB, or all that can be
 * shared, 28: lines on their way have half as many places. */
static double places_us(int64_t tile_bytes, int carveout, double lines) {
    kkt_footprint fp = {.style = KKT_STYLE_MATERIALIZED,
                        .tokens = 1,
                        .blocks = 528,
                        .chunks_per_block = 1,
                        .threads = 128,
                        .min_blocks = 4,
                        .l1_lines = lines,
                        .carveout_percent = carveout};
    kkt_footprint_role(&fp, "all", 128)->extra_registers = 60;
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "tile", 1, tile_bytes, 1);
    const kkt_prediction p = predict(&fp, "h200");
    assert_int_equal(p.occupancy.blocks_per_sm, 4);
    assert_int_equal(p.limiter, KKT_LIMIT_LATENCY);
    return p.predicted_us;
}

static void test_places_in_l1(void **state) {
    (void)state;
    const double none = places_us(46080, 0, 0);
    const double lines = places_us(46080, 0, 1e8) - none, all = places_us(46080, 100, 1e8) - none;
    assert_true(fabs(all / lines - 60.0 / 28) < 0.01);
    assert_true(fabs((places_us(50176, 0, 1e8) - none) / all - 1) < 0.01);
    assert_true(places_us(46080, 100, 0) == none);
}

/* 264 blocks that stay, two an SM of an H200, and that many chunks in all. */
static double turns_us(int64_t chunks, double hbm_bytes, double steps) {
    kkt_footprint fp = {.style = KKT_STYLE_FRAGMENT,
                        .tokens = 1,
                        .blocks = 264,
                        .chunks_per_block = (chunks + 263) / 264,
                        .all_chunks = (double)chunks,
                        .threads = 128,
                        .min_blocks = 2,
                        .hbm_read_bytes = hbm_bytes * (double)chunks};
    kkt_footprint_role(&fp, "all", 128);
    kkt_footprint_step(&fp, KKT_STEP_PRODUCT, steps, 0);
    return predict(&fp, "h200").predicted_us;
}

/* What the last turn of persistent blocks asks of memory is its chunks'; how long it takes a block
 * is not less with few of them. */
static void test_turns(void **state) {
    (void)state;
    const double launch_us = turns_us(264, 0, 0);
    const double by_memory = turns_us(3 * 264, 1e6, 1) - launch_us;
    const double less_memory = turns_us(2 * 264 + 66, 1e6, 1) - launch_us;
    assert_true(fabs(less_memory / by_memory - 2.25 / 3) < 0.01);
    const double by_chain = turns_us(3 * 264, 1, 1000) - launch_us;
    const double less_chain = turns_us(2 * 264 + 66, 1, 1000) - launch_us;
    assert_true(fabs(less_chain / by_chain - 1) < 0.01);
    const double both = turns_us(3 * 264, 20e3, 200) - launch_us;
    const double less = turns_us(2 * 264 + 66, 20e3, 200) - launch_us;
    assert_true(less < both && less > 0.8 * both);
}

/* Blocks that stay with tiles of 64 steps, 264 blocks of which some have three tiles and some two:
 * of turns there is nothing to be known, and the time is what it is without them. */
static void test_steps_are_no_turns(void **state) {
    (void)state;
    kkt_footprint fp = {.style = KKT_STYLE_WARP_SPECIALIZED,
                        .tokens = 1,
                        .blocks = 264,
                        .chunks_per_block = 3 * 64,
                        .all_chunks = (2 * 264 + 66) * 64.0,
                        .threads = 128,
                        .min_blocks = 2,
                        .hbm_read_bytes = 1e9};
    kkt_footprint_role(&fp, "all", 128);
    kkt_footprint_step(&fp, KKT_STEP_PRODUCT, 1, 0);
    const kkt_prediction steps = predict(&fp, "h200");
    fp.all_chunks = 0;
    const kkt_prediction even = predict(&fp, "h200");
    assert_true(isfinite(steps.predicted_us));
    assert_true(steps.predicted_us > 1.02 * steps.lower_bound_us);
    assert_true(fabs(steps.predicted_us / even.predicted_us - 1) < 0.01);
}

/* Every launch of a plan must have its block's shared memory; the figures are those of one. */
static void another_launch_may_take_more_than_there_is(void **state) {
    (void)state;
    const kkt_arch *arch = kkt_arch_find("sm90");
    const kkt_device *device = kkt_device_first(arch);
    kkt_prediction alone, p;
    char reason[300];
    kkt_footprint fp = solver(32768, 16, 64, 40 * 1024);
    kkt_predict(&fp, arch, device, NULL, &alone);
    assert_int_equal(alone.most_smem_bytes, alone.smem_bytes);
    fp.most_smem_bytes = arch->smem_optin_bytes - fp.static_smem_bytes;
    kkt_predict(&fp, arch, device, NULL, &p);
    assert_int_equal(p.infeasible, KKT_FEASIBLE);
    assert_int_equal(p.most_smem_bytes, arch->smem_optin_bytes);
    assert_int_equal(p.smem_bytes, alone.smem_bytes);
    assert_int_equal(p.occupancy.blocks_per_sm, alone.occupancy.blocks_per_sm);
    fp.most_smem_bytes++;
    kkt_predict(&fp, arch, device, NULL, &p);
    assert_int_equal(p.infeasible, KKT_TOO_MUCH_SMEM);
    assert_int_equal(p.limiter, KKT_LIMIT_SHARED_MEMORY);
    kkt_prediction_reason(&fp, arch, device, &p, reason, sizeof reason);
    assert_non_null(strstr(reason, "needs 232449 bytes of shared memory a block"));
    fp.most_smem_bytes = 1; /* less than the one that is told of */
    kkt_predict(&fp, arch, device, NULL, &p);
    assert_int_equal(p.most_smem_bytes, alone.smem_bytes);
}

static void test_buffers(void **state) {
    (void)state;
    kkt_footprint fp = {0};
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "a", 3, 5, 2); /* 30 bytes take 32 */
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "b", 16, 16, 4)->stages = 3;
    kkt_footprint_buffer(&fp, KKT_PLACE_SHARED, "c", 16, 16, 4)->overlays = 2;
    kkt_footprint_buffer(&fp, KKT_PLACE_HBM, "t", 1 << 20, 64, 2);
    assert_int_equal(kkt_footprint_smem_bytes(&fp), 32 + 3072);
}

static void test_limiter_names(void **state) {
    (void)state;
    static const char *const names[] = {"registers", "shared_memory", "threads", "blocks",
                                        "barriers",  "hbm",           "l2",      "shared_bandwidth",
                                        "tensor",    "fp32",          "issue",   "latency"};
    for (int i = 0; i < KKT_LIMIT_COUNT; ++i)
        assert_string_equal(kkt_limiter_name((kkt_limiter)i), names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_below_measured),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_bound_depends_on_configuration),
        cmocka_unit_test(test_bound_ignores_expected_registers),
        cmocka_unit_test(test_bound_of_loads_ahead),
        cmocka_unit_test(test_fragment_registers),
        cmocka_unit_test(test_role_registers),
        cmocka_unit_test(test_role_declarations),
        cmocka_unit_test(test_spilling_role),
        cmocka_unit_test(test_launch_bounds),
        cmocka_unit_test(test_at_the_cap),
        cmocka_unit_test(test_infeasible_and_reasons),
        cmocka_unit_test(test_time_limiters),
        cmocka_unit_test(test_rates_of_an_architecture),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_steps_are_no_turns),
        cmocka_unit_test(test_places_in_l1),
        cmocka_unit_test(another_launch_may_take_more_than_there_is),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_limiter_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
