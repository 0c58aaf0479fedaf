/* Memory operations of streams: waiting for values in memory, and writing them. */
#ifndef SOFTGPU_MEMOP_H
#define SOFTGPU_MEMOP_H

#include "api.h"
#include "command.h"

/* For nodes of graphs: a batch as a command, and its parameters; their array lives as long as the command. Of the
 * parameters that make it the context is not used: the place has it. */
CUresult memop_command(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params, const struct stream_place *place,
                       struct command **made);
void memop_params(const struct command *command, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params);

#endif
