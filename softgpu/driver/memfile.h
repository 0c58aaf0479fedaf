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

/* Where another process finds a file of this one. */
struct memfile_place {
  int32_t process, file;
  uint64_t started; /* when the process began: numbers are used again */
};

struct memfile_place memfile_tell(int file);
/* Open it. CUDA_ERROR_MAP_FAILED: the process is no more; CUDA_ERROR_INVALID_HANDLE: it is no such file of this
 * machine. */
CUresult memfile_open(const struct memfile_place *place, const char *what, int *file, CUdevice *device, uint64_t *size);

/* Whether a process has not ended. */
bool process_lives(int process);

#endif
