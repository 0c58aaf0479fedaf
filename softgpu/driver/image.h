/* Images of device code, as programs hand them to the driver: PTX, cubins, and the containers of both. */
#ifndef SOFTGPU_IMAGE_H
#define SOFTGPU_IMAGE_H

#include <stddef.h>

#include "api.h"

enum image_kind { IMAGE_UNKNOWN, IMAGE_PTX, IMAGE_CUBIN, IMAGE_FATBIN, IMAGE_WRAPPER };

/* What begins at `image`, by its first bytes; `limit` as below. */
enum image_kind image_kind(const void *image, size_t limit);

/* The PTX text of an image that suits a device best, to be freed; it ends in a zero byte that `bytes` leaves out.
 * `limit`: bytes that the image has, 0: as many as it announces itself, or up to the zero byte behind a text. */
CUresult image_text(const void *image, size_t limit, CUdevice device, char **ptx, size_t *bytes);

/* The same of a file. */
CUresult image_file(const char *path, CUdevice device, char **ptx, size_t *bytes);

#endif
