/* y[r] = sum of row r of x. A thread adds up ROW_SUM_ROWS rows, one after the other.
 * ROW_SUM_THREADS and ROW_SUM_ROWS come from the descriptor's parameter table. */
#ifdef __cplusplus
extern "C"
#endif
__global__ void __launch_bounds__(ROW_SUM_THREADS)
row_sum(const float *x, float *y, long long rows, long long columns) {
    const long long thread = (long long)blockIdx.x * ROW_SUM_THREADS + threadIdx.x;
    for (long long r = thread * ROW_SUM_ROWS; r < (thread + 1) * ROW_SUM_ROWS && r < rows; r++) {
        float sum = 0.0f;
        for (long long c = 0; c < columns; c++)
            sum += x[r * columns + c];
        y[r] = sum;
    }
}
