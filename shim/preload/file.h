/* Files that the driver reads by their paths, read once more. */
#ifndef TESSERA_FILE_H
#define TESSERA_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct file {
  char *data;
  size_t bytes;
};

/* What a regular file has now; false, and nothing in `file`, for any other, which reading might change. */
bool file_read(const char *path, struct file *file);
void file_give(struct file *file);

#endif
