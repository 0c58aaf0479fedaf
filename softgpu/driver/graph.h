/* Graphs: nodes, each with what it does, and edges, which say what comes after what. */
#ifndef SOFTGPU_GRAPH_H
#define SOFTGPU_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "command.h"
#include "user_object.h"

struct node;

struct nodes {
  struct node **at;
  size_t count, room;
};

/* All fields are read and written with the lock. */
struct node {
  struct graph *graph;
  unsigned long long id;     /* never used again */
  unsigned long long origin; /* the one that it is a clone of */
  CUgraphNodeType type;
  struct command *command; /* NULL: nothing is to be done, or it is a graph */
  struct graph *child;     /* its own */
  bool disabled;           /* in an executable graph */
  struct nodes before, after;
  size_t number;           /* for whoever has the lock */
  unsigned long long mark; /* by the last walk that came here: `graph_walk` */
};

struct graph {
  unsigned long long id, origin;
  struct nodes nodes; /* by id */
  struct node *owner; /* whose child it is */
  bool moved;         /* it was given away to become one */
  bool hidden;        /* of an executable graph: neither it nor its nodes have handles */
  unsigned captures;  /* that write into it: no node may go */
  bool memory;        /* nodes allocate or free: there may be no copies of it, and nothing is taken away */
  struct user_references *objects;
};

void graphs_lock(void);
void graphs_unlock(void);

/* The rest is called with the lock, but for the functions that end something. */

/* The objects of handles; CUDA_ERROR_INVALID_VALUE when they are none. */
CUresult graph_of(CUgraph handle, struct graph **graph);
CUresult node_of(CUgraphNode handle, struct node **node);

struct graph *graph_make(void);
struct graph *graph_clone(const struct graph *graph, bool hidden); /* NULL: no memory */
void graph_hide(struct graph *graph); /* take away its handles, those of its nodes and of the graphs in them */
/* Without the lock, when nobody can find it any more. */
void graph_end(struct graph *graph);

/* Whether dependencies are good for a new node: nodes of the graph, each once. */
CUresult graph_check(const struct graph *graph, const CUgraphNode *dependencies, size_t count);
/* Whether data of edges, of which there are none for NULL, is what is supported: nothing special. */
CUresult edges_check(const CUgraphEdgeData *data, size_t count);

/* A new node. The graph takes command and child, if it succeeds. NULL: no memory. */
struct node *graph_add(struct graph *graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeType type,
                       struct command *command, struct graph *child);
/* Take a node out; `node_end`, without the lock, is to follow. */
void graph_remove(struct node *node);
void node_end(struct node *node);

bool edge_add(struct node *from, struct node *to); /* false: no memory */
void edge_remove(struct node *from, struct node *to);
bool edge_is(const struct node *from, const struct node *to);

/* A mark that no node has yet. */
unsigned long long graph_walk(void);

bool nodes_add(struct nodes *nodes, struct node *node); /* false: no memory */

#endif
