/* Goes to the background as daemons do, launches there, and becomes another program, with or without the library. */
#include "hazard.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
  MUST(count == 2);
  if (!strcmp(words[1], "second")) return launch(ready(), NULL);
  CHECK(launch(ready(), NULL));
  if (!strcmp(words[1], "daemon")) {
    int ends[2], byte;
    MUST(!pipe(ends));
    if (fork() == 0) {
      MUST(setsid() > 0);
      if (fork() == 0) {
        MUST(chdir("/") == 0);
        close_range(0, 2, 0);
        int bad = launch((CUfunction)&byte, NULL) != CUDA_SUCCESS;
        _exit(write(ends[1], bad ? "1" : "0", 1) != 1);
      }
      _exit(0);
    }
    MUST(wait(NULL) > 0 && read(ends[0], &byte, 1) == 1);
    return (char)byte != '0';
  }
  if (!strcmp(words[1], "without")) unsetenv("LD_PRELOAD");
  execl("/proc/self/exe", words[0], "second", NULL);
  return 1;
}
