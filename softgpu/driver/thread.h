/* Threads of the driver. */
#ifndef SOFTGPU_THREAD_H
#define SOFTGPU_THREAD_H

#include <stdbool.h>

/* One that nobody joins and that gets none of the program's signals. */
bool thread_begin(void *(*main)(void *given));

#endif
