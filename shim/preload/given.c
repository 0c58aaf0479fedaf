/* Which functions programs look up, and how: what `tessera doctor` shows. Each is recorded once. */
#include <string.h>

#include "doors.h"
#include "session.h"

enum { WAYS = WIRE_BY_PROC_ADDRESS + 1, LONGEST_NAME = 256 };

static _Atomic unsigned char given[WAYS][FUNCTION_COUNT]; /* since the program began, also in forked children */

/* Look-ups are no calls of the driver: a session does not begin with them. */
static bool live(void) {
  return !inside && session && __atomic_load_n(&session->state, __ATOMIC_ACQUIRE) == SESSION_LIVE;
}

static void record_door(enum wire_how how, unsigned function, const char *name, size_t length) {
  struct wire_door *record = record_begin(WIRE_DOOR, function, sizeof *record + padded(length));
  record->how = how;
  record->name_bytes = (uint32_t)length;
  put_bytes(record + 1, name, length);
  record_end(record);
}

void door_given(enum wire_how how, int number, const char *name) {
  if (number >= 0) {
    if (__atomic_exchange_n((unsigned char *)&given[how][number], 1, __ATOMIC_RELAXED)) return;
    if (live()) record_door(how, (unsigned)number, NULL, 0);
  } else if (live()) {
    record_door(how, 0, name, strnlen(name, LONGEST_NAME));
  }
}

void doors_given_before(void) {
  for (unsigned how = 1; how < WAYS; how++)
    for (unsigned number = 0; number < FUNCTION_COUNT; number++)
      if (given[how][number]) record_door(how, number, NULL, 0);
}
