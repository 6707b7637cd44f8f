#include "kernels/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kkt_library_calls_revision(const char *library) {
    static const struct {
        const char *library;
        int calls;
    } revisions[] = {{KKT_CUBLAS, 1}};
    for (size_t i = 0; i < sizeof revisions / sizeof revisions[0]; i++)
        if (strcmp(revisions[i].library, library) == 0)
            return revisions[i].calls;
    return 1;
}

bool kkt_call_applicable(const kkt_values *problem, const kkt_values *config, const kkt_arch *arch,
                         char *reason, size_t size) {
    (void)problem;
    (void)config;
    if (arch->major < 8)
        kkt_reason(reason, size, "%s has no bf16 for cuBLAS to multiply", arch->name);
    return arch->major >= 8;
}

/* The next step of a plan, its arguments all integers until a tensor is set. */
static kkt_launch *begin(kkt_plan *plan, const char *routine, int args) {
    if (plan->launch_count == KKT_LAUNCHES_MAX)
        abort(); /* a programming error */
    kkt_launch *launch = &plan->launches[plan->launch_count++];
    *launch = (kkt_launch){
        .library = KKT_CUBLAS, .entry = routine, .carveout_percent = -1, .arg_count = args};
    for (int i = 0; i < args; i++)
        launch->args[i].kind = KKT_ARG_I64;
    return launch;
}

static void set_tensor(kkt_launch *launch, int arg, int tensor) {
    launch->args[arg] = (kkt_arg){.kind = KKT_ARG_TENSOR, .tensor = tensor};
}

void kkt_call_gemm(kkt_plan *plan, const char *routine, const kkt_gemm_call *call) {
    kkt_launch *launch = begin(plan, routine, KKT_GEMM_CALL_ARGS);
    launch->args[KKT_GEMM_CALL_TRANSPOSE_A].integer = call->transpose_a;
    launch->args[KKT_GEMM_CALL_TRANSPOSE_B].integer = call->transpose_b;
    launch->args[KKT_GEMM_CALL_M].integer = call->m;
    launch->args[KKT_GEMM_CALL_N].integer = call->n;
    launch->args[KKT_GEMM_CALL_K].integer = call->k;
    launch->args[KKT_GEMM_CALL_LDA].integer = call->lda;
    launch->args[KKT_GEMM_CALL_LDB].integer = call->ldb;
    launch->args[KKT_GEMM_CALL_LDC].integer = call->ldc;
    launch->args[KKT_GEMM_CALL_DTYPE].integer = call->dtype;
    launch->args[KKT_GEMM_CALL_RESULT].integer = call->result;
    launch->args[KKT_GEMM_CALL_BATCH].integer = call->batch;
    launch->args[KKT_GEMM_CALL_CHOICE].integer = call->choice;
    set_tensor(launch, KKT_GEMM_CALL_A, call->a);
    set_tensor(launch, KKT_GEMM_CALL_B, call->b);
    set_tensor(launch, KKT_GEMM_CALL_C, call->c);
}

void kkt_call_gemv(kkt_plan *plan, const kkt_gemv_call *call) {
    const char *routine =
        call->dtype == KKT_BF16 ? "cublasTSTgemvStridedBatched" : "cublasHSHgemvStridedBatched";
    kkt_launch *launch = begin(plan, routine, KKT_GEMV_CALL_ARGS);
    launch->args[KKT_GEMV_CALL_TRANSPOSE].integer = call->transpose;
    launch->args[KKT_GEMV_CALL_M].integer = call->m;
    launch->args[KKT_GEMV_CALL_N].integer = call->n;
    launch->args[KKT_GEMV_CALL_LDA].integer = call->lda;
    set_tensor(launch, KKT_GEMV_CALL_A, call->a);
    set_tensor(launch, KKT_GEMV_CALL_X, call->x);
    set_tensor(launch, KKT_GEMV_CALL_Y, call->y);
}

void kkt_call_trsm(kkt_plan *plan, const kkt_trsm_call *call) {
    kkt_launch *launch = begin(plan, "cublasStrsmBatched", KKT_TRSM_CALL_ARGS);
    launch->args[KKT_TRSM_CALL_RIGHT].integer = call->right;
    launch->args[KKT_TRSM_CALL_LOWER].integer = call->lower;
    launch->args[KKT_TRSM_CALL_TRANSPOSE].integer = call->transpose;
    launch->args[KKT_TRSM_CALL_N].integer = call->n;
    launch->args[KKT_TRSM_CALL_LDA].integer = call->lda;
    launch->args[KKT_TRSM_CALL_LDB].integer = call->ldb;
    launch->args[KKT_TRSM_CALL_BATCH].integer = call->batch;
    set_tensor(launch, KKT_TRSM_CALL_A, call->a);
    set_tensor(launch, KKT_TRSM_CALL_B, call->b);
}
