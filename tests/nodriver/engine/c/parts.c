/* Warps of which only some lanes come: by bar.arrive, by bar.sync, by both, or not at all as they end; and lanes that
 * wait for others of their warp. Each warp follows a script, one step for each call. */
#include "check.h"

enum { SYNC, OTHER, YIELD, MEET, POINTS };

static const struct sg_point points[POINTS] = {{SG_SYNC, 1}, {SG_RED_OR, 2}, {SG_YIELD, 3}, {SG_MEET, 4}};
static const struct sg_site sites[] = {{"bar.arrive", 5, 0, 0, 0, 0, 0}};

/* What some lanes of a warp do in one of its calls. */
struct step {
  uint32_t warp;
  uint32_t call; /* number of the call, from 0 */
  enum { ARRIVE, WAIT_SYNC, WAIT_OTHER, TURN, MEET_OTHERS, END } what;
  uint32_t lanes;
  uint32_t barrier;
  uint32_t expected;
};

static struct {
  const struct step *steps;
  size_t count;
  uint32_t calls[4];
  uint32_t went[4][8]; /* lanes that went on, by warp and call */
} script;

static int32_t follow(struct sg_env *env, struct sg_frame *frame) {
  static const uint32_t places[] = {[WAIT_SYNC] = SYNC, [WAIT_OTHER] = OTHER, [TURN] = YIELD, [MEET_OTHERS] = MEET};
  uint32_t call = script.calls[env->warp]++;
  CHECK(call < 8);
  for (unsigned point = 0; point < POINTS; point++) script.went[env->warp][call] |= take(frame, point);
  for (size_t i = 0; i < script.count; i++) {
    const struct step *step = &script.steps[i];
    if (step->warp != env->warp || step->call != call) continue;
    if (step->what == ARRIVE) {
      if (env->helpers->arrive(env, frame, step->barrier, step->expected, step->lanes, 0)) return SG_STOPPED;
    } else if (step->what == END) {
      frame->live &= ~step->lanes;
    } else {
      wait_at(frame, places[step->what], step->lanes, step->barrier, step->expected);
    }
  }
  return parked(frame);
}

static const struct sg_kernel kernel = {HEAD("follow", SG_WAITS), .site_count = 1, .sites = sites,
                                        .frame_bytes = FRAME(POINTS, 0), .point_count = POINTS, .points = points,
                                        .run = (void *)follow};

/* Run a script; `calls` is how often each warp must have been called. */
static void play(sg_pool *pool, const struct step *steps, size_t count, uint32_t warps, const uint32_t *calls) {
  struct test test = open_test(pool, &kernel, 1, 32 * warps);
  memset(&script, 0, sizeof script);
  script.steps = steps;
  script.count = count;
  run(&test);
  for (uint32_t warp = 0; warp < warps; warp++) CHECK(script.calls[warp] == calls[warp]);
  close_test(&test);
}

#define PLAY(pool, steps, warps, ...) play(pool, steps, COUNT(steps), warps, (const uint32_t[]){__VA_ARGS__})

static const uint32_t LOW = 0xFFFF, HIGH = 0xFFFF0000, ALL = ~0u;

static void test_halves_arrive(sg_pool *pool) {
  const struct step steps[] = {
      {0, 0, ARRIVE, LOW, 5, 64}, {0, 0, TURN, ALL, 0, 0}, {0, 1, TURN, ALL, 0, 0}, {0, 2, ARRIVE, HIGH, 5, 64},
      {0, 2, TURN, ALL, 0, 0}, {0, 3, END, ALL, 0, 0}, {1, 0, WAIT_SYNC, ALL, 5, 64}, {1, 1, ARRIVE, ALL, 6, 32},
      {1, 1, END, ALL, 0, 0}};
  PLAY(pool, steps, 2, 4, 2);
}

