/* The first failure of a launch: its text, where it happened, and the stop of everything else. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 800 }; /* bytes of a message without the kernel's name and the thread */

/* Whether this is the first failure; the caller then writes the result and calls `publish`. */
static bool claim(struct launch *launch) {
  int32_t none = 0;
  return atomic_compare_exchange_strong(&launch->failed, &none, 1);
}

static void publish(struct launch *launch, enum sg_outcome outcome) {
  launch->result->status = (int32_t)outcome;
  atomic_store(&launch->stop, 1);
}

static void name_thread(struct worker *worker, int lane) {
  struct sg_result *result = worker->launch->result;
  const struct sg_env *env = &worker->env;
  for (int i = 0; i < 3; i++) result->block[i] = env->ctaid[i];
  if (lane < 0) return;
  uint32_t thread = env->warp * SG_WARP + (uint32_t)lane;
  result->has_thread = 1;
  result->thread[0] = thread % env->block[0];
  result->thread[1] = thread / env->block[0] % env->block[1];
  result->thread[2] = thread / env->block[0] / env->block[1];
}

static void name_site(struct worker *worker, const struct sg_site *site) {
  struct sg_result *result = worker->launch->result;
  snprintf(result->mnemonic, sizeof result->mnemonic, "%s", site->mnemonic);
  result->width = site->width;
  result->space = site->space;
  result->access = site->access;
}

static void compose(struct worker *worker, uint32_t line, int lane, const char *what) {
  struct launch *launch = worker->launch;
  struct sg_result *result = launch->result;
  char where[120] = "";
  result->line = line;
  name_thread(worker, lane);
  const uint32_t *b = result->block, *t = result->thread;
  if (lane >= 0)
    snprintf(where, sizeof where, " (block %u,%u,%u thread %u,%u,%u)", b[0], b[1], b[2], t[0], t[1], t[2]);
  if (line)
    snprintf(result->message, sizeof result->message, "kernel %.80s, line %u: %s%s", launch->kernel->name, line, what,
             where);
  else
    snprintf(result->message, sizeof result->message, "kernel %.80s: %s%s", launch->kernel->name, what, where);
}

int fail(struct worker *worker, enum sg_outcome outcome, uint32_t line, int lane, const char *format, ...) {
  char what[TEXT];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  if (!claim(worker->launch)) return -1;
  compose(worker, line, lane, what);
  publish(worker->launch, outcome);
  return -1;
}

int fail_at(struct worker *worker, enum sg_outcome outcome, uint32_t site, int lane, const char *format, ...) {
  char what[TEXT];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  if (!claim(worker->launch)) return -1;
  const struct sg_site *found = &worker->launch->kernel->sites[site];
  name_site(worker, found);
  compose(worker, found->line, lane, what);
  publish(worker->launch, outcome);
  return -1;
}

int fail_access(struct worker *worker, const struct sg_site *site, int lane, uint64_t address, const char *reason) {
  const char *verb = site->access & SG_ATOMIC ? "updates" : site->access & SG_WRITE ? "writes" : "reads";
  char what[TEXT];
  snprintf(what, sizeof what, "%s %s %u byte%s at 0x%llx, %s", site->mnemonic, verb, site->width,
           site->width == 1 ? "" : "s", (unsigned long long)address, reason);
  if (!claim(worker->launch)) return -1;
  name_site(worker, site);
  worker->launch->result->address = address;
  compose(worker, site->line, lane, what);
  publish(worker->launch, SG_FAULT);
  return -1;
}

void fail_deadline(struct launch *launch) {
  if (!claim(launch)) return;
  uint64_t next = atomic_load(&launch->next_block), waits = atomic_load(&launch->waits);
  char waiting[200] = "";
  if (waits)
    snprintf(waiting, sizeof waiting, ", %llu of them wait for others%s", (unsigned long long)waits,
             atomic_load(&launch->held) >= launch->memory_limit ? " and fill the memory limit, so no more could start"
                                                                : "");
  snprintf(launch->result->message, sizeof launch->result->message,
           "kernel %.80s: not done after %llu ms, its deadline; %llu of %llu blocks had started%s",
           launch->kernel->name, (unsigned long long)((launch->deadline - launch->started) / 1000000),
           (unsigned long long)(next < launch->blocks ? next : launch->blocks), (unsigned long long)launch->blocks,
           waiting);
  publish(launch, SG_DEADLINE);
}

int no_memory(struct worker *worker) {
  return fail(worker, SG_OUT_OF_MEMORY, 0, -1, "no memory for the run-time's own data");
}

int32_t trap_helper(struct sg_env *env, uint32_t mask, uint32_t site, uint32_t code) {
  return fail_at(worker_of(env), SG_TRAP, site, mask ? (int)lowest(mask) : -1, code ? "breakpoint" : "trap");
}

int32_t undefined_helper(struct sg_env *env, uint32_t mask, uint32_t site, uint32_t code) {
  static const char *const reasons[] = {
      [SG_NOT_A_MEMBER] = "the thread is not in its own member mask",
      [SG_BRANCH_INDEX] = "the index is past the end of the list of targets",
      [SG_PARTIAL_MATRIX] = "not all threads of the warp take part",
      [SG_COPY_SIZE] = "the copy reads more bytes than it writes",
      [SG_CALL_TARGET] = "the address is no function of the module",
      [SG_BARRIER_DIFFERS] = "threads that arrive together name different barriers or counts",
      [SG_MISSED_MEETING] = "other threads of the member mask never come",
  };
  const char *reason = code < sizeof reasons / sizeof *reasons ? reasons[code] : "undefined behaviour";
  struct worker *worker = worker_of(env);
  return fail_at(worker, SG_UNDEFINED, site, mask ? (int)lowest(mask) : -1, "%s: %s",
                 worker->launch->kernel->sites[site].mnemonic, reason);
}
