/* Fleets: which devices a machine has, and what is between them. */
#ifndef SOFTGPU_FLEET_H
#define SOFTGPU_FLEET_H

#include "driver.h"

struct fleet {
  int count;
  struct device devices[MOST_DEVICES];
  struct connection links[MOST_DEVICES][MOST_DEVICES]; /* of all pairs, in both orders */
  unsigned said;                                 /* links that the text has; the others go through the host */
};

/* The fleet of a text, docs/fleets.md; false, after a line on standard error, when there cannot be such a one. */
bool fleet_parse(const char *text, struct fleet *fleet);

#endif
