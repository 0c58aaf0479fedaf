/* cuGetProcAddress: programs get doors, of the form that the driver has chosen. */
#include <string.h>

#include "doors.h"
#include "hooks.h"

enum { LIST_VERSION = CUDA_VERSION };

static void *give(int number, const char *name) {
  door_given(WIRE_BY_PROC_ADDRESS, number, name);
  return door_addresses[number];
}

/* Most drivers give what their symbol tables say too. For one that does not, the form follows from the version that the
 * program was built for, by the rule of the header, as far as this list knows them. */
static void *door_for(const char *name, void *found, int version, bool per_thread) {
  int newest = -1, twin = -1;
  size_t length = strlen(name);
  for (int i = first_form(name); i < FUNCTION_COUNT && !strncmp(forms[i].symbol, name, length); i++) {
    if (strcmp(forms[i].name, name) != 0) continue;
    if (driver_function(i) == found) return give(i, name);
    if (forms[i].since > version) continue;
    int *best = forms[i].per_thread ? &twin : &newest;
    if (*best < 0 || forms[i].since > forms[*best].since) *best = i;
  }
  int chosen = per_thread && twin >= 0 ? twin : newest;
  if (chosen < 0 || version > LIST_VERSION || !driver_function(chosen)) {
    say("%s for CUDA %d is not in the list of functions: calls of it are not seen", name, version);
    door_given(WIRE_BY_PROC_ADDRESS, -1, name);
    return found;
  }
  return give(chosen, name);
}

CUresult hook_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status) {
  CUresult result = real.cuGetProcAddress_v2(symbol, function, version, flags, status);
  if (!result && symbol && function && *function)
    *function = door_for(symbol, *function, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return result;
}

CUresult hook_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
  CUresult result = real.cuGetProcAddress(symbol, function, version, flags);
  if (!result && symbol && function && *function)
    *function = door_for(symbol, *function, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return result;
}
