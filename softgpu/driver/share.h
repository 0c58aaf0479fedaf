/* What processes that name the same machine share. */
#ifndef SOFTGPU_SHARE_H
#define SOFTGPU_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Join the machine that SOFTGPU_MACHINE names, which has these devices; a machine without a name is this process's
 * own. */
bool share_begin(const char *devices);

/* What tells this machine from others: its name, or something that only this process says. */
const char *share_name(void);

/* Note that this process takes memory of a device, unless all processes together had more than `limit` then. */
bool share_take(int device, uint64_t bytes, uint64_t limit);
void share_give(int device, uint64_t bytes);

/* What all living processes have taken. */
uint64_t share_taken(int device);

/* For the modelled clock: a device's multiprocessors and memory, its engines for copies to and from other memory. */
enum part { PART_DEVICE, PART_IN, PART_OUT, PARTS };

struct taken {
  int device;
  enum part part;
};

/* When the machine began, in nanoseconds of CLOCK_MONOTONIC. */
uint64_t share_start(void);

/* Take all these parts for a time as soon as they are free, but not before `ready`, in nanoseconds since then: when
 * that begins. Who comes first is served first. */
uint64_t share_occupy(const struct taken *parts, size_t count, uint64_t ready, uint64_t duration);

/* How long all operations took and how late they were, in nanoseconds of this machine, with some more. */
struct clock_sums {
  uint64_t took, late;
};
struct clock_sums share_count(uint64_t took, uint64_t late);

#endif
