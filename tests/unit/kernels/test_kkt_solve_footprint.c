/* The solver's footprint, constraints and launch plan: golden HBM bytes, shared memory by hand, the
 * reasons of rejected configurations, canonical text, and that buffers, -D options and plan agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "kernels/kkt_solve/kkt_solve.h"
#include "model/traffic.h"

/* ---- helpers ---- */

static const kkt_kernel *kernel(void) {
    return &kkt_kernel_kkt_solve;
}

static const kkt_variant *variant(void) {
    return kkt_kernel_kkt_solve.variants[0];
}

static const kkt_arch *arch(const char *name) {
    const kkt_arch *found = kkt_arch_find(name);
    assert_non_null(found);
    return found;
}

static kkt_values problem_of(const char *text) {
    kkt_values values;
    kkt_error err = {0};
    kkt_params_defaults(&kernel()->problem, &values);
    if (kkt_params_parse(&kernel()->problem, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

/* What is not named: couplings through shared memory, a block of four warps. */
static kkt_values config_of(const char *text) {
    kkt_values values;
    kkt_error err = {0};
    kkt_params_defaults(&variant()->params, &values);
    if (kkt_params_parse(&variant()->params, "couple=tf32,threads=128", &values, NULL, &err) !=
        KKT_OK)
        fail_msg("%s", err.message);
    if (kkt_params_parse(&variant()->params, text, &values, NULL, &err) != KKT_OK)
        fail_msg("%s", err.message);
    return values;
}

static kkt_footprint footprint_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_footprint footprint;
    variant()->footprint(&p, &c, arch("sm90"), &footprint);
    return footprint;
}

static kkt_plan plan_of(const char *problem, const char *config) {
    const kkt_values p = problem_of(problem), c = config_of(config);
    kkt_plan plan;
    variant()->plan(&p, &c, arch("sm90"), &plan);
    return plan;
}

static const kkt_buffer *buffer_of(const kkt_footprint *footprint, const char *name) {
    for (int i = 0; i < footprint->buffer_count; ++i)
        if (strcmp(footprint->buffers[i].name, name) == 0)
            return &footprint->buffers[i];
    return NULL;
}

/* NULL where the configuration is accepted, else the reason (static). */
static const char *rejected(const char *problem, const char *config, const char *arch_name) {
    static char reason[256];
    const kkt_values p = problem_of(problem), c = config_of(config);
    reason[0] = '\0';
    return variant()->applicable(&p, &c, arch(arch_name), reason, sizeof reason) ? NULL : reason;
}

static int64_t integer(const kkt_json *row, const char *key) {
    int64_t value = 0;
    assert_true(kkt_json_int(row, key, &value));
    return value;
}

/* ---- traffic ---- */

static void hbm_bytes_equal_the_golden_values(void **state) {
    char *text = NULL;
    size_t length = 0;
    int rows = 0;
    kkt_json *root = NULL;
    kkt_error err = {0};
    (void)state;
    assert_int_equal(
        kkt_file_read(KKT_TEST_DATA "/golden/traffic.json", 1 << 20, &text, &length, &err), KKT_OK);
    assert_int_equal(kkt_json_parse(text, length, "traffic.json", &root, &err), KKT_OK);
    for (const kkt_json *row = kkt_json_first(kkt_json_get(root, "hbm")); row;
         row = kkt_json_next(row)) {
        if (strcmp(kkt_json_string(row, "kernel"), "kkt_solve") != 0)
            continue;
        kkt_values problem = problem_of(""), config = config_of("");
        kkt_footprint footprint;
        problem.v[KKT_SOLVE_TOKENS] = integer(row, "tokens");
        problem.v[KKT_SOLVE_HEADS_K] = integer(row, "heads_k");
        problem.v[KKT_SOLVE_HEADS_V] = integer(row, "heads_v");
        problem.v[KKT_SOLVE_DK] = integer(row, "dk");
        problem.v[KKT_SOLVE_GATED] = integer(row, "gated");
        config.v[KKT_SOLVE_CHUNK] = integer(row, "chunk");
        variant()->footprint(&problem, &config, arch("sm90"), &footprint);
        assert_true(footprint.hbm_read_bytes + footprint.hbm_write_bytes ==
                    (double)integer(row, "bytes"));
        ++rows;
    }
    assert_int_equal(rows, 20); /* five problems, four chunks */
    kkt_json_close(root);
    free(text);
}

static void no_gate_reads_no_g(void **state) {
    (void)state;
    const kkt_footprint with = footprint_of("tokens=1000,gated=1", "");
    const kkt_footprint without = footprint_of("tokens=1000,gated=0", "");
    assert_true(with.hbm_read_bytes - without.hbm_read_bytes == 4.0 * 1000 * 64);
    assert_true(with.hbm_write_bytes == without.hbm_write_bytes);
    assert_null(buffer_of(&without, "g"));
    assert_null(buffer_of(&without, "column"));
}

/* ---- shared memory ---- */

static void shared_memory_by_hand(void **state) {
    (void)state;
    /* Ten 16 x 16 blocks of 17 rows x 16 words a head, over a K tile of 64 x 136 elements; four
     * tables of a float a row and head. */
    const kkt_footprint four = footprint_of("", "heads_per_block=4,block_pad=1,row_stride=16");
    assert_int_equal(kkt_footprint_smem_bytes(&four), 4 * 10 * 17 * 16 * 4 + 4 * 4 * 64 * 4);
    /* One head's triangle is smaller than the tile. */
    const kkt_footprint one = footprint_of("", "heads_per_block=1");
    assert_int_equal(kkt_footprint_smem_bytes(&one), 64 * 136 * 2 + 4 * 64 * 4);
    /* Rows of 17 words; three blocks and a table of beta alone. */
    const kkt_footprint odd =
        footprint_of("dk=16,gated=0", "chunk=32,heads_per_block=1,block_pad=0,row_stride=17");
    assert_int_equal(kkt_footprint_smem_bytes(&odd), 3 * 16 * 17 * 4 + 32 * 4);
    /* A dense tile of 64 x 72 elements for each of the four teams. */
    const kkt_footprint dense =
        footprint_of("", "heads_per_block=4,block_pad=1,assemble_fused=0,threads=128");
    assert_int_equal(kkt_footprint_smem_bytes(&dense),
                     kkt_footprint_smem_bytes(&four) + 4 * 64 * 72 * 2);
    /* The whole chunk as one block takes no block padding. */
    const kkt_footprint row = footprint_of("", "inverse=row,heads_per_block=2");
    assert_int_equal(kkt_footprint_smem_bytes(&row), 2 * 64 * 64 * 4 + 4 * 2 * 64 * 4);
}

static void barriers_follow_the_teams(void **state) {
    (void)state;
    assert_int_equal(footprint_of("", "threads=128,heads_per_block=1").barriers, 1); /* the block */
    assert_int_equal(footprint_of("", "threads=128,heads_per_block=4").barriers, 1); /* a warp */
    assert_int_equal(footprint_of("", "threads=256,heads_per_block=4").barriers, 5); /* 2 warps */
}

#define REGISTERS "couple=fp16,base=8,"

static int64_t smem_of(const char *problem, const char *config) {
    const kkt_footprint footprint = footprint_of(problem, config);
    return kkt_footprint_smem_bytes(&footprint);
}

static void shared_memory_of_couplings_in_registers(void **state) {
    (void)state;
    /* Four regions as large as a tile of T; ten blocks of K K^T, three quarters of four of them;
     * four tables a head. */
    assert_int_equal(smem_of("", REGISTERS "heads_per_block=4"),
                     4 * 64 * 64 * 2 + 10 * 1024 - 4 * 256 + 4 * 4 * 64 * 4);
    /* A head alone has its scratch behind K K^T, and all of it lies over the tile of K. */
    assert_int_equal(smem_of("", REGISTERS "threads=32"), 64 * 128 * 2 + 4 * 64 * 4);
    /* At dk 64 the tile is the smaller one: K K^T, eight blocks of 72 words, in whole kilobytes. */
    assert_int_equal(smem_of("dk=64,gated=0", REGISTERS "threads=32"), 12 * 1024 + 64 * 4);
    assert_int_equal(smem_of("dk=64,gated=0", REGISTERS "threads=32,kload=tma"),
                     12 * 1024 + 64 * 4 + 16);
    /* Two chunks keep scratch and T apart: 4,096 and 2,304 bytes; six blocks of K K^T. */
    assert_int_equal(smem_of("gated=0", REGISTERS "chunk=32,chunks_per_block=2,heads_per_block=4"),
                     4 * 7 * 1024 + 5 * 1024 + 4 * 64 * 4);
    /* Halves of a chunk of 128 take turns. */
    assert_int_equal(smem_of("gated=0", REGISTERS "chunk=128,heads_per_block=4,store=tma_halves"),
                     4 * 64 * 128 * 2 + 34 * 1024 + 4 * 128 * 4);
    /* Each warp its own tile of K, and a barrier for it. */
    assert_int_equal(smem_of("gated=0", REGISTERS "share=value_head,heads_per_block=4,kload=tma"),
                     4 * 64 * 128 * 2 + 4 * 64 * 4 + 32);
    /* Teams of two: two quarters of T, the operands of both halves (20 blocks of 512 bytes) and two
     * columns of four; K K^T, a quarter of zeros. */
    assert_int_equal(smem_of("gated=0", REGISTERS
                             "chunk=128,heads_per_block=2,warps_per_head=2,store=tma_halves"),
                     2 * (2 * 64 * 64 * 2 + 28 * 512) + 34 * 1024 + 64 * 64 * 2 + 2 * 128 * 4);
}

/* ---- chain ---- */

static double steps(const char *config, kkt_step_kind kind) {
    const kkt_footprint footprint = footprint_of("", config);
    double count = 0;
    for (int i = 0; i < footprint.step_count; ++i)
        if (footprint.steps[i].kind == kind)
            count += footprint.steps[i].count;
    return count;
}

static void chain_is_the_articles(void **state) {
    (void)state;
    assert_true(steps("couple=fp32", KKT_STEP_SUBSTITUTION) == 15);
    assert_true(steps("couple=fp32", KKT_STEP_COUPLING) == 4); /* 19 in all */
    assert_true(steps("couple=fp32,inverse=flat", KKT_STEP_COUPLING) == 6);
    assert_true(steps("inverse=row", KKT_STEP_SUBSTITUTION) == 63);
    assert_true(steps("inverse=row", KKT_STEP_COUPLING) == 0);
    assert_true(steps("chunk=128,couple=tf32", KKT_STEP_MMA) == 6);
    /* Padding halves the passes of the substitution's broadcast loads. */
    assert_true(footprint_of("", "block_pad=1").smem_wavefronts <
                footprint_of("", "block_pad=0").smem_wavefronts);
}

/* ---- constraints ---- */

static void reasons_name_the_numbers(void **state) {
    (void)state;
    assert_null(rejected("", "", "sm90"));
    assert_null(rejected("", "inverse=row", "sm90"));
    assert_null(rejected("", "heads_per_block=4", "sm120"));
    assert_string_equal(rejected("heads_v=32", "heads_per_block=3", "sm90"),
                        "heads_per_block=3 does not divide heads_v/heads_k = 2: a divisor fits");
    assert_string_equal(rejected("", "chunk=16,base=32", "sm90"),
                        "base=32 is above chunk=16: a base of at most the chunk fits");
    assert_string_equal(rejected("", "chunk=16,base=16,inverse=flat", "sm90"),
                        "base=16 leaves one block of chunk=16 and nothing to couple; "
                        "inverse=recursive stands for it");
    assert_string_equal(rejected("", "inverse=row,base=8", "sm90"),
                        "base=8 changes nothing where inverse is row; only 16 stands for it");
    assert_string_equal(rejected("", "inverse=row,couple=fp32", "sm90"),
                        "couple=fp32 changes nothing where the chunk is one block; "
                        "only tf32 stands for it");
    assert_string_equal(rejected("", "transpose=1", "sm90"),
                        "transpose=1 changes nothing where couple is tf32; only 0 stands for it");
    assert_null(rejected("", "transpose=1,couple=fp32", "sm90"));
    assert_string_equal(rejected("", "chunk=128,threads=32", "sm90"),
                        "chunk=128 at threads=32 keeps 36 tiles of K K^T in each warp, 288 "
                        "registers a thread, above 255: threads=64 shares them");
    assert_null(rejected("", "chunk=128,threads=64", "sm90"));
    assert_string_equal(rejected("", REGISTERS "chunk=128,threads=32", "sm120"),
                        "chunk=128 at threads=32 keeps 36 tiles of K K^T in each warp, more than "
                        "160 registers a thread: threads=64,warps_per_head=2 shares them");
    assert_null(rejected("", REGISTERS "chunk=128,threads=64,warps_per_head=2", "sm120"));
    assert_non_null(rejected("batch=1024,tokens=1073741824", "chunk=16", "sm90"));
    assert_non_null(strstr(rejected("", "", "sm75"), "sm75"));
}

static void registers_say_what_they_need(void **state) {
    (void)state;
    assert_null(
        rejected("", REGISTERS "heads_per_block=4,store=tma_halves,kload=tma,mma=wgmma", "sm90"));
    assert_null(rejected("", REGISTERS "heads_per_block=4", "sm80"));
    assert_null(rejected("heads_v=16", "couple=bf16x3,base=16,threads=32", "sm89"));
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,kload=tma", "sm80"),
                        "sm80 has no TMA (tensor maps): sm90 or later does");
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,mma=wgmma", "sm100"),
                        "sm100 has no wgmma: sm90 alone does");
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,threads=64,mma=wgmma", "sm90"),
                        "mma=wgmma takes 64 or 128 rows and threads=128, not 64 and 64");
    assert_string_equal(
        rejected("", REGISTERS "heads_per_block=1", "sm90"),
        "threads=128 is 4 warps for heads_per_block=1, and warps_per_head=1: threads=32 "
        "or heads_per_block=4 gives each its work");
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,block_pad=0", "sm90"),
                        "block_pad=0 changes nothing where couplings stay in registers; only 1 "
                        "stands for it");
    assert_string_equal(rejected("", "store=direct", "sm90"),
                        "store=direct changes nothing where couplings go through shared memory; "
                        "only staged stands for it");
    assert_string_equal(rejected("dk=80", REGISTERS "heads_per_block=4", "sm90"),
                        "dk=80 is no multiple of 64, the width of a swizzled panel of K; "
                        "couple=fp32 or tf32 takes it");
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,chunks_per_block=2", "sm90"),
                        "chunks_per_block=2 of chunk=64 are above 64 rows: fewer chunks fit");
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,min_blocks=16", "sm90"),
                        "min_blocks=16 of threads=128 leave 32 registers a thread: fragments take "
                        "more, so fewer blocks fit");
    assert_non_null(rejected("", REGISTERS "heads_per_block=4,inverse=flat", "sm90"));
    assert_null(rejected("", REGISTERS "heads_per_block=4,min_blocks=3,persistent=1", "sm90"));
    assert_string_equal(rejected("", REGISTERS "heads_per_block=4,persistent=1", "sm90"),
                        "persistent=1 launches min_blocks an SM: min_blocks=0 does not say how "
                        "many");
    assert_string_equal(
        rejected("", REGISTERS "heads_per_block=4,min_blocks=4,persistent=1", "sm90"),
        "persistent=1 has all its blocks resident: 63488 bytes of shared memory "
        "each let 3 in, not min_blocks=4");
    assert_string_equal(rejected("", "couple=tf32,persistent=1", "sm90"),
                        "persistent=1 changes nothing where couplings go through shared memory; "
                        "only 0 stands for it");
    assert_null(rejected("heads_v=16", REGISTERS "heads_per_block=4,share=value_head", "sm80"));
    assert_string_equal(
        rejected("", REGISTERS "heads_per_block=2,share=value_head", "sm90"),
        "share=value_head takes a warp for each of heads_per_block=2: threads=64, not "
        "128");
    assert_string_equal(
        rejected("heads_v=16", REGISTERS "heads_per_block=3,share=key_head,threads=64", "sm90"),
        "heads_per_block=3 does not divide heads_v/heads_k = 1: a divisor fits");
    assert_null(rejected("", REGISTERS "chunk=128,heads_per_block=2,warps_per_head=2", "sm80"));
    assert_string_equal(
        rejected("", REGISTERS "chunk=32,heads_per_block=2,warps_per_head=2", "sm90"),
        "warps_per_head=2 takes one chunk of 64 or 128 rows a block: halves of less are one "
        "substitution");
    assert_string_equal(
        rejected("", REGISTERS "heads_per_block=2,warps_per_head=2,store=tma", "sm90"),
        "warps_per_head=2 takes store staged or tma_halves: it has the quarters of T");
    assert_string_equal(
        rejected("", REGISTERS "heads_per_block=1,warps_per_head=2", "sm90"),
        "threads=128 is 4 warps for heads_per_block=1, and warps_per_head=2: threads=64 "
        "or heads_per_block=2 gives each its work");
    assert_non_null(rejected("", "couple=fp16,heads_per_block=4,chunk=16", "sm90"));
    assert_non_null(rejected("", "inverse=neumann", "sm90"));
}

