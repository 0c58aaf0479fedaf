/* Answers for kernels one after another. In: the sizes of text and name and `most`, 32 bits each, then text and name.
   Out: a line with the answer, the number of parameters and offset:size of those that were stored. The text ends where
   its allocation does, and the parameters too: the sanitizers see what is touched beyond. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ptx_params.h"

enum { SECONDS = 20 };

static char *received(size_t bytes, size_t more) {
  char *data = calloc(1, bytes + more ? bytes + more : 1);
  if (!data || fread(data, 1, bytes, stdin) != bytes) exit(2);
  return data;
}

int main(void) {
  uint32_t sizes[3];
  while (fread(sizes, sizeof sizes, 1, stdin) == 1) {
    alarm(SECONDS); /* for each: it would be a hang */
    char *text = received(sizes[0], 0), *name = received(sizes[1], 1);
    struct parameter *found = malloc(sizes[2] * sizeof *found);
    enum ptx_answer answer;
    size_t count = ptx_parameters(text, sizes[0], name, found, sizes[2], &answer);
    printf("%d %zu", answer, count);
    for (size_t which = 0; which < count && which < sizes[2]; which++)
      printf(" %zu:%zu", found[which].offset, found[which].size);
    puts("");
    fflush(stdout);
    free(found);
    free(name);
    free(text);
  }
  return 0;
}
