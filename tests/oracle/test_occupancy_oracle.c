/* Occupancy against cuda_occupancy.h, the calculator that ships with the CUDA headers: every
 * architecture of the table, a few hundred thousand random and edge cases, each limit on its own.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_occupancy.h>

#include "model/occupancy.h"

#define RANDOM_CASES 100000 /* an architecture */

static cudaOccDeviceProp properties(const kkt_arch *arch) {
    cudaOccDeviceProp p;
    memset(&p, 0, sizeof p);
    p.computeMajor = arch->major;
    p.computeMinor = arch->minor;
    p.maxThreadsPerBlock = arch->max_threads_per_block;
    p.maxThreadsPerMultiprocessor = arch->max_warps_per_sm * 32;
    p.regsPerBlock = arch->registers_per_sm;
    p.regsPerMultiprocessor = arch->registers_per_sm;
    p.warpSize = 32;
    p.sharedMemPerBlock = (size_t)arch->smem_static_bytes;
    p.sharedMemPerMultiprocessor = (size_t)arch->smem_per_sm_bytes;
    p.numSms = 1;
    p.sharedMemPerBlockOptin = (size_t)arch->smem_optin_bytes;
    p.reservedSharedMemPerBlock = (size_t)arch->smem_reserved_bytes;
    return p;
}

static cudaOccResult ask_oracle(const kkt_arch *arch, const kkt_occupancy_request *request) {
    cudaOccDeviceProp device = properties(arch);
    cudaOccFuncAttributes function;
    cudaOccDeviceState state;
    cudaOccResult result;
    memset(&function, 0, sizeof function);
    memset(&state, 0, sizeof state);
    memset(&result, 0, sizeof result);
    function.maxThreadsPerBlock = INT_MAX;
    function.numRegs = request->registers;
    function.sharedSizeBytes = (size_t)request->static_smem;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = (size_t)request->dynamic_smem;
    function.numBlockBarriers = request->barriers > 0 ? request->barriers : 1;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT; /* 0 would mean the largest L1 */
    assert_int_equal(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state,
                                                             request->threads,
                                                             (size_t)request->dynamic_smem),
                     CUDA_OCC_SUCCESS);
    return result;
}

/* The oracle says INT_MAX where there is no limit; the model shows the most blocks of an SM. */
static int bounded(int limit, const kkt_arch *arch) {
    return limit == INT_MAX ? arch->max_blocks_per_sm : limit;
}

static void compare(const kkt_arch *arch, const kkt_occupancy_request *request) {
    kkt_occupancy ours;
    cudaOccResult theirs = ask_oracle(arch, request);
    kkt_occupancy_compute(arch, request, &ours);
    const struct {
        const char *what;
        int ours, theirs;
    } sides[] = {
        {"registers", ours.limits[KKT_LIMIT_REGISTERS], theirs.blockLimitRegs},
        {"shared memory", ours.limits[KKT_LIMIT_SHARED_MEMORY],
         bounded(theirs.blockLimitSharedMem, arch)},
        {"threads", ours.limits[KKT_LIMIT_THREADS], theirs.blockLimitWarps},
        {"blocks", ours.limits[KKT_LIMIT_BLOCKS], theirs.blockLimitBlocks},
        {"barriers", ours.limits[KKT_LIMIT_BARRIERS], bounded(theirs.blockLimitBarriers, arch)},
        {"all limits", ours.blocks_per_sm, theirs.activeBlocksPerMultiprocessor},
    };
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        if (sides[i].ours != sides[i].theirs)
            fail_msg("%s: %d threads, %d registers, %lld + %lld bytes, %d barriers: %s give %d "
                     "blocks here, %d by cuda_occupancy.h",
                     arch->name, request->threads, request->registers,
                     (long long)request->dynamic_smem, (long long)request->static_smem,
                     request->barriers, sides[i].what, sides[i].ours, sides[i].theirs);
    assert_int_equal(ours.warps_per_sm, ours.blocks_per_sm * ((request->threads + 31) / 32));
    assert_int_equal(ours.limits[ours.limiter], ours.blocks_per_sm);
}

static uint32_t next_random(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static void test_random_cases(void **state) {
    (void)state;
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    uint64_t seed = 20240229;
    for (size_t a = 0; a < count; ++a)
        for (int i = 0; i < RANDOM_CASES; ++i) {
            uint32_t most = (uint32_t)archs[a].smem_optin_bytes + 2048;
            kkt_occupancy_request request = {
                .threads = 1 + (int)(next_random(&seed) % 1024),
                .registers = 1 + (int)(next_random(&seed) % 255),
                .dynamic_smem = next_random(&seed) % (i % 2 ? most : 40000),
                .static_smem = i % 3 ? 0 : next_random(&seed) % 49153,
                .barriers = i % 4 ? 1 : (int)(next_random(&seed) % 17),
            };
            compare(&archs[a], &request);
        }
}

/* Around every boundary: whole warps, register units, allocation units and the opt-in limit. */
static void test_edges(void **state) {
    (void)state;
    static const int threads[] = {1,   31,  32,  33,  64,  96,   128, 129,
                                  160, 256, 384, 512, 768, 1023, 1024};
    static const int registers[] = {1,  8,  9,  24, 32,  33,  40,  41,  48,  63,  64,
                                    65, 80, 96, 97, 112, 128, 129, 168, 232, 240, 255};
    size_t count;
    const kkt_arch *archs = kkt_archs(&count);
    for (size_t a = 0; a < count; ++a) {
        const int64_t optin = archs[a].smem_optin_bytes;
        const int64_t bytes[] = {1,     127,       128,   129,       1024,         16384,
                                 31744, 49152,     49153, optin - 1, optin,        optin + 1,
                                 64512, optin / 2, 91136, optin / 3, optin - 1024, 140288};
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; ++t)
            for (size_t r = 0; r < sizeof registers / sizeof registers[0]; ++r)
                for (size_t b = 0; b < sizeof bytes / sizeof bytes[0]; ++b) {
                    kkt_occupancy_request request = {.threads = threads[t],
                                                     .registers = registers[r],
                                                     .dynamic_smem = bytes[b],
                                                     .barriers = 1 + (int)(b % 16)};
                    compare(&archs[a], &request);
                }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_cases),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
