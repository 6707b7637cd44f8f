// How long a copy of the same bytes takes: copy_of_same_bytes BYTES... prints one JSON line each.
// With the word `read` before them, how long it takes to read them.
//
// BYTES are those a kernel reads and writes together; half are read, half written, 16 bytes a
// thread with streaming hints, the fastest copy known on an H200 (docs/benchmarks.md). Reading
// alone is tried in several forms, and the line is the fastest one's. The method is that of the
// program's own timing: one graph launch, 512 MiB read before each sample so that L2 holds none of
// the data, median of the samples.
//
// nvcc -O3 -gencode=arch=compute_90a,code=sm_90a -o copy_of_same_bytes copy_of_same_bytes.cu
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 512, SAMPLES = 60, WARM_UP = 10;
constexpr size_t FLUSH_BYTES = size_t(512) << 20;

void must(cudaError_t status, const char *what) {
    if (status == cudaSuccess)
        return;
    std::fprintf(stderr, "copy_of_same_bytes: %s: %s\n", what, cudaGetErrorString(status));
    std::exit(3);
}

__global__ void __launch_bounds__(THREADS) copy(const float4 *from, float4 *to, size_t count) {
    const size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count)
        __stcs(to + i, __ldcs(from + i));
}

// Reads everything, `LOADS` times 16 bytes a thread and turn; the store never happens, and keeps
// the loads alive. As many blocks as there are tiles: one turn.
template <int BLOCK, int LOADS>
__global__ void __launch_bounds__(BLOCK) read(const uint4 *from, uint4 *never, size_t count) {
    unsigned all = 0;
    for (size_t tile = blockIdx.x; tile * BLOCK * LOADS < count; tile += gridDim.x) {
        uint4 v[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const size_t at = (tile * LOADS + i) * BLOCK + threadIdx.x;
            v[i] = at < count ? __ldcs(from + at) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            all ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
    }
    if (all == 0x12345677u) // what memory is filled with never gives this
        *never = make_uint4(all, 0, 0, 0);
}

// Likewise, in the form that takes least care.
__global__ void __launch_bounds__(THREADS) flush(const float4 *from, float4 *never, size_t count) {
    float sum = 0;
    for (size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x; i < count;
         i += size_t(gridDim.x) * THREADS) {
        const float4 v = from[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1.2345e38f)
        *never = make_float4(sum, 0, 0, 0);
}

template <class LAUNCH>
float median_us(const float4 *big, float4 *never, cudaStream_t stream, const LAUNCH &launch) {
    cudaGraph_t graph;
    cudaGraphExec_t run;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    launch();
    must(cudaStreamEndCapture(stream, &graph), "end of capture");
    must(cudaGraphInstantiate(&run, graph, 0), "graph");
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    std::vector<float> times;
    for (int i = 0; i < WARM_UP + SAMPLES; ++i) {
        flush<<<1056, THREADS, 0, stream>>>(big, never, FLUSH_BYTES / sizeof(float4));
        must(cudaEventRecord(begin, stream), "record");
        must(cudaGraphLaunch(run, stream), "launch");
        must(cudaEventRecord(end, stream), "record");
        must(cudaEventSynchronize(end), "synchronize");
        float ms = 0;
        must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
        if (i >= WARM_UP)
            times.push_back(ms * 1000);
    }
    cudaGraphExecDestroy(run);
    cudaGraphDestroy(graph);
    std::nth_element(times.begin(), times.begin() + SAMPLES / 2, times.end());
    return times[SAMPLES / 2];
}

void tell_copy(size_t bytes, const float4 *from, float4 *to, const float4 *big,
               cudaStream_t stream) {
    const size_t count = bytes / 2 / sizeof(float4);
    const unsigned blocks = unsigned((count + THREADS - 1) / THREADS);
    const float us =
        median_us(big, to, stream, [&] { copy<<<blocks, THREADS, 0, stream>>>(from, to, count); });
    std::printf("{\"kind\": \"copy\", \"bytes\": %zu, \"us\": %.3f}\n", bytes, us);
}

struct Fastest {
    float us;
    int block, loads, turns;
};

// `turns`: whether as many blocks as fit at once take turns, or each block has one tile.
template <int BLOCK, int LOADS>
void try_read(size_t bytes, bool turns, const float4 *from, float4 *never, const float4 *big,
              cudaStream_t stream, Fastest *fastest) {
    const size_t count = bytes / sizeof(uint4),
                 tiles = (count + BLOCK * LOADS - 1) / (BLOCK * LOADS);
    int device = 0, processors = 0, resident = 0;
    must(cudaGetDevice(&device), "device");
    must(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "device");
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, read<BLOCK, LOADS>, BLOCK, 0),
         "occupancy");
    const size_t blocks = turns ? std::min(tiles, size_t(processors) * resident) : tiles;
    const float us = median_us(big, never, stream, [&] {
        read<BLOCK, LOADS><<<unsigned(blocks), BLOCK, 0, stream>>>(
            reinterpret_cast<const uint4 *>(from), reinterpret_cast<uint4 *>(never), count);
    });
    if (us < fastest->us)
        *fastest = {us, BLOCK, LOADS, turns};
}