static void test_rest_ends(sg_pool *pool) {
  const struct step some[] = {{0, 0, ARRIVE, LOW, 5, 64}, {0, 0, TURN, ALL, 0, 0}, {0, 1, END, HIGH, 0, 0},
                              {0, 1, WAIT_SYNC, LOW, 7, 32}, {0, 2, END, LOW, 0, 0}, {1, 0, WAIT_SYNC, ALL, 5, 64},
                              {1, 1, END, ALL, 0, 0}};
  PLAY(pool, some, 2, 3, 2);
  const struct step all[] = {{0, 0, ARRIVE, LOW, 5, 64}, {0, 0, TURN, ALL, 0, 0}, {0, 1, END, ALL, 0, 0},
                             {1, 0, WAIT_SYNC, ALL, 5, 64}, {1, 1, END, ALL, 0, 0}};
  PLAY(pool, all, 2, 2, 2);
}

/* Half of warp 0 arrives and half waits: one arrival. The half that passed comes again, which is for the next one. */
static void test_half_arrives_half_waits(sg_pool *pool) {
  const struct step steps[] = {
      {0, 0, ARRIVE, LOW, 5, 64}, {0, 0, WAIT_SYNC, HIGH, 5, 64}, {0, 0, WAIT_OTHER, LOW, 5, 64},
      {0, 1, WAIT_SYNC, HIGH, 5, 64}, {0, 2, END, ALL, 0, 0},
      {1, 0, TURN, ALL, 0, 0}, {1, 1, ARRIVE, ALL, 5, 64}, {1, 1, TURN, ALL, 0, 0}, {1, 2, TURN, ALL, 0, 0},
      {1, 3, ARRIVE, ALL, 5, 64}, {1, 3, END, ALL, 0, 0}};
  PLAY(pool, steps, 2, 3, 4);
  CHECK(script.went[0][1] == HIGH && script.went[0][2] == ALL);
}

/* The half that passed does something else before it comes back, while the other half still waits. */
static void test_half_comes_back(sg_pool *pool) {
  const struct step steps[] = {
      {0, 0, ARRIVE, LOW, 5, 64}, {0, 0, WAIT_SYNC, HIGH, 5, 64}, {0, 0, TURN, LOW, 0, 0},
      {0, 1, WAIT_OTHER, LOW, 5, 64}, {0, 2, WAIT_SYNC, HIGH, 5, 64}, {0, 3, END, ALL, 0, 0},
      {1, 0, TURN, ALL, 0, 0}, {1, 1, TURN, ALL, 0, 0}, {1, 2, ARRIVE, ALL, 5, 64}, {1, 2, TURN, ALL, 0, 0},
      {1, 3, ARRIVE, ALL, 5, 64}, {1, 3, END, ALL, 0, 0}};
  PLAY(pool, steps, 2, 4, 4);
  CHECK(script.went[0][1] == LOW && script.went[0][2] == HIGH && script.went[0][3] == ALL);
}

/* The half that passed does not come back. */
static void test_half_stays_away(sg_pool *pool) {
  const struct step steps[] = {{0, 0, ARRIVE, LOW, 5, 64}, {0, 0, WAIT_SYNC, HIGH, 5, 64}, {0, 0, TURN, LOW, 0, 0},
                               {0, 1, END, ALL, 0, 0}, {1, 0, ARRIVE, ALL, 5, 64}, {1, 0, END, ALL, 0, 0}};
  PLAY(pool, steps, 2, 2, 1);
  CHECK(script.went[0][1] == ALL);
}

/* Two arrivals at once, as the half that has not passed ends: the barrier completes between them, then is used again. */
static void test_two_arrivals_at_once(sg_pool *pool) {
  const struct step steps[] = {
      {0, 0, ARRIVE, LOW, 5, 64}, {0, 0, TURN, ALL, 0, 0}, {0, 1, END, HIGH, 0, 0}, {0, 1, WAIT_SYNC, LOW, 5, 64},
      {0, 2, END, LOW, 0, 0}, {1, 0, WAIT_SYNC, ALL, 5, 64}, {1, 1, ARRIVE, ALL, 5, 64}, {1, 1, END, ALL, 0, 0}};
  PLAY(pool, steps, 2, 3, 2);
  struct step other[COUNT(steps)];
  memcpy(other, steps, sizeof steps);
  other[6].expected = 96;
  struct test test = open_test(pool, &kernel, 1, 64);
  memset(&script, 0, sizeof script);
  script.steps = other;
  script.count = COUNT(other);
  run_to(&test, SG_UNDEFINED, "line 5: barrier 5 expects 96 threads here and 64 elsewhere");
  close_test(&test);
}

