/* What `reference` and `run` took from a folder of tensors and put into one. */
#ifndef KKT_CLI_TENSOR_PRINT_H
#define KKT_CLI_TENSOR_PRINT_H

#include "kernels/kernel.h"

/* One line on standard error for each .npy file of the folder that is none of the kernel's: most
 * likely an optional input, misspelled. */
void kkt_tensors_note_unknown(const char *folder, const kkt_kernel *kernel,
                              const kkt_host_tensors *tensors);
/* Lines "problem", "read", "without" (optional inputs that are not there) and "wrote". `problem`
 * and `out_folder` may be NULL. */
void kkt_tensors_print(const char *problem, const char *in_folder, const char *out_folder,
                       const kkt_host_tensors *inputs, const kkt_host_tensors *written);

#endif
