/* Files in memory that other processes of the machine may map. */
#ifndef SOFTGPU_MEMFILE_H
#define SOFTGPU_MEMFILE_H

#include "api.h"
#include <stdbool.h>
#include <stdint.h>

/* A sparse file with bytes of a device; `what` it is for is a word. -1, and a line on standard error: there is none. */
int memfile_make(const char *what, CUdevice device, uint64_t size);

/* Whether it is such a file of this machine: of which device, and how large it is. */
bool memfile_is(int file, const char *what, CUdevice *device, uint64_t *size);

#endif
