/* Texts of fleets that are nearly right: each is refused, and none does harm. A machine that could not be may be one at
 * the next cuInit. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 5000, ROOM = 600 };

static const char GOOD[] =
    "A100-80G:name=big:memory_gib=4.5:price_usd_h=1, L40S ,T4,T4;"
    "from=big:to=T4-1:bandwidth_gb_s=2e1:latency_us=10:peer=true;from=T4-0:to=L40S:bandwidth_gb_s=.5:peer=false";

static uint32_t state = 1;

static unsigned below(unsigned limit) {
  state = state * 1664525 + 1013904223;
  return (state >> 8) % limit;
}

/* Bytes of the text changed, taken out, or doubled. */
static void mutate(char *text) {
  static const char BYTES[] = ",;:=. \t0123456789eE+-aT@\x7f\xff";
  for (unsigned n = 1 + below(4); n--;) {
    size_t length = strlen(text), at = below((unsigned)length), count = 1 + below(20);
    if (at + count > length) count = length - at;
    switch (below(3)) {
      case 0: text[at] = BYTES[below(sizeof BYTES - 1)]; break;
      case 1: memmove(text + at, text + at + count, length - at - count + 1); break;
      default:
        if (length + count < ROOM - 2) memmove(text + at + count, text + at, length - at + 1);
    }
    if (!*text) strcpy(text, "T4");
  }
}

int main(void) {
  char text[ROOM];
  int errors = dup(2), nowhere = open("/dev/null", O_WRONLY), count;
  dup2(nowhere, 2);
  for (int n = 0; n < ROUNDS; n++) {
    strcpy(text, GOOD);
    mutate(text);
    if (*text == '@') continue;
    strcat(text, ";"); /* and a link of which nothing is said */
    setenv("SOFTGPU_DEVICES", text, 1);
    if (cuInit(0) != CUDA_ERROR_NO_DEVICE) {
      dup2(errors, 2);
      fprintf(stderr, "accepted: %s\n", text);
      return 1;
    }
  }
  dup2(errors, 2);
  setenv("SOFTGPU_DEVICES", GOOD, 1);
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK(count == 4);
  return 0;
}