/* The same, where the half that passed waits at the very point of the other. */
static void test_both_at_one_point(sg_pool *pool) {
  const struct step steps[] = {
      {0, 0, ARRIVE, LOW, 5, 64}, {0, 0, WAIT_SYNC, ALL, 5, 64}, {0, 1, WAIT_SYNC, HIGH, 5, 64}, {0, 2, END, ALL, 0, 0},
      {1, 0, ARRIVE, ALL, 5, 64}, {1, 0, TURN, ALL, 0, 0}, {1, 1, ARRIVE, ALL, 5, 64}, {1, 1, END, ALL, 0, 0}};
  PLAY(pool, steps, 2, 3, 2);
  CHECK(script.went[0][1] == HIGH && script.went[0][2] == ALL);
}

/* A barrier completes while half of a warp has arrived for its next time; the other half then ends. */
static void test_early_half_stays(sg_pool *pool) {
  const struct step steps[] = {
      {0, 0, ARRIVE, LOW, 5, 64}, {0, 0, TURN, ALL, 0, 0}, {0, 1, TURN, ALL, 0, 0}, {0, 2, END, ALL, 0, 0},
      {1, 0, WAIT_SYNC, ALL, 5, 64}, {1, 1, WAIT_SYNC, ALL, 5, 64}, {1, 2, END, ALL, 0, 0},
      {2, 0, WAIT_OTHER, ALL, 5, 64}, {2, 1, END, ALL, 0, 0}};
  PLAY(pool, steps, 3, 3, 3, 2);
}

/* Lanes that wait for others of their warp are tried again when more have come, or when some have ended. */
static void test_meetings(sg_pool *pool) {
  const struct step come[] = {{0, 0, MEET_OTHERS, LOW, 0, 0}, {0, 0, TURN, HIGH, 0, 0},
                              {0, 1, MEET_OTHERS, ALL, 0, 0}, {0, 2, END, ALL, 0, 0}};
  PLAY(pool, come, 1, 3);
  const struct step end[] = {{0, 0, MEET_OTHERS, LOW, 0, 0}, {0, 0, TURN, HIGH, 0, 0},
                             {0, 1, MEET_OTHERS, LOW, 0, 0}, {0, 1, END, HIGH, 0, 0}, {0, 2, END, LOW, 0, 0}};
  PLAY(pool, end, 1, 3);
  const struct step all[] = {{0, 0, MEET_OTHERS, ALL, 0, 0}, {0, 1, END, ALL, 0, 0}};
  for (int i = 0; i < 2; i++) PLAY(pool, all, 1, 2);
}

/* Lanes that nobody will meet: tried once more, then given up. */
static void test_missed_meeting(sg_pool *pool) {
  const struct step steps[] = {{0, 0, MEET_OTHERS, LOW, 0, 0}, {0, 0, WAIT_SYNC, HIGH, 0, 0},
                               {0, 1, MEET_OTHERS, LOW, 0, 0}};
  struct test test = open_test(pool, &kernel, 1, 32);
  memset(&script, 0, sizeof script);
  script.steps = steps;
  script.count = COUNT(steps);
  run_to(&test, SG_DEADLOCK, "lanes 0xffff0000 at line 1 (barrier 0); warp 0 lanes 0x0000ffff at line 4 (for other");
  CHECK(script.calls[0] == 2);
  close_test(&test);
}

int main(void) {
  sg_pool *pool = sg_pool_create(1);
  test_halves_arrive(pool);
  test_rest_ends(pool);
  test_half_arrives_half_waits(pool);
  test_half_comes_back(pool);
  test_half_stays_away(pool);
  test_two_arrivals_at_once(pool);
  test_both_at_one_point(pool);
  test_early_half_stays(pool);
  test_meetings(pool);
  test_missed_meeting(pool);
  sg_pool_destroy(pool);
  return 0;
}
