#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

enum { LARGEST = 1 << 30 };

static bool is_plain(const struct stat *found) {
  return S_ISREG(found->st_mode) && found->st_size > 0 && found->st_size <= LARGEST;
}

static bool read_all(int descriptor, struct file *file) {
  size_t done = 0;
  while (done < file->bytes) {
    ssize_t got = pread(descriptor, file->data + done, file->bytes - done, (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

/* Looked at before it is opened: for others even that may have effects. */
bool file_read(const char *path, struct file *file) {
  struct stat found;
  int before = errno;
  *file = (struct file){NULL, 0};
  int descriptor = path && stat(path, &found) == 0 && is_plain(&found)
                       ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
  if (descriptor >= 0 && fstat(descriptor, &found) == 0 && is_plain(&found)) {
    file->bytes = (size_t)found.st_size;
    file->data = store_take(file->bytes);
    if (file->data && !read_all(descriptor, file)) file_give(file);
  }
  if (descriptor >= 0) close(descriptor);
  errno = before;
  if (!file->data) file->bytes = 0;
  return file->data;
}

void file_give(struct file *file) {
  store_give(file->data, file->bytes);
  *file = (struct file){NULL, 0};
}
