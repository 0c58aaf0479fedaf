/* Takes functions out of a driver in a name space of its own. */
#include "hazard.h"

int main(int count, char **words) {
  MUST(count == 2);
  void *driver = dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW);
  MUST(driver);
  CUresult (*start)(unsigned) = NULL;
  *(void **)&start = found(driver, "cuInit");
  printf("%d\n", start(0));
  return 0;
}