/* ---- plan and text ---- */

static void tensor_maps_follow_the_span(void **state) {
    (void)state;
    const kkt_plan none = plan_of("", REGISTERS "heads_per_block=4");
    const int count = none.launches[0].arg_count;
    const kkt_plan plan =
        plan_of("tokens=1000", REGISTERS "heads_per_block=4,store=tma_halves,carveout=100");
    assert_int_equal(plan.launches[0].carveout_percent, 100);
    assert_int_equal(plan.launches[0].arg_count, count + 2);
    const kkt_arg *k = &plan.launches[0].args[count], *t = k + 1;
    assert_int_equal(k->kind, KKT_ARG_TENSOR_MAP);
    assert_int_equal(k->tensor, KKT_SOLVE_TENSOR_K);
    assert_int_equal(k->map.dims[0], 16 * 128);
    assert_int_equal(k->map.dims[1], 1000);
    assert_int_equal(k->map.strides_bytes[1], 16 * 128 * 2);
    assert_int_equal(k->map.box[1], 64);
    assert_int_equal(t->tensor, KKT_SOLVE_TENSOR_T);
    assert_int_equal(t->map.dims[0], 64 * 64);
    assert_int_equal(t->map.box[0], 64);
    assert_int_equal(t->map.box[1], 32); /* a half */
    assert_int_equal(t->map.swizzle_bytes, 128);
    const kkt_plan small =
        plan_of("", REGISTERS "chunk=32,chunks_per_block=2,heads_per_block=4,store=tma");
    assert_int_equal(small.launches[0].grid[1], 32768 / 64);
    assert_int_equal(small.launches[0].args[count + 1].map.box[0], 32);
    assert_int_equal(small.launches[0].args[count + 1].map.box[1], 64);
    assert_int_equal(small.launches[0].args[count + 1].map.swizzle_bytes, 64);
}

