/* How long work would take on the card that a device is called after: docs/clock.md. Commands say so while they run; it
 * is taken then, if the clock is on. */
#ifndef SOFTGPU_COST_H
#define SOFTGPU_COST_H

#include "api.h"
#include "softgpu_engine.h"

/* A kernel that was compiled with SG_COUNTS and SG_LOGS. */
void cost_kernel(CUdevice device, uint64_t blocks, const struct sg_result *result);

/* Of bytes that lie in the memory of devices or of the host. */
enum { OF_HOST = -1 };
void cost_copy(int to, int from, size_t bytes);
void cost_fill(int where, size_t bytes);

#endif
