/* What a launch of a graph does: its commands in order, in lanes that may go on side by side. */
#ifndef SOFTGPU_GRAPH_PLAN_H
#define SOFTGPU_GRAPH_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "graph.h"

/* Commands that are done one after another. Whoever launches it has a reference: it is changed only when nobody has. */
struct chain {
  _Atomic unsigned references;
  size_t count;
  struct command *commands[]; /* NULL: nothing */
};

/* What becomes one operation. Its lane's segments before it are done first. */
struct segment {
  struct chain *chain;
  size_t lane;
  size_t waits, first_wait; /* for other segments before it: where they are in `plan.waits` */
  bool alone;               /* one command, which needs an operation of its own */
  bool awaited;             /* some segment of another lane waits for it, or it is the last one of its lane */
};

struct lane {
  CUcontext context; /* of all its commands; NULL: they have none */
  unsigned long long context_id;
  size_t last;       /* its last segment */
};

/* Where the command of a node is. */
struct slot {
  unsigned long long origin; /* the node in the graph that was instantiated */
  struct node *node;         /* in the copy */
  size_t segment, index;     /* for nodes with a command */
};

struct plan {
  struct segment *segments;
  size_t segment_count, *waits;
  struct lane *lanes;
  size_t lane_count;
  struct slot *slots; /* by origin */
  size_t slot_count;
};

/* With the lock of graphs. `bad`: a node in a cycle. */
CUresult plan_make(struct graph *graph, struct plan *plan, struct node **bad);
void plan_end(struct plan *plan);

struct chain *chain_hold(struct chain *chain);
void chain_release(struct chain *chain);
/* Put a command, or NULL, in place of another one; takes a reference. False: no memory. */
bool chain_set(struct chain **chain, size_t index, struct command *command);

struct slot *plan_slot(const struct plan *plan, unsigned long long origin); /* NULL: there is no such node */

#endif
