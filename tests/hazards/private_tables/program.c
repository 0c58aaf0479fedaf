/* Asks for private tables as libraries of the toolkit do, and looks up functions in other ways than they are
 * documented. */
#include "hazard.h"

int main(void) {
  const void *table = NULL;
  CUuuid id = {"an invented one"}, other = {"another one"};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(cuInit(0));
  CHECK(cuGetExportTable(&table, &id));
  printf("%s\n", *(const char *const *)table);
  int result = cuGetExportTable(&table, &other);
  printf("%d %d\n", result, table == NULL);
  int (*invented)(void) = NULL;
  *(void **)&invented = found(driver, "cuInventedFunction");
  printf("%d\n", invented());
  const char *const raw[] = {"cuStreamWaitValue32", "cuStreamWriteValue64", "cuStreamBatchMemOp", "cuMemAlloc",
                             "cuCtxCreate"};
  for (int i = 0; i < 5; i++) {
    CUresult (*call)(void *, void *, void *, void *) = NULL;
    *(void **)&call = found(driver, raw[i]);
    printf("%d ", call(NULL, NULL, NULL, NULL));
  }
  dlerror();
  void *nothing = dlsym(driver, "cuNoSuchFunction");
  printf("%d %d\n", nothing == NULL, dlerror() != NULL);
  return 0;
}
