/* What streams do: each command is made once, by a call or as a node of a graph, and done any number of times. */
#ifndef SOFTGPU_COMMAND_H
#define SOFTGPU_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "instrument_work.h"
#include "stream.h"

struct command;

/* What all commands of a kind have in common. */
struct command_kind {
  CUgraphNodeType type;
  bool foreign; /* runs a function of the program */
  bool defers;  /* `run` may defer the operation that it is in */
  /* Do it. Anything but success fails the context. */
  CUresult (*run)(const struct command *command);
  /* What the instrument says when it has been done, and what `show` says of the command. NULL: nothing, or it says so
   * itself. */
  const char *work;
  void (*show)(const void *command, FILE *to);
  /* In a context whose work has failed: instead of `run`. NULL: nothing. */
  void (*skip)(const struct command *command, CUresult failed);
  void (*end)(struct command *command); /* frees it */
  /* How it gets into a queue if that is not simply to be run there, as `command_queue`. */
  CUresult (*queue)(struct command *command, struct queue *queue, struct operation *const *after, size_t count,
                    struct operation **made);
  /* Whether that will do; asked of all nodes of a graph before the first one gets there. NULL: always. */
  CUresult (*check)(const struct command *command);
};

/* The first thing of every command. It does not change once it is made. */
struct command {
  const struct command_kind *kind;
  CUcontext context;
  unsigned long long context_id;
  CUstream stream; /* that a call put it into; a node of a graph is done where that is launched */
  _Atomic unsigned references;
};

/* The beginning of a new command, with one reference. */
struct command command_begin(const struct command_kind *kind, const struct stream_place *place);
struct command *command_hold(struct command *command);
void command_release(struct command *command);

/* Do it now, or skip it when the work of its context has failed. `launched`: where the graph was launched that it is a
 * node of, with the context for a command that has none; NULL: it is none. */
void command_do(const struct command *command, const struct stream_place *launched);

/* Where the command is done that the calling thread does. */
struct execution command_execution(void);

/* Append it to a queue, to be done after `count` operations too. With `made` the caller gets a reference. */
CUresult command_queue(struct command *command, struct queue *queue, struct operation *const *after, size_t count,
                       struct operation **made);

/* What a call in a stream comes to: the command is done in its turn, and this function `waits` for its end, or it
 * becomes a part of the graph that the stream captures. Takes the caller's reference, in any case. */
CUresult submit(const struct stream_place *place, bool waits, struct command *command);

/* Whether the stream makes a graph: then nothing is done, read or written now. */
bool is_captured(const struct stream_place *place);

/* The same if nothing is left to do that comes before it: it is done now, with what came of it. Otherwise false, and
 * the reference stays the caller's. */
bool submit_now(const struct stream_place *place, struct command *command, CUresult *result);

#endif