static void plan_covers_every_chunk(void **state) {
    (void)state;
    const kkt_plan plain = plan_of("batch=3,tokens=390,heads_k=2,heads_v=8", "heads_per_block=2");
    assert_int_equal(plain.launch_count, 1);
    assert_int_equal(plain.launches[0].grid[0], 4); /* groups of heads */
    assert_int_equal(plain.launches[0].grid[1], 3 * 3);
    assert_int_equal(plain.launches[0].block[0], 128);
    /* Enough for any lengths that add up to the tokens: 130 / 64 + 5. */
    const kkt_plan packed = plan_of("sequences=5,tokens=130,heads_k=2,heads_v=2", "");
    assert_int_equal(packed.launches[0].grid[0], 2);
    assert_int_equal(packed.launches[0].grid[1], 7);
    assert_int_equal(packed.launches[0].args[KKT_SOLVE_TENSOR_CU_SEQLENS].tensor,
                     KKT_SOLVE_TENSOR_CU_SEQLENS);
    assert_int_equal(packed.launches[0].args[KKT_SOLVE_TENSORS].integer, 130);
    /* Far more spans than an axis takes: the rest is along z. */
    const kkt_plan large = plan_of("tokens=4194305", "chunk=16");
    assert_int_equal(large.launches[0].grid[0], 64);
    assert_int_equal(large.launches[0].grid[1], 32768);
    assert_int_equal(large.launches[0].grid[2], 9); /* 262,145 spans */
}

