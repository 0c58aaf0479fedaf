/* Memory of other processes of the machine: a handle says where the bytes lie in a file that a process has open, and
 * who opens it maps that part. The memory is there as long as anybody has it mapped, whatever becomes of who exported
 * it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocations.h"
#include "arena.h"
#include "driver.h"
#include "mapping.h"
#include "memfile.h"
#include "memory.h"
#include "strict.h"

struct exported {
  uint32_t magic;
  int32_t device;
  struct memfile_place place;
  uint64_t offset, size, id;
  CUuuid uuid;
};

_Static_assert(sizeof(struct exported) == sizeof(CUipcMemHandle), "a handle has 64 bytes");

static const uint32_t MAGIC = 0x43504953; /* "SIPC" */

/* What a context has opened. */
struct opened {
  struct opened *next;
  struct exported exported;
  CUcontext context;
  uint64_t address;
  unsigned long long id; /* of the allocation, which may have ended with its context */
  unsigned times;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all;

EXPORTED CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
  struct here here;
  CHECK(current(&here));
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  struct exported exported = {.magic = MAGIC};
  allocations_read();
  const struct allocation *found = allocation_with(pointer, 1);
  bool good = found && found->kind == ON_DEVICE; /* all of it, wherever in it the pointer is */
  if (good) {
    exported.place = memfile_tell(arena_file(found->arena));
    exported.device = found->device;
    exported.offset = arena_offset(found->arena, found->start);
    exported.size = found->size;
    exported.id = found->id;
    exported.uuid = device_at(found->device)->uuid;
  }
  allocations_release();
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  memcpy(handle, &exported, sizeof exported);
  return CUDA_SUCCESS;
}

/* The file of a handle, of that device and large enough. */
static CUresult open_file(const struct exported *exported, int *file) {
  CUdevice device;
  uint64_t size;
  CHECK(memfile_open(&exported->place, "device", file, &device, &size));
  if (device == exported->device && exported->size && exported->size <= size &&
      exported->offset <= size - exported->size &&
      !memcmp(&device_at(device)->uuid, &exported->uuid, sizeof exported->uuid))
    return CUDA_SUCCESS;
  close(*file);
  return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult map(const struct exported *exported, const struct here *here, struct allocation *made) {
  int file;
  CHECK(open_file(exported, &file));
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skipped = exported->offset % page, length = skipped + exported->size;
  void *memory =
      mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, (off_t)(exported->offset - skipped));
  close(file);
  if (memory == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  *made = (struct allocation){.start = (uint64_t)(uintptr_t)memory + skipped, .size = exported->size, .kind = IMPORTED,
                              .device = exported->device, .context = here->context,
                              .mapping = mapping_make(memory, length, NULL)};
  return made->mapping ? memory_add(made) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether what was opened is still there. */
static bool lives(const struct opened *opened) {
  allocations_read();
  const struct allocation *found = allocation_with(opened->address, 1);
  bool same = found && found->id == opened->id;
  allocations_release();
  return same;
}

/* Take away those that have ended with their contexts. The lock is held. */
static void clean(void) {
  for (struct opened **at = &all; *at;) {
    struct opened *opened = *at;
    if (lives(opened)) {
      at = &opened->next;
    } else {
      *at = opened->next;
      free(opened);
    }
  }
}

/* The lock is held. */
static CUresult open_memory(const struct exported *exported, const struct here *here, uint64_t *address) {
  clean();
  for (struct opened *opened = all; opened; opened = opened->next)
    if (opened->context == here->context && !memcmp(&opened->exported, exported, sizeof *exported)) {
      opened->times++;
      *address = opened->address;
      return CUDA_SUCCESS;
    }
  struct opened *opened = malloc(sizeof *opened);
  if (!opened) return CUDA_ERROR_OUT_OF_MEMORY;
  struct allocation made;
  CUresult result = map(exported, here, &made);
  if (result != CUDA_SUCCESS) {
    free(opened);
    return result;
  }
  allocations_read();
  const struct allocation *found = allocation_with(made.start, 1);
  *opened = (struct opened){.next = all, .exported = *exported, .context = here->context, .address = made.start,
                            .id = found ? found->id : 0, .times = 1};
  allocations_release();
  all = opened;
  *address = made.start;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  struct here here;
  struct exported exported;
  CHECK(current(&here));
  if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  memcpy(&exported, &handle, sizeof exported);
  if (exported.magic != MAGIC || !device_at(exported.device)) return CUDA_ERROR_INVALID_HANDLE;
  if (exported.place.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT; /* it is there already */
  if (exported.device != here.device && !devices_are_peers(here.device, exported.device))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  pthread_mutex_lock(&lock);
  CUresult result = open_memory(&exported, &here, &address);
  pthread_mutex_unlock(&lock);
  if (result == CUDA_SUCCESS) *pointer = address;
  return result;
}

EXPORTED CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {
  return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

EXPORTED CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  struct allocation removed;
  struct here here;
  CHECK(current(&here));
  strict_wait(here.context); /* what is queued may use it */
  pthread_mutex_lock(&lock);
  clean();
  struct opened *opened = all;
  while (opened && opened->address != pointer) opened = opened->next;
  bool last = opened && !--opened->times;
  if (last) {
    allocations_write();
    last = allocation_remove(pointer, &removed);
    allocations_release();
    clean();
  }
  pthread_mutex_unlock(&lock);
  if (!opened) return CUDA_ERROR_INVALID_VALUE;
  if (!last) return CUDA_SUCCESS;
  strict_wait(removed.context);
  memory_give_back(&removed);
  return CUDA_SUCCESS;
}
