/* Options of the compiler and linker. Those that tune machine code are checked and have no effect here, where kernels
 * are compiled for this machine; those that change what a program means and are not done are refused. */
#include "jit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

/* Options are values, not pointers to them: a number stands in the lower bits of the pointer. */
static unsigned number_of(void *value) { return (unsigned)(uintptr_t)value; }

static void tell(void **place, unsigned number) {
  if (place) *place = (void *)(uintptr_t)number;
}

static void empty(struct jit_log *log) {
  log->used = 0;
  if (log->text && log->size) log->text[0] = 0;
}

static bool known_target(unsigned target) {
  unsigned kind = target & ~0xffffu, number = target & 0xffff;
  return number >= 30 && number < 200 &&
         (!kind || kind == CU_COMPUTE_ACCELERATED_TARGET_BASE || kind == CU_COMPUTE_FAMILY_TARGET_BASE);
}

static CUresult read_one(CUjit_option option, void **place, struct jit *jit) {
  unsigned number = number_of(*place);
  switch (option) {
    case CU_JIT_WALL_TIME: jit->wall_time = place; return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER: jit->info.text = *place; return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER: jit->error.text = *place; return CUDA_SUCCESS;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: jit->info.size = number; jit->info.told = place; return CUDA_SUCCESS;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: jit->error.size = number; jit->error.told = place; return CUDA_SUCCESS;
    case CU_JIT_TARGET: jit->target = (int)number; return known_target(number) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_THREADS_PER_BLOCK: jit->threads = true; return CUDA_SUCCESS; /* what is asked for is what is given */
    case CU_JIT_OPTIMIZATION_LEVEL: return number <= 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_FALLBACK_STRATEGY: return number <= CU_PREFER_BINARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_CACHE_MODE: return number <= CU_JIT_CACHE_OPTION_CA ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_NEW_SM3X_OPT:
    case CU_JIT_FAST_COMPILE:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_SPLIT_COMPILE: return CUDA_SUCCESS;
    case CU_JIT_MAX_THREADS_PER_BLOCK: jit->max_threads = number; return CUDA_SUCCESS;
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES: jit->override = number; return CUDA_SUCCESS;
    /* Of links of intermediate code, which are not done. */
    case CU_JIT_LTO: return number ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
    case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_KERNEL_COUNT:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_COUNT: return CUDA_SUCCESS;
    /* Variables of a module in memory of the program. */
    case CU_JIT_GLOBAL_SYMBOL_COUNT: return number ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult jit_read(unsigned count, const CUjit_option *options, void **values, struct jit *jit) {
  *jit = (struct jit){0};
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) CHECK(read_one(options[i], &values[i], jit));
  if (jit->target && jit->threads) return CUDA_ERROR_INVALID_VALUE;
  empty(&jit->info);
  empty(&jit->error);
  return CUDA_SUCCESS;
}

static void add(struct jit_log *log, const char *text) {
  size_t length = strlen(text);
  if (!log->text || log->size <= log->used) return;
  int written = snprintf(log->text + log->used, log->size - log->used, "%s%s", text,
                         length && text[length - 1] == '\n' ? "" : "\n");
  size_t room = log->size - log->used - 1;
  if (written > 0) log->used += (size_t)written < room ? (size_t)written : room;
}

void jit_error(struct jit *jit, const char *text) { add(&jit->error, text); }
void jit_finish(struct jit *jit, double milliseconds) {
  jit->milliseconds += milliseconds;
  tell(jit->info.told, (unsigned)jit->info.used);
  tell(jit->error.told, (unsigned)jit->error.used);
  float told = (float)jit->milliseconds;
  unsigned bits;
  memcpy(&bits, &told, sizeof bits);
  tell(jit->wall_time, bits);
}