#define PERSISTENT REGISTERS "heads_per_block=4,store=tma_halves,min_blocks=4,persistent=1"

static void persistent_blocks_share_the_work(void **state) {
    (void)state;
    /* K's tile of its own, and regions of half a tile of T. */
    assert_int_equal(smem_of("", PERSISTENT),
                     64 * 128 * 2 + 4 * 32 * 64 * 2 + 10 * 1024 - 4 * 256 + 4 * 4 * 64 * 4);
    /* 512 chunks and 16 groups of heads for four blocks on each of 132 SMs. */
    const kkt_footprint footprint = footprint_of("", PERSISTENT);
    const kkt_footprint one_each = footprint_of("", REGISTERS "heads_per_block=4,store=tma_halves");
    assert_int_equal(footprint.blocks, 4 * 132);
    assert_int_equal(footprint.chunks_per_block, 16); /* 15.5, the most */
    assert_int_equal(one_each.blocks, 512 * 16);
    assert_true(footprint.instructions == one_each.instructions);
    assert_true(footprint.smem_wavefronts == one_each.smem_wavefronts);
    const kkt_plan plan = plan_of("", PERSISTENT);
    assert_int_equal(plan.launches[0].grid[0], 4 * 132);
    assert_int_equal(plan.launches[0].grid[1], 1);
    assert_int_equal(plan.launches[0].grid[2], 1);
    /* No more than there is to do. */
    assert_int_equal(plan_of("tokens=256", PERSISTENT).launches[0].grid[0], 4 * 16);
}