void tell_read(size_t bytes, const float4 *from, float4 *never, const float4 *big,
               cudaStream_t stream) {
    Fastest fastest = {1e30f, 0, 0, 0};
    for (int turns = 0; turns < 2; ++turns) {
        try_read<128, 4>(bytes, turns, from, never, big, stream, &fastest);
        try_read<256, 4>(bytes, turns, from, never, big, stream, &fastest);
        try_read<256, 8>(bytes, turns, from, never, big, stream, &fastest);
        try_read<512, 2>(bytes, turns, from, never, big, stream, &fastest);
        try_read<512, 4>(bytes, turns, from, never, big, stream, &fastest);
        try_read<1024, 1>(bytes, turns, from, never, big, stream, &fastest);
        try_read<1024, 2>(bytes, turns, from, never, big, stream, &fastest);
    }
    std::printf("{\"kind\": \"read\", \"bytes\": %zu, \"us\": %.3f, \"threads\": %d, "
                "\"loads\": %d, \"persistent\": %s}\n",
                bytes, fastest.us, fastest.block, fastest.loads, fastest.turns ? "true" : "false");
}

} // namespace

int main(int argc, char **argv) {
    size_t largest = 0;
    std::vector<size_t> asked;
    const bool reads = argc > 1 && std::strcmp(argv[1], "read") == 0;
    for (int i = reads ? 2 : 1; i < argc; ++i) {
        char *rest = nullptr;
        const unsigned long long bytes = std::strtoull(argv[i], &rest, 10);
        if (*rest || bytes < 32 || bytes > (1ull << 36)) {
            std::fprintf(stderr, "copy_of_same_bytes: '%s' is no number of bytes from 32 to 2^36\n",
                         argv[i]);
            return 2;
        }
        asked.push_back(bytes);
        largest = std::max(largest, size_t(bytes));
    }
    if (asked.empty()) {
        std::fprintf(stderr, "usage: copy_of_same_bytes [read] BYTES...\n");
        return 2;
    }
    float4 *from, *to, *big;
    const size_t of_from = (reads ? largest : largest / 2) + 16, of_to = largest / 2 + 16;
    must(cudaMalloc(&from, of_from), "memory");
    must(cudaMalloc(&to, of_to), "memory");
    must(cudaMalloc(&big, FLUSH_BYTES), "memory");
    must(cudaMemset(from, 0x3c, of_from), "fill");
    must(cudaMemset(big, 0x3c, FLUSH_BYTES), "fill");
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "stream");
    for (size_t bytes : asked) {
        if (reads)
            tell_read(bytes, from, to, big, stream);
        else
            tell_copy(bytes, from, to, big, stream);
    }
    return 0;
}
