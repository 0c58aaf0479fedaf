/* Files in memory that other processes of the machine may map. Their names, which nobody can change, say what they are.
 * */
#include "memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver.h"
#include "share.h"

enum { NAME = 160 };

static void name_of(char name[NAME], const char *what, CUdevice device) {
  snprintf(name, NAME, "softgpu-%s-%d-%s", what, device, share_name());
}

int memfile_make(const char *what, CUdevice device, uint64_t size) {
  char name[NAME];
  name_of(name, what, device);
  int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file >= 0 && !ftruncate(file, (off_t)size) &&
      !fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)) /* who maps it can rely on that */
    return file;
  complain("no memory of %llu bytes for a device: %s", (unsigned long long)size, strerror(errno));
  if (file >= 0) close(file);
  return -1;
}

bool memfile_is(int file, const char *what, CUdevice *device, uint64_t *size) {
  char path[40], target[NAME + 40], name[NAME], wanted[NAME + 40];
  struct stat found;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0 || fstat(file, &found)) return false;
  target[length] = 0;
  for (CUdevice n = 0; n < device_count(); n++) {
    name_of(name, what, n);
    snprintf(wanted, sizeof wanted, "/memfd:%s (deleted)", name);
    if (strcmp(target, wanted)) continue;
    *device = n;
    *size = (uint64_t)found.st_size;
    return true;
  }
  return false;
}

/* What the system says of a process, from its state on; the name before that, in brackets, may hold anything. */
static bool read_state(int process, char text[1024], const char **state) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, 1023);
  close(file);
  text[length > 0 ? length : 0] = 0;
  const char *bracket = strrchr(text, ')');
  *state = bracket && bracket[1] ? bracket + 2 : NULL;
  return *state;
}

bool process_lives(int process) {
  char text[1024];
  const char *state;
  return read_state(process, text, &state) && *state != 'Z' && *state != 'X';
}

/* In ticks since the machine was started, which is the 22nd word, and the state the third; 0: there is no such process.
 * */
static uint64_t started(int process) {
  char text[1024];
  const char *at;
  if (!read_state(process, text, &at)) return 0;
  for (int word = 3; at && word < 22; word++) at = strchr(at + 1, ' ');
  return at ? strtoull(at + 1, NULL, 10) : 0;
}

struct memfile_place memfile_tell(int file) {
  int process = (int)getpid();
  return (struct memfile_place){.process = process, .file = file, .started = started(process)};
}

CUresult memfile_open(const struct memfile_place *place, const char *what, int *file, CUdevice *device,
                      uint64_t *size) {
  char path[60];
  if (started(place->process) != place->started) return CUDA_ERROR_MAP_FAILED;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", place->process, place->file);
  *file = open(path, O_RDWR | O_CLOEXEC);
  if (*file < 0) return process_lives(place->process) ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_MAP_FAILED;
  if (memfile_is(*file, what, device, size)) return CUDA_SUCCESS;
  close(*file);
  return CUDA_ERROR_INVALID_HANDLE;
}
