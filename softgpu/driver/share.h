/* What processes that name the same machine share. */
#ifndef SOFTGPU_SHARE_H
#define SOFTGPU_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* Join the machine that SOFTGPU_MACHINE names, which has these devices; a machine without a name is this process's own. */
bool share_begin(const char *devices);

/* What tells this machine from others: its name, or something that only this process says. */
const char *share_name(void);

/* Note that this process takes memory of a device, unless all processes together had more than `limit` then. */
bool share_take(int device, uint64_t bytes, uint64_t limit);
void share_give(int device, uint64_t bytes);

/* What all living processes have taken. */
uint64_t share_taken(int device);

#endif
