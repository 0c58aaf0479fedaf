/* The driver API with every form of a function under its own symbol. What programs call are generated functions
 * (wrappers.py); those that the files here define have `soft_` before their symbols, which renamed.h, made by the
 * build, puts there. Without that file, in an editor, they compile as well. */
#ifndef SOFTGPU_API_H
#define SOFTGPU_API_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#if !defined SOFTGPU_WRAPPERS && __has_include("renamed.h")
#include "renamed.h"
#endif

#endif
