/* Commands, and how they get into queues. */
#include "command.h"

#include "capture.h"
#include "clock.h"
#include "driver.h"
#include "strict.h"
#include "watch.h"

struct command command_begin(const struct command_kind *kind, const struct stream_place *place) {
  return (struct command){.kind = kind, .context = place->context, .context_id = place->context_id,
                          .stream = place->stream, .references = 1};
}

struct command *command_hold(struct command *command) {
  command->references++;
  return command;
}

void command_release(struct command *command) {
  if (!--command->references) command->kind->end(command);
}

static _Thread_local struct execution execution; /* of the command that this thread does */

struct execution command_execution(void) { return execution; }

static void tell(const struct command *command, CUresult result) {
  if (command->kind->work && instrument_wants_work())
    instrument_work(command->kind->work, &execution, result, command->kind->show, command);
}

void command_do(const struct command *command, const struct stream_place *launched) {
  CUcontext context = command->context || !launched ? command->context : launched->context;
  unsigned long long id = command->context || !launched ? command->context_id : launched->context_id;
  CUresult result = context_result(context, id);
  execution = (struct execution){launched ? launched->stream : command->stream, launched};
  if (result != CUDA_SUCCESS) {
    if (!command->kind->skip) return;
    command->kind->skip(command, result);
    tell(command, result);
    return;
  }
  clock_step(command->kind->type);
  if (command->kind->foreign) clock_settle(); /* the function itself takes this machine's time */
  result = command->kind->run(command);
  clock_settle();
  if (result != CUDA_SUCCESS) context_fail(context, id, result);
  tell(command, result);
  watch_now();
}

static void run(void *given) {
  struct command *command = given;
  command_do(command, NULL);
  command_release(command);
}

CUresult command_queue(struct command *command, struct queue *queue, struct operation *const *after, size_t count,
                       struct operation **made) {
  if (command->kind->queue) return command->kind->queue(command, queue, after, count, made);
  command_hold(command);
  if (queue_add(queue, &(struct work){run, command, command->kind->foreign}, after, count, made)) return CUDA_SUCCESS;
  command_release(command);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult do_now(const struct stream_place *place, struct command *command) {
  command_hold(command);
  if (queue_do(place->queue, &(struct work){run, command, command->kind->foreign}))
    return context_result(place->context, place->context_id);
  command_release(command);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult submit(const struct stream_place *place, bool waits, struct command *command) {
  CUresult result;
  if (!capture_command(place, waits, command, &result)) {
    result = strict_room(place);
    clock_call(command->kind->type);
    if (result == CUDA_SUCCESS)
      result = waits ? do_now(place, command) : command_queue(command, place->queue, NULL, 0, NULL);
  }
  command_release(command);
  return result;
}

bool submit_now(const struct stream_place *place, struct command *command, CUresult *result) {
  if (is_captured(place) || clock_on()) return false; /* it takes longer than the call */
  command_hold(command);
  if (!queue_try(place->queue, &(struct work){run, command, command->kind->foreign})) {
    command_release(command);
    return false;
  }
  command_release(command);
  *result = context_result(place->context, place->context_id);
  return true;
}
