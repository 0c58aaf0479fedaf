/* Memory operations of streams.
 *
 * A batch is a command. When it comes to a value that is not there yet, its operation is deferred and the value is
 * watched: no thread of the streams waits, and a host thread or another process may write it with a plain store. Writes
 * are sequentially consistent, so that what a memory barrier or a flush of remote writes would do is done anyway. */
#include "memop.h"

#include <stdint.h>
#include <stdlib.h>

#include "copy.h"
#include "driver.h"
#include "mapping.h"
#include "watch.h"

enum { MOST = 256 };

static const unsigned CONDITION = 3, WAIT_FLAGS = 3 | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH;

struct step {
  CUstreamBatchMemOpType operation;
  unsigned flags;
  uint64_t address, value;
  struct mapping *held;
};

struct batch {
  struct command command;
  unsigned count;
  CUstreamBatchMemOpParams *params;
  struct step steps[];
};

/* A batch that is being done. */
struct turn {
  struct watch watch;
  struct batch *batch;
  unsigned next;
  struct operation *operation;
  struct execution execution;
};

static bool is_wide(const struct step *step) {
  return step->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || step->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool is_there(const struct step *step) {
  bool wide = is_wide(step);
  void *at = (void *)(uintptr_t)step->address;
  uint64_t found = wide ? *(_Atomic uint64_t *)at : *(_Atomic uint32_t *)at;
  switch (step->flags & CONDITION) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return wide ? (int64_t)(found - step->value) >= 0 : (int32_t)((uint32_t)found - (uint32_t)step->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return found == step->value;
    case CU_STREAM_WAIT_VALUE_AND: return found & step->value;
    default: return wide ? ~(found | step->value) : (uint32_t)~(found | step->value);
  }
}

/* False: it has to wait. */
static bool do_step(const struct step *step) {
  void *at = (void *)(uintptr_t)step->address;
  switch (step->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return is_there(step);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: *(_Atomic uint32_t *)at = (uint32_t)step->value; break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: *(_Atomic uint64_t *)at = step->value; break;
    default: break;
  }
  return true;
}

static void show(const void *given, FILE *to) {
  static const char *const CONDITIONS[] = {[CU_STREAM_WAIT_VALUE_GEQ] = "geq", [CU_STREAM_WAIT_VALUE_EQ] = "eq",
                                           [CU_STREAM_WAIT_VALUE_AND] = "and", [CU_STREAM_WAIT_VALUE_NOR] = "nor"};
  const struct step *step = given;
  bool waits = step->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || step->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  if (!step->address) { /* neither waits nor writes */
    bool barrier = step->operation == CU_STREAM_MEM_OP_BARRIER;
    fprintf(to, ", \"operation\": \"%s\"", barrier ? "barrier" : "flush");
    return;
  }
  fprintf(to, ", \"operation\": \"%s\"", waits ? "wait" : "write");
  show_number(to, "bits", is_wide(step) ? 64 : 32);
  show_address(to, "address", step->address);
  show_number(to, "value", is_wide(step) ? step->value : (uint32_t)step->value);
  if (waits) fprintf(to, ", \"condition\": \"%s\"", CONDITIONS[step->flags & CONDITION]);
}

/* As far as it goes. */
static bool go_on(const struct batch *batch, unsigned *next, const struct execution *execution) {
  bool told = instrument_wants_work();
  for (; *next < batch->count && do_step(&batch->steps[*next]); ++*next)
    if (told) instrument_work("memory operation", execution, CUDA_SUCCESS, show, &batch->steps[*next]);
  return *next == batch->count;
}

static void finish(struct turn *turn) {
  operation_end(turn->operation);
  command_release(&turn->batch->command);
  free(turn);
}

/* A context whose work has failed waits for nothing any more. */
static bool look(struct watch *watch) {
  struct turn *turn = (struct turn *)watch;
  const struct command *command = &turn->batch->command;
  bool over = context_result(command->context, command->context_id) != CUDA_SUCCESS ||
              go_on(turn->batch, &turn->next, &turn->execution);
  if (over) finish(turn);
  return over;
}

static CUresult run(const struct command *command) {
  struct batch *batch = (struct batch *)command;
  struct execution execution = command_execution();
  unsigned next = 0;
  if (go_on(batch, &next, &execution)) return CUDA_SUCCESS;
  struct turn *turn = malloc(sizeof *turn);
  if (!turn) return CUDA_ERROR_OUT_OF_MEMORY;
  command_hold(&batch->command);
  *turn = (struct turn){.watch.look = look, .batch = batch, .next = next, .operation = operation_defer(),
                        .execution = execution};
  if (watch_add(&turn->watch)) return CUDA_SUCCESS;
  context_fail(command->context, command->context_id, CUDA_ERROR_OUT_OF_MEMORY);
  finish(turn);
  return CUDA_SUCCESS;
}

static void end(struct command *command) {
  struct batch *batch = (struct batch *)command;
  for (unsigned n = 0; n < batch->count; n++) mapping_release(batch->steps[n].held);
  free(batch->params);
  free(batch);
}

static const struct command_kind BATCH = {
    .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .defers = true, .run = run, .end = end};

void memop_params(const struct command *command, CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params) {
  const struct batch *batch = (const struct batch *)command;
  *params = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){command->context, batch->count, batch->params, 0};
}

