/* Names and texts of results; the table is made from cuda.h. */
#ifndef SOFTGPU_RESULTS_H
#define SOFTGPU_RESULTS_H

struct result {
  int number;
  const char *name, *text;
};

extern const struct result results[]; /* by number */
extern const unsigned result_count;

#endif
