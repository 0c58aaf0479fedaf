/* Files that programs name. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1 << 30 }; /* bytes of a file that are read */

static CUresult content_of(int file, char **content, size_t *bytes) {
  struct stat found;
  if (fstat(file, &found) || !S_ISREG(found.st_mode) || found.st_size > MOST) return CUDA_ERROR_FILE_NOT_FOUND;
  size_t size = (size_t)found.st_size, have = 0;
  char *data = malloc(size + 1);
  if (!data) return CUDA_ERROR_OUT_OF_MEMORY;
  while (have < size) {
    ssize_t got = read(file, data + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break; /* it has become shorter */
    have += (size_t)got;
  }
  data[have] = 0;
  *content = data;
  *bytes = have;
  return CUDA_SUCCESS;
}

CUresult file_content(const char *path, char **content, size_t *bytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult result = content_of(file, content, bytes);
  close(file);
  return result;
}
