/* Files in memory that other processes of the machine may map. Their names, which nobody can change, say what they are. */
#include "memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
