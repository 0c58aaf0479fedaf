/* Parameters of nodes, and the commands that they describe. */
#ifndef SOFTGPU_GRAPH_PARAMS_H
#define SOFTGPU_GRAPH_PARAMS_H

#include "api.h"
#include "command.h"
#include "graph.h"

/* What a node does: for all types but those of nodes without a command (empty ones, graphs) and those that do not exist
 * here, which are CUDA_ERROR_NOT_SUPPORTED. Not with a lock of graphs. */
CUresult params_command(const CUgraphNodeParams *params, struct command **made);

/* The same for a kernel, whose blocks may have to be there all at once. */
CUresult params_launch(const CUDA_KERNEL_NODE_PARAMS_v3 *params, bool cooperative, struct command **made);

/* The parameters of a command; what they point to lives as long as it does. */
void command_params(const struct command *command, CUgraphNodeParams *params);

/* Whether everything that is not used is zero. */
bool params_clean(const CUgraphNodeParams *params);

/* Whether a node of an executable graph that does one command may do another one. */
CUgraphExecUpdateResult params_change(const struct command *before, const struct command *after);

#endif
