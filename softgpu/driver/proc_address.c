/* cuGetProcAddress: the form of a function that a program was built for. */
#include "functions.h"

#include <string.h>

#include "driver.h"

/* Of the forms not newer than `version` the newest; its twin if `per_thread` and there is one. NULL when there is none;
   `known` says whether the driver has any form. Those newer than the version that it reports it has not. */
static function_t form_of(const char *name, int version, bool per_thread, bool *known) {
  unsigned low = 0, high = form_count;
  while (low < high) {
    unsigned middle = low + (high - low) / 2;
    if (strcmp(forms[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  const struct form *found = NULL;
  int newest = driver_version();
  if (version > newest) version = newest;
  *known = false;
  for (; low < form_count && !strcmp(forms[low].name, name); low++) {
    *known |= forms[low].since <= newest;
    if (forms[low].since <= version) found = &forms[low];
  }
  if (!found) return NULL;
  return per_thread && found->twin && found->twin_since <= version ? found->twin : found->function;
}

/* `symbol` is a name without version: cuMemAlloc, not cuMemAlloc_v2. */
EXPORTED CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult *status) {
  const cuuint64_t legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  const cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !function || flags & ~(legacy | per_thread) || flags == (legacy | per_thread))
    return CUDA_ERROR_INVALID_VALUE;
  bool known;
  function_t found = form_of(symbol, version, flags == per_thread, &known);
  memcpy(function, &found, sizeof found); /* ISO C has no cast from a function to an object */
  if (status)
    *status = found   ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

/* The older form has no other way to say that there is no such function. */
EXPORTED CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
  CHECK(cuGetProcAddress_v2(symbol, function, version, flags, NULL));
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Private tables that libraries of NVIDIA ask for: there are none. */
EXPORTED CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}
