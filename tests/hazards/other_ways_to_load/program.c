/* Loads the plugin: plainly, bound to itself first, or into a name space of its own. */
#include "hazard.h"

int main(int count, char **words) {
  MUST(count == 4);
  const char way = *words[2];
  void *library = way == 'n'   ? dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW)
                  : way == 'd' ? dlopen(words[1], RTLD_NOW | RTLD_DEEPBIND)
                               : dlopen(words[1], RTLD_NOW);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  int (*plugin)(const char *) = NULL;
  MUST(library);
  *(void **)&plugin = dlsym(library, "plugin");
  printf("%d\n", plugin(words[3]));
  return 0;
}
