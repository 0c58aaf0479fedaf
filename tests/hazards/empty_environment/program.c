/* Starts a program in an environment with nothing but the library in it, and with none at all; uses the driver, and
 * goes on after it has emptied its own environment. */
#include "hazard.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
  char preload[4096], *with[] = {preload, NULL}, *without[] = {NULL};
  MUST(count == 3 && snprintf(preload, sizeof preload, "LD_PRELOAD=%s", words[2]) > 0);
  for (int i = 0; i < 2; i++) {
    int status;
    pid_t child = vfork();
    if (child == 0) {
      execve(words[1], (char *[]){words[1], NULL}, i ? without : with);
      _exit(99);
    }
    MUST(waitpid(child, &status, 0) == child);
    printf("%d ", status);
  }
  CUfunction function = ready();
  clearenv();
  printf("%d\n", launch(function, NULL));
  return 0;
}
