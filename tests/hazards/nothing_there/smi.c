/* A program that wants to know what GPUs there are, and goes on without. */
#include "hazard.h"

int main(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (!driver) return puts("no driver") < 0;
  CUresult (*init)(unsigned) = NULL, (*version)(int *) = NULL, (*text)(CUresult, const char **) = NULL;
  *(void **)&init = found(driver, "cuInit");
  *(void **)&version = found(driver, "cuDriverGetVersion");
  *(void **)&text = found(driver, "cuGetErrorName");
  const char *words = "nothing";
  int number = 0;
  CUresult result = init(0);
  MUST(version(&number) == result && text(result, &words) == CUDA_SUCCESS);
  printf("%d %s\n", result, words);
  return 0;
}
