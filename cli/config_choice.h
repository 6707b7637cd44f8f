/* The configuration of a command whose --config names no parameter. */
#ifndef KKT_CLI_CONFIG_CHOICE_H
#define KKT_CLI_CONFIG_CHOICE_H

#include "kernels/kernel.h"

/* What was chosen, and by whom. */
typedef struct kkt_config_choice {
    const kkt_variant *variant;
    kkt_values config;
    char note[400]; /* one sentence where it is not the defaults of `variant`; else "" */
} kkt_config_choice;

/* Takes the defaults of `variant` where they apply to the problem; else the configuration that the
 * model likes best, of `variant` where `style_given`, else of the first variant with device code
 * that has one. KKT_ERR_INPUT: there is none; the message says why the defaults are none. */
kkt_status kkt_config_choose(const kkt_kernel *kernel, const kkt_variant *variant, bool style_given,
                             const kkt_arch *arch, const kkt_device *device,
                             const kkt_values *problem, kkt_config_choice *out, kkt_error *err);

#endif
