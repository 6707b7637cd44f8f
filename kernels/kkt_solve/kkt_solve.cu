// kkt_solve, materialized: T = (I + L)^-1 of every chunk and value head, written to global memory.
// See kkt_solve.h for the mathematics and the tensors' shapes.
//
// There are two ways through it, told apart by where the operands of the couplings live. Start with
// the table at the top of either file:
//
//     couple fp16, bf16x3    registers        register_path.cuh    the fast one
//     couple fp32, tf32      shared memory    shared_path.cuh      every form of the inverse
// Both files are always read; what is not the configuration's way is left out by the preprocessor.
// The one that includes its headers whatever the configuration comes first: `--sources` reads each
// once.
#include "kkt_solve/shared_path.cuh"

#include "kkt_solve/register_path.cuh"
