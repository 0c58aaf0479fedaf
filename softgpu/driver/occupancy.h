/* How many blocks an SM holds. */
#ifndef SOFTGPU_OCCUPANCY_H
#define SOFTGPU_OCCUPANCY_H

#include "cards.h"

/* Blocks of some threads and bytes of shared memory that are resident on an SM at once, by the published limits of
 * threads, blocks and shared memory (CUDA C++ Programming Guide, Technical Specifications per Compute Capability). */
int occupancy(const struct card *card, int shared, int threads);

#endif
