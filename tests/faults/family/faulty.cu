/* y = 2 x, in tiles of FAULTY_TILE elements, a block each; and what can go wrong with a kernel. */
#define NONE 0
#define ILLEGAL_ADDRESS 1
#define ENDLESS_LOOP 2
#define MISSING_BARRIER 3
#define WRONG_TILE 4
#define OVERRUN 5

/* Delays a warp by up to a microsecond that depends on the time of day, not on the data. */
static __device__ void jitter() {
    unsigned long long now, then;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(then));
    const unsigned long long wait = (then >> 5 ^ threadIdx.x / 32 * 37) % 1024;
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - then < wait);
}

extern "C" __global__ void __launch_bounds__(FAULTY_TILE)
    faulty(const float *x, float *y, long long n) {
    __shared__ volatile unsigned written[FAULTY_TILE];
    const long long i = (long long)blockIdx.x * FAULTY_TILE + threadIdx.x;
    const bool last = blockIdx.x == gridDim.x - 1;
    float value = i < n ? 2.0f * x[i] : 0.0f;
    if (FAULTY_FAULT == ILLEGAL_ADDRESS && i == 0)
        *(volatile float *)16 = value;
    if (FAULTY_FAULT == ENDLESS_LOOP && i == 0)
        while (written[0] != 0xffffffffu || value == value)
            written[0] = 1;
    if (FAULTY_FAULT == MISSING_BARRIER) {
        /* Another warp's mark is read without waiting for it: what comes out depends on which was
         * faster. The difference is one bit of the result, far below any tolerance. */
        written[threadIdx.x] = 0;
        __syncthreads();
        jitter();
        written[threadIdx.x] = 1;
        if (written[(threadIdx.x + 32) % FAULTY_TILE])
            value = __uint_as_float(__float_as_uint(value) ^ 1u);
    }
    if (FAULTY_FAULT == WRONG_TILE && last)
        value += 1.0f;
    if (i < n)
        y[i] = value;
    if (FAULTY_FAULT == OVERRUN && last && threadIdx.x == 0)
        y[n] = 0.0f;
}
