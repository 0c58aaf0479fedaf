/* Looks functions up in a library: doctor_lookup LIBRARY WORD...
 *   NAME         by dlsym, and calls it if it is cuInit or cuTomorrow
 *   :NAME        by cuGetProcAddress for CUDA 12.0, and calls nothing but cuDevicePrimaryCtxRetain
 *   table        asks for a table of private functions */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef int call(unsigned);
typedef int get(const char *, void **, int, unsigned long long, int *);
typedef int retain(void **, int);
typedef int table(const void **, const unsigned char *);

int main(int count, char **words) {
  void *library = dlopen(words[1], RTLD_NOW);
  if (!library) return 2;
  for (int i = 2; i < count; i++) {
    const char *word = words[i];
    void *found = NULL, *context;
    const void *private;
    if (!strcmp(word, "table")) {
      found = dlsym(library, "cuGetExportTable");
      if (found) ((table *)found)(&private, (const unsigned char *)"0123456789abcdef");
    } else if (*word == ':') {
      void *asked = dlsym(library, "cuGetProcAddress_v2");
      int status;
      if (!asked || ((get *)asked)(word + 1, &found, 12000, 0, &status)) return 3;
      if (!strcmp(word, ":cuDevicePrimaryCtxRetain") && ((retain *)found)(&context, 0)) return 4;
    } else {
      found = dlsym(library, word);
      if (found && (!strcmp(word, "cuInit") || !strcmp(word, "cuTomorrow")) && ((call *)found)(0)) return 5;
    }
    if (!found) return 6;
  }
  return 0;
}
