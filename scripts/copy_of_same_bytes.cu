// How long a copy of the same bytes takes: copy_of_same_bytes BYTES... prints one JSON line each.
//
// BYTES are those a kernel reads and writes together; half are read, half written, 16 bytes a
// thread with streaming hints, the fastest copy known on an H200 (docs/benchmarks.md). The method
// is that of the program's own timing: one graph launch, 512 MiB read before each sample so that
// L2 holds none of the data, median of the samples.
//
// nvcc -O3 -gencode=arch=compute_90a,code=sm_90a -o copy_of_same_bytes copy_of_same_bytes.cu
#include <algorithm>
#include <cstdio>
#include <cstdlib>
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

// Reads everything; the store never happens, and keeps the loads alive.
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

float median_us(size_t bytes, const float4 *from, float4 *to, const float4 *big,
                cudaStream_t stream) {
    const size_t count = bytes / 2 / sizeof(float4);
    cudaGraph_t graph;
    cudaGraphExec_t run;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    copy<<<unsigned((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(from, to, count);
    must(cudaStreamEndCapture(stream, &graph), "end of capture");
    must(cudaGraphInstantiate(&run, graph, 0), "graph");
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    std::vector<float> times;
    for (int i = 0; i < WARM_UP + SAMPLES; ++i) {
        flush<<<1056, THREADS, 0, stream>>>(big, to, FLUSH_BYTES / sizeof(float4));
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

} // namespace

int main(int argc, char **argv) {
    size_t largest = 0;
    std::vector<size_t> asked;
    for (int i = 1; i < argc; ++i) {
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
        std::fprintf(stderr, "usage: copy_of_same_bytes BYTES...\n");
        return 2;
    }
    float4 *from, *to, *big;
    must(cudaMalloc(&from, largest / 2 + 16), "memory");
    must(cudaMalloc(&to, largest / 2 + 16), "memory");
    must(cudaMalloc(&big, FLUSH_BYTES), "memory");
    must(cudaMemset(from, 0x3c, largest / 2 + 16), "fill");
    must(cudaMemset(big, 0x3c, FLUSH_BYTES), "fill");
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "stream");
    for (size_t bytes : asked)
        std::printf("{\"kind\": \"copy\", \"bytes\": %zu, \"us\": %.3f}\n", bytes,
                    median_us(bytes, from, to, big, stream));
    return 0;
}
