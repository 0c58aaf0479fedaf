/* Calls that are looked at: those that the file wants to fail do, late ones wait, and all are logged. */
#include "instrument.h"

#include <stdlib.h>
#include <time.h>

#include <string.h>

#include "driver.h"
#include "instrument_settings.h"

bool instrument_on;

static _Atomic unsigned threads;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("SOFTGPU_INSTRUMENT");
  instrument_on = path && *path;
}

bool instrument_read(void) { return !instrument_on || instrument_settings()->good; }
bool instrument_reuses(void) { return instrument_on && instrument_settings()->reuse; }
int instrument_version(void) { return instrument_on ? instrument_settings()->version : 0; }
bool instrument_wants_accesses(void) { return instrument_on && instrument_settings()->accesses; }

unsigned instrument_thread(void) {
  static _Thread_local unsigned number;
  if (!number) number = ++threads;
  return number;
}

static bool concerns(const struct rule *rule, const struct exported *function) {
  return !strcmp(rule->function, function->name) || !strcmp(rule->function, function->symbol) ||
         !strcmp(rule->function, "*");
}

/* Count a call. True: it is one of those that the rule is for. */
static bool meets(struct rule *rule, const struct exported *function) {
  if (!concerns(rule, function) || (rule->thread && rule->thread != instrument_thread())) return false;
  unsigned long long number = ++rule->calls;
  return rule->onwards ? number >= rule->first : number == rule->first;
}

static void wait_microseconds(uint64_t microseconds) {
  struct timespec left = {.tv_sec = (time_t)(microseconds / 1000000), .tv_nsec = (long)(microseconds % 1000000 * 1000)};
  while (nanosleep(&left, &left)) continue; /* a signal came */
}

bool instrument_before(struct looked_at *call, const struct exported *function) {
  const struct instrument *settings = instrument_settings();
  uint64_t late = 0;
  *call = (struct looked_at){.function = function, .made = true, .start = nanoseconds_now()};
  instrument_thread();
  for (struct rule *rule = settings->rules; rule; rule = rule->next) {
    if (!meets(rule, function)) continue;
    if (rule->result == CUDA_SUCCESS) {
      late += rule->microseconds;
    } else if (call->made) {
      call->made = false;
      call->result = rule->result;
    }
  }
  if (instrument_loading()) {
    complain("%s was called while cuInit calls the loader", function->symbol);
    if (!strcmp(function->symbol, "cuInit")) { /* it would wait for itself */
      call->made = false;
      call->result = CUDA_ERROR_NOT_PERMITTED;
    }
  }
  if (late) wait_microseconds(late);
  return call->made;
}

CUresult instrument_after(const struct looked_at *call, const struct value *values, CUresult result) {
  if (instrument_settings()->calls) log_call(call, values, result, nanoseconds_now());
  return result;
}
