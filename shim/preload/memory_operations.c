#include "memory_operations.h"

enum { MOST_OPERATIONS = 4096 }; /* drivers take fewer */

bool memory_operations_known(const CUstreamBatchMemOpParams *list, unsigned count) {
  if (count > MOST_OPERATIONS || (count && !list)) return false;
  for (unsigned i = 0; i < count; i++)
    switch ((unsigned)list[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER: break;
      default: return false;
    }
  return true;
}

static struct wire_memory_operation operation(const CUstreamBatchMemOpParams *from) {
  struct wire_memory_operation to = {.type = from->operation};
  switch (from->operation) {
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: to.flags = from->flushRemoteWrites.flags; break;
    case CU_STREAM_MEM_OP_BARRIER: to.flags = from->memoryBarrier.flags; break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      to.flags = from->writeValue.flags;
      to.address = from->writeValue.address;
      to.value = from->writeValue.value;
      break;
    default:
      to.flags = from->writeValue.flags;
      to.address = from->writeValue.address;
      to.value = from->writeValue.value64;
  }
  return to;
}

void put_memory_operations(struct wire_memory_operations_body *body, const CUstreamBatchMemOpParams *list,
                           unsigned count, unsigned flags) {
  struct wire_memory_operation *to = (struct wire_memory_operation *)(body + 1);
  *body = (struct wire_memory_operations_body){count, flags};
  for (unsigned i = 0; i < count; i++) to[i] = operation(&list[i]);
}
