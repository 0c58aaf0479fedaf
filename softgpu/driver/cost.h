/* How long work would take on the card that a device is called after: docs/clock.md. For commands, while they run and the clock
 * is on; without it nothing is done. */
#ifndef SOFTGPU_COST_H
#define SOFTGPU_COST_H

#include "api.h"
#include "softgpu_engine.h"

/* A kernel that was compiled with SG_COUNTS and SG_LOGS. */
void cost_kernel(CUdevice device, uint64_t blocks, const struct sg_result *result);

/* Of so many bytes, which begin at these addresses. */
void cost_copy(uint64_t target, uint64_t source, size_t bytes);
void cost_fill(uint64_t target, size_t bytes);

#endif
