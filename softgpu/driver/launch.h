/* Launches of kernels. */
#ifndef SOFTGPU_LAUNCH_H
#define SOFTGPU_LAUNCH_H

#include <stdint.h>

#include "command.h"

/* A launch as a command, with one reference: that of a graph's node in a context, or of a call in a stream. A node may
 * get its blocks later: tinygrad makes nodes without any, and says how many there are before it launches the graph. */
CUresult launch_command(const CUDA_KERNEL_NODE_PARAMS_v3 *params, bool cooperative, const struct stream_place *place,
                        struct command **made);

/* What it was made of; the arguments are those of the command. */
void launch_params(const struct command *command, CUDA_KERNEL_NODE_PARAMS_v3 *params);

bool launch_is_cooperative(const struct command *command);

/* What kernels are compiled with, as in struct sg_options. */
uint32_t launch_flags(void);

#endif
