/* An allocator as programs are linked with: it looks up functions in its first call, and counts what it is asked for
 * meanwhile, as it would lock up if that went on for ever; and what it is asked for later. */
#include "hazard.h"

enum { ARENA = 1 << 26, ALIGNED = 16 };
static char arena[ARENA] __attribute__((aligned(16)));
static _Atomic size_t used;
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
_Atomic unsigned within, asked;

#define SHOWN __attribute__((visibility("default")))

static void begin(void) {
  static _Atomic int begun;
  if (begun++) return;
  depth++;
  void *next = dlsym(RTLD_NEXT, "malloc"), *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  MUST(next && dlsym(library, "pthread_create") && dlsym(RTLD_DEFAULT, "cuInit"));
  MUST(!dlsym(library, "cudaFree") && dlerror());
  depth--;
}

SHOWN void *malloc(size_t bytes) {
  if (depth) within++;
  else begin();
  asked++;
  size_t whole = (bytes + ALIGNED + ALIGNED - 1) & ~(size_t)(ALIGNED - 1), at = used;
  while (!__atomic_compare_exchange_n((size_t *)&used, &at, at + whole, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
  MUST(at + whole <= ARENA);
  memcpy(arena + at, &bytes, sizeof bytes);
  return arena + at + ALIGNED;
}
SHOWN void free(void *memory) { (void)memory; }
SHOWN void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
SHOWN void *realloc(void *memory, size_t bytes) {
  size_t before = 0;
  void *made = malloc(bytes);
  if (memory) memcpy(&before, (char *)memory - ALIGNED, sizeof before);
  return memory ? memcpy(made, memory, before < bytes ? before : bytes) : made;
}

int main(void) {
  void *volatile first = malloc(1); /* begins */
  MUST(first);
  CUfunction function = ready();
  CHECK(launch(function, NULL));
  unsigned before = asked;
  for (int i = 0; i < 1000; i++) CHECK(launch(function, NULL));
  printf("hello %u %u\n", within, asked - before);
  return 0;
}
