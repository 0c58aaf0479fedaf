/* A library that offers a function, and passes calls of it on to the next library's, if there is one. */
#include <dlfcn.h>
#include <stddef.h>

const char *start_tool(int depth);
__attribute__((weak, visibility("default"))) const char *start_tool(int depth) {
  const char *(*next)(int) = NULL;
  *(void **)&next = dlsym(RTLD_NEXT, "start_tool");
  if (depth > 10) return "it found itself";
  return next ? next(depth + 1) : NAME;
}
