/* The modelled clock.
 *
 * Ends are computed from modelled times, never from when a thread woke up, so that what this machine adds does not add
 * up: an operation begins when the last one of those before it ended and the parts of devices that it takes are
 * free. */
#include "clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "instrument.h"

/* What is taken besides the work itself, in nanoseconds: by the thread that calls, and in the stream. Where the figures
 * come from is in docs/clock.md. */
static const struct {
  uint32_t call, stream;
} COSTS[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = {2200, 900},
    [CU_GRAPH_NODE_TYPE_MEMCPY] = {3000, 3000},
    [CU_GRAPH_NODE_TYPE_MEMSET] = {2200, 900},
    [CU_GRAPH_NODE_TYPE_HOST] = {2200, 5000},
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = {700, 500},
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = {700, 1000},
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = {1000, 0},
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = {1000, 0},
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = {1000, 1000},
};

enum {
  WAIT = 3600,         /* from the end of what a thread waits for until it goes on */
  GRAPH = 2500,        /* to launch a graph */
  GRAPH_NODE = 1,      /* and for each of its nodes */
  LEAD = 20000000,     /* of this machine: so far a thread may be ahead of what its calls take */
  VOID_PART = 50,      /* a run is void that was late by more than this part of what its operations took */
  SPIN = 50000,        /* of this machine: what is left of a wait when sleeping is not exact enough */
  SECOND = 1000000000
};

static const double MOST_DILATION = 1e6;

static double dilation; /* 0: off */
static pid_t begun_in;
static _Atomic uint64_t operations, worst; /* how many; by how much one was late, at most */

static _Thread_local struct {
  uint64_t issued; /* what the thread has called until now has returned then */
  struct moment at; /* how far its operation has come */
  uint64_t fixed;  /* what its step takes anyhow, if that has not been taken yet */
} own;

bool clock_on(void) { return dilation > 0; }

double clock_dilation(void) { return dilation; }

bool clock_begin(void) {
  static const char modelled[] = "modelled:";
  const char *text = getenv("SOFTGPU_CLOCK");
  if (!text || !*text || !strcmp(text, "off")) return true;
  char *end = NULL;
  bool named = !strncmp(text, modelled, sizeof modelled - 1);
  const char *number = named ? text + sizeof modelled - 1 : text;
  double value = named && strspn(number, "0123456789.") == strlen(number) ? strtod(number, &end) : 0;
  if (!end || end == number || *end || !(value >= 1 && value <= MOST_DILATION)) {
    complain("SOFTGPU_CLOCK=%.60s is neither off nor modelled:DILATION, with a dilation from 1 to %.0f", text,
             MOST_DILATION);
    return false;
  }
  dilation = value;
  begun_in = getpid();
  return true;
}

static uint64_t now(void) { return dilation > 0 ? (uint64_t)((double)(nanoseconds_now() - share_start()) / dilation) : 0; }

static uint64_t wall_of(uint64_t time) { return share_start() + (uint64_t)((double)time * dilation) + 1; }

static void sleep_until(uint64_t due) {
  uint64_t now = nanoseconds_now();
  if (now + SPIN < due) {
    uint64_t until = due - SPIN;
    struct timespec at = {(time_t)(until / SECOND), (long)(until % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) continue;
  }
  while (nanoseconds_now() < due) __builtin_ia32_pause();
}

static void note_worst(uint64_t nanoseconds) {
  uint64_t before = worst;
  while (before < nanoseconds && !atomic_compare_exchange_weak(&worst, &before, nanoseconds)) continue;
}

/* Until a moment, less a lead in time of this machine. By how much it is more late then is this machine's fault. */
static void wait_until(struct moment *end, uint64_t lead) {
  uint64_t due = wall_of(end->time);
  sleep_until(due - lead);
  uint64_t after = nanoseconds_now(), before = end->late;
  end->late = after > due ? after - due : 0;
  if (end->late <= before) return;
  share_count(0, end->late - before);
  note_worst(end->late);
}

static void advance(uint64_t nanoseconds) {
  uint64_t begin = now();
  if (own.issued < begin) own.issued = begin;
  own.issued += nanoseconds;
  if ((double)(own.issued - begin) * dilation > LEAD) wait_until(&(struct moment){own.issued, 0}, LEAD);
}

void clock_call(CUgraphNodeType type) {
  if (dilation > 0 && type < sizeof COSTS / sizeof *COSTS) advance(COSTS[type].call);
}

void clock_call_graph(size_t nodes) {
  if (dilation > 0) advance(GRAPH + (uint64_t)GRAPH_NODE * nodes);
}

struct moment clock_issue(void) {
  uint64_t time = now();
  return (struct moment){own.issued > time ? own.issued : time, 0};
}

void clock_waited(const struct moment *end) {
  if (!(dilation > 0) || !end->time) return;
  struct moment over = {end->time + WAIT, end->late};
  if (own.issued < over.time) own.issued = over.time;
  wait_until(&over, 0);
}

void clock_after(struct moment *moment, const struct moment *earlier) {
  if (moment->time < earlier->time) moment->time = earlier->time;
  if (moment->late < earlier->late) moment->late = earlier->late;
}

void clock_enter(const struct moment *begin) {
  own.at = *begin;
  own.fixed = 0;
}

struct moment clock_leave(bool foreign) {
  if (foreign) clock_end(&own.at, &own.at);
  return own.at;
}

void clock_end(struct moment *end, const struct moment *begin) {
  uint64_t time = now();
  *end = (struct moment){begin->time > time ? begin->time : time, 0};
}

void clock_step(CUgraphNodeType type) {
  if (dilation > 0 && type < sizeof COSTS / sizeof *COSTS) own.fixed = COSTS[type].stream;
}

void clock_take(const struct taken *parts, size_t count, double nanoseconds) {
  if (!(dilation > 0)) return;
  uint64_t duration = own.fixed + (uint64_t)(nanoseconds + 0.5);
  own.fixed = 0;
  own.at.time = share_occupy(parts, count, own.at.time, duration) + duration;
  operations++;
  share_count((uint64_t)((double)duration * dilation), 0);
  wait_until(&own.at, 0);
}

void clock_settle(void) {
  if (own.fixed) clock_take(NULL, 0, 0);
}

uint64_t clock_stamp(void) { return dilation > 0 ? own.at.time : nanoseconds_now(); }

/* When the process ends. */
__attribute__((destructor)) static void end(void) {
  if (!(dilation > 0) || begun_in != getpid()) return;
  struct clock_sums sums = share_count(0, 0);
  double part = sums.took ? (double)sums.late / (double)sums.took : 0;
  struct clock_report report = {part <= 1.0 / VOID_PART, operations, sums.took, sums.late};
  complain("modelled clock: %s: %llu operations; the machine was late by %.2f %% of the time of its operations, here at "
           "most by %.1f ms", report.kept_up ? "kept up" : "this run is void", (unsigned long long)operations, 100 * part,
           (double)worst / 1e6);
  instrument_clock(&report);
}
