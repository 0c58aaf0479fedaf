/* Files that programs name. */
#ifndef SOFTGPU_FILES_H
#define SOFTGPU_FILES_H

#include <stddef.h>

#include "api.h"

/* The content of a file, to be freed, and a zero byte behind it. CUDA_ERROR_FILE_NOT_FOUND, also when it cannot be
 * read. */
CUresult file_content(const char *path, char **content, size_t *bytes);

#endif
