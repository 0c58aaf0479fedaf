/* A library to preload: counts who opens libraries or looks symbols up. */
#include "hazard.h"

__attribute__((visibility("default"))) _Atomic unsigned opened;

__attribute__((visibility("default"))) void *dlopen(const char *name, int how) {
  static void *(*next)(const char *, int);
  if (!next) *(void **)&next = dlvsym(RTLD_NEXT, "dlopen", "GLIBC_2.2.5");
  opened++;
  return next(name, how);
}