static CUresult check_flags(CUstreamBatchMemOpType operation, unsigned flags) {
  switch (operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return flags & ~WAIT_FLAGS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      if (flags == CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_NOT_SUPPORTED; /* only in the first API */
      return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_BARRIER:
      return flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

/* Operations that wait and those that write have the same parameters; the others have flags only. */
static CUresult make_step(const CUstreamBatchMemOpParams *params, struct step *step) {
  step->operation = params->operation;
  if (params->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES || params->operation == CU_STREAM_MEM_OP_BARRIER)
    return check_flags(params->operation, params->memoryBarrier.flags);
  CHECK(check_flags(params->operation, params->waitValue.flags));
  size_t width = is_wide(step) ? 8 : 4;
  step->flags = params->waitValue.flags;
  step->address = params->waitValue.address;
  step->value = width == 8 ? params->waitValue.value64 : params->waitValue.value;
  if (step->address % width) return CUDA_ERROR_INVALID_VALUE;
  struct memory memory = memory_hold(step->address, width);
  step->held = memory.held;
  return memory.whole && !memory.managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult memop_command(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params, const struct stream_place *place,
                       struct command **made) {
  if (!params || !params->count || params->count >= MOST || !params->paramArray || params->flags)
    return CUDA_ERROR_INVALID_VALUE;
  struct batch *batch = calloc(1, sizeof *batch + params->count * sizeof *batch->steps);
  if (!batch) return CUDA_ERROR_OUT_OF_MEMORY;
  batch->command = command_begin(&BATCH, place);
  batch->params = malloc(params->count * sizeof *batch->params);
  CUresult result = batch->params ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  while (batch->count < params->count && result == CUDA_SUCCESS) {
    batch->params[batch->count] = params->paramArray[batch->count];
    result = make_step(&batch->params[batch->count], &batch->steps[batch->count]);
    batch->count++;
  }
  if (result == CUDA_SUCCESS)
    *made = &batch->command;
  else
    command_release(&batch->command);
  return result;
}

static CUresult submit_batch(CUstream stream, bool own, unsigned count, CUstreamBatchMemOpParams *params,
                             unsigned flags) {
  struct stream_place place;
  struct command *command;
  CUresult result;
  CHECK(stream_place(stream, own, &place));
  CHECK(memop_command(&(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){.count = count, .paramArray = params, .flags = flags}, &place,
                      &command));
  return submit_now(&place, command, &result) ? result : submit(&place, false, command);
}

static CUresult submit_one(CUstream stream, bool own, CUstreamBatchMemOpType operation, CUdeviceptr address,
                           uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams params = {
      .waitValue = {.operation = operation, .address = address, .value64 = value, .flags = flags}};
  return submit_batch(stream, own, 1, &params, 0);
}

#define OPERATION(symbol, operation, type)                                                                \
  EXPORTED CUresult symbol(CUstream stream, CUdeviceptr address, type value, unsigned int flags) {        \
    return submit_one(stream, false, operation, address, value, flags);                                   \
  }                                                                                                       \
  EXPORTED CUresult symbol##_ptsz(CUstream stream, CUdeviceptr address, type value, unsigned int flags) { \
    return submit_one(stream, true, operation, address, value, flags);                                    \
  }

OPERATION(cuStreamWaitValue32_v2, CU_STREAM_MEM_OP_WAIT_VALUE_32, cuuint32_t)
OPERATION(cuStreamWaitValue64_v2, CU_STREAM_MEM_OP_WAIT_VALUE_64, cuuint64_t)
OPERATION(cuStreamWriteValue32_v2, CU_STREAM_MEM_OP_WRITE_VALUE_32, cuuint32_t)
OPERATION(cuStreamWriteValue64_v2, CU_STREAM_MEM_OP_WRITE_VALUE_64, cuuint64_t)

EXPORTED CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params,
                                        unsigned int flags) {
  return submit_batch(stream, false, count, params, flags);
}

EXPORTED CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params,
                                             unsigned int flags) {
  return submit_batch(stream, true, count, params, flags);
}
