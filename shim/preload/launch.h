/* Launches, in records and in nodes of graphs. */
#ifndef TESSERA_LAUNCH_H
#define TESSERA_LAUNCH_H

#include "kernels.h"
#include "real.h"
#include "wire.h"

struct launch {
  CUfunction function;
  unsigned grid[3], block[3], shared;
  unsigned flags; /* enum wire_launch_flag: WIRE_COOPERATIVE */
  void **parameters, **extra;
  const CUlaunchAttribute *attributes;
  unsigned attribute_count;
};

/* What stands where in the record: made before it, as the driver is asked about the kernel. */
struct launch_layout {
  const struct kernel *kernel;
  const void *packed; /* the parameters in one piece, NULL if each has its own place */
  size_t parameter_bytes;
  unsigned flags;
  size_t bytes; /* of the body and what belongs to it */
};

void launch_prepare(const struct launch *launch, struct launch_layout *layout);
/* The body, and what comes behind. */
void *put_launch(struct wire_launch_body *body, const struct launch *launch, const struct launch_layout *layout);

/* The record of a launch, up to the call of the driver. */
struct work;
void launch_begin(struct work *work, unsigned number, const struct launch *launch, CUstream stream, bool per_thread);

#endif