static void defines_carry_the_same_bytes(void **state) {
    (void)state;
    const kkt_values p = problem_of("dk=64,dtype=fp16,gated=0"), c = config_of("chunk=32,base=8");
    kkt_text text = {0};
    char expected[64];
    kkt_footprint footprint;
    variant()->footprint(&p, &c, arch("sm90"), &footprint);
    kkt_variant_defines(kernel(), variant(), &p, &c, arch("sm90"), &text);
    snprintf(expected, sizeof expected, "KKT_SMEM_BYTES=%lld\n",
             (long long)kkt_footprint_smem_bytes(&footprint));
    assert_non_null(strstr(kkt_text_get(&text), expected));
    assert_non_null(strstr(kkt_text_get(&text), "KKT_CHUNK=32\n"));
    assert_non_null(strstr(kkt_text_get(&text), "KKT_DK=64\nKKT_DTYPE=1\nKKT_GATED=0\n"));
    assert_null(strstr(kkt_text_get(&text), "tokens")); /* binaries are shared across lengths */
    kkt_text_free(&text);
}

static void canonical_text(void **state) {
    (void)state;
    const kkt_values p = problem_of(kernel()->default_problems[0]), c = config_of("inverse=flat");
    kkt_text text = {0};
    kkt_params_format(&kernel()->problem, &p, &text);
    assert_string_equal(kkt_text_get(&text), "batch=1,dk=128,dtype=bf16,gated=1,heads_k=16,"
                                             "heads_v=64,sequences=1,t_form=t,tokens=32768");
    kkt_text_free(&text);
    kkt_params_format(&variant()->params, &c, &text);
    assert_string_equal(
        kkt_text_get(&text),
        "assemble_fused=1,base=16,block_pad=1,carveout=0,chunk=64,chunks_per_block=1,couple=tf32,"
        "heads_per_block=1,inverse=flat,kload=cp_async,min_blocks=0,mma=mma_sync,negate_early=1,"
        "persistent=0,row_stride=16,share=key_head,store=staged,threads=128,transpose=0,"
        "warps_per_head=1");
    kkt_text_free(&text);
}

