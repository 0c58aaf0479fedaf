/* The file that SOFTGPU_INSTRUMENT names: a setting on each line. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "instrument_settings.h"
#include "results.h"

static const char BLANKS[] = " \t\r\n";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct instrument settings;
static struct rule **last_rule = &settings.rules;

/* The next word of a line, "" at its end. The line is cut there. */
static char *word(char **rest) {
  char *start = *rest + strspn(*rest, BLANKS);
  char *end = start + strcspn(start, BLANKS);
  *rest = *end ? end + 1 : end;
  *end = 0;
  return start;
}

static bool number(const char *text, unsigned long long least, unsigned long long most, unsigned long long *found) {
  char *end;
  errno = 0;
  *found = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && !errno && *found >= least && *found <= most;
}

static bool is_function(const char *name) {
  bool found = !strcmp(name, "*");
  for (unsigned i = 0; i < instrumented_count && !found; i++)
    found = !strcmp(instrumented[i].name, name) || !strcmp(instrumented[i].symbol, name);
  return found;
}

static bool error_of(const char *text, CUresult *result) {
  unsigned long long given;
  bool numeric = number(text, 1, 100000, &given);
  for (unsigned i = 0; i < result_count; i++)
    if (results[i].number && (numeric ? (unsigned long long)results[i].number == given : !strcmp(results[i].name,
                                                                                                 text))) {
      *result = (CUresult)results[i].number;
      return true;
    }
  return false;
}

/* FUNCTION CALL[+] WHAT [thread NUMBER]. NULL when all is well, else what is wrong. */
static const char *add_rule(bool late, char **rest) {
  struct rule *rule = calloc(1, sizeof *rule);
  unsigned long long given;
  if (!rule) return "no memory";
  *last_rule = rule;
  last_rule = &rule->next;
  const char *function = word(rest);
  if (strlen(function) >= sizeof rule->function || !is_function(function)) return "there is no such function";
  strcpy(rule->function, function);
  char *call = word(rest);
  size_t length = strlen(call);
  rule->onwards = length && call[length - 1] == '+';
  if (rule->onwards) call[length - 1] = 0;
  if (!number(call, 1, UINT64_MAX, &rule->first)) return "calls are numbered 1, 2, 3; 3+ are all from the third on";
  const char *what = word(rest);
  if (late && !number(what, 1, 3600000000u, &given)) return "a time is a whole number of microseconds, up to an hour";
  if (late) rule->microseconds = given;
  if (!late && !error_of(what, &rule->result)) return "an error is the name or number of a CUresult that is not 0";
  const char *more = word(rest);
  if (!*more) return NULL;
  if (strcmp(more, "thread")) return "behind it there can only be 'thread' and a number";
  if (!number(word(rest), 1, UINT32_MAX, &given)) return "threads are numbered 1, 2, 3 as they make their first calls";
  rule->thread = (unsigned)given;
  return NULL;
}

/* The rest of the line, without blanks around it: a name may have some inside. */
static const char *set_log(char **rest) {
  char *name = *rest + strspn(*rest, BLANKS);
  size_t length = strlen(name);
  *rest = name + length;
  while (length && strchr(BLANKS, name[length - 1])) name[--length] = 0;
  if (!length) return "a log needs the name of a file";
  if (settings.log) return "there is a log already";
  return (settings.log = strdup(name)) ? NULL : "no memory";
}

static const char *set_version(char **rest) {
  unsigned long long given;
  if (!number(word(rest), 1000, 99999, &given)) return "a version is a number like 12040";
  settings.version = (int)given;
  return NULL;
}

static const char *set(const char *name, char **rest) {
  static const struct {
    const char *name;
    bool *setting;
  } switches[] = {
      {"calls", &settings.calls}, {"accesses", &settings.accesses}, {"work", &settings.work},
      {"left", &settings.left},   {"reuse", &settings.reuse},       {"loader", &settings.loader},
  };
  if (!strcmp(name, "log")) return set_log(rest);
  if (!strcmp(name, "version")) return set_version(rest);
  if (!strcmp(name, "fail") || !strcmp(name, "delay")) return add_rule(*name == 'd', rest);
  for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
    if (!strcmp(name, switches[i].name)) {
      *switches[i].setting = true;
      return NULL;
    }
  return "no setting has this name";
}

/* NULL when all is well, else what is wrong. */
static const char *read_line(char *rest) {
  const char *first = word(&rest);
  if (!*first || *first == '#') return NULL;
  const char *wrong = set(first, &rest);
  return wrong || !*word(&rest) ? wrong : "there is more on this line than belongs there";
}

static void read_file(void) {
  const char *path = getenv("SOFTGPU_INSTRUMENT");
  FILE *file = path ? fopen(path, "re") : NULL;
  if (!file) {
    complain("SOFTGPU_INSTRUMENT=%.300s cannot be read: %s", path ? path : "", strerror(errno));
    return;
  }
  char *line = NULL;
  size_t size = 0;
  settings.good = true;
  for (unsigned n = 1; getline(&line, &size, file) >= 0; n++) {
    const char *wrong = read_line(line);
    if (!wrong) continue;
    complain("%.300s:%u: %s", path, n, wrong);
    settings.good = false;
  }
  if ((settings.calls || settings.accesses || settings.work) && !settings.log) {
    complain("%.300s: calls, accesses and work need a log", path);
    settings.good = false;
  }
  free(line);
  fclose(file);
  if (settings.good) return;
  settings = (struct instrument){.log = settings.log}; /* only cuInit fails, and nothing else is different */
}

const struct instrument *instrument_settings(void) {
  pthread_once(&once, read_file);
  return &settings;
}
