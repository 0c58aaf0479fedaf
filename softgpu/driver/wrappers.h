/* What the generated functions that programs call are made of. */
#ifndef SOFTGPU_WRAPPERS_H
#define SOFTGPU_WRAPPERS_H

#define SOFTGPU_WRAPPERS
#include "api.h"
#include "graphics.h"

#define EXPORTED __attribute__((visibility("default")))

#endif
