/* The device that is meant where none is named. */
#ifndef KKT_REPORTS_RECORDED_DEVICE_H
#define KKT_REPORTS_RECORDED_DEVICE_H

#include "model/arch.h"

/* The device of the recordings in `folder`, which replayed results come from; without a recording
 * of the architecture, or with `folder` NULL, the first row of the device table. A command that
 * opens a GPU takes that one's row instead. */
const kkt_device *kkt_recorded_device(const kkt_arch *arch, const char *folder);

#endif