static void sources_are_embedded_and_complete(void **state) {
    (void)state;
    /* What the listed files include is listed. */
    for (const char *const *at = variant()->sources; *at; ++at) {
        const char *source = kkt_device_source(*at, NULL);
        assert_non_null(source);
        for (const char *line = strstr(source, "#include \""); line;
             line = strstr(line + 1, "#include \"")) {
            const char *name = line + strlen("#include \"");
            const size_t length = strcspn(name, "\"");
            bool listed = false;
            for (const char *const *other = variant()->sources; *other; ++other)
                listed = listed || (strlen(*other) == length && strncmp(*other, name, length) == 0);
            if (!listed)
                fail_msg("%s includes %.*s, which is not listed", *at, (int)length, name);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hbm_bytes_equal_the_golden_values),
        cmocka_unit_test(no_gate_reads_no_g),
        cmocka_unit_test(shared_memory_by_hand),
        cmocka_unit_test(shared_memory_of_couplings_in_registers),
        cmocka_unit_test(registers_say_what_they_need),
        cmocka_unit_test(tensor_maps_follow_the_span),
        cmocka_unit_test(barriers_follow_the_teams),
        cmocka_unit_test(chain_is_the_articles),
        cmocka_unit_test(reasons_name_the_numbers),
        cmocka_unit_test(plan_covers_every_chunk),
        cmocka_unit_test(persistent_blocks_share_the_work),
        cmocka_unit_test(defines_carry_the_same_bytes),
        cmocka_unit_test(canonical_text),
        cmocka_unit_test(sources_are_embedded_and_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
