/* The machine: which devices there are, from SOFTGPU_DEVICES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "driver.h"
#include "share.h"

static const char DEFAULT[] = "A100-80G,L40S";

static struct device devices[MOST_DEVICES];
static int count;
static bool rounding; /* whether cards differ in it */

int device_count(void) { return count; }

const struct device *device_at(CUdevice ordinal) {
  return ordinal >= 0 && ordinal < count ? &devices[ordinal] : NULL;
}

/* With SOFTGPU_ROUNDING=1 cards before capability 8.9 and those from it on differ in the last bits, as real ones do. */
uint32_t device_rounding(CUdevice ordinal) {
  const struct card *card = devices[ordinal].card;
  return rounding && 10 * card->major + card->minor >= 89;
}

static const struct card *card_named(const char *name, size_t length) {
  for (unsigned i = 0; i < card_name_count; i++)
    if (strlen(card_names[i].name) == length && !strncasecmp(card_names[i].name, name, length))
      return &cards[card_names[i].card];
  return NULL;
}

/* Told apart by their place; the same in every process of the machine. */
static CUuuid uuid_of(int ordinal) {
  CUuuid id = {.bytes = {'s', 'o', 'f', 't', 'g', 'p', 0x40, 'u', (char)0x80, 0, 0, 0, 0, 0, 0, (char)ordinal}};
  return id;
}

/* Words between commas, with spaces around them. */
static bool parse(const char *text) {
  for (const char *at = text;;) {
    at += strspn(at, " \t");
    size_t length = strcspn(at, ",");
    const char *next = at + length;
    while (length && (at[length - 1] == ' ' || at[length - 1] == '\t')) length--;
    const struct card *card = card_named(at, length);
    if (!card) {
      complain("SOFTGPU_DEVICES=%.100s: device %d: no card is named '%.*s'; docs/fleets.md has the list", text, count,
               length < 60 ? (int)length : 60, at);
      return false;
    }
    if (count == MOST_DEVICES) {
      complain("SOFTGPU_DEVICES names more than %d devices", MOST_DEVICES);
      return false;
    }
    devices[count] = (struct device){.card = card, .memory = card->memory, .uuid = uuid_of(count)};
    count++;
    if (!*next) return true;
    at = next + 1;
  }
}

/* A variable that is 0, 1 or not there. */
static bool flag(const char *name, bool *on) {
  const char *text = getenv(name);
  *on = text && !strcmp(text, "1");
  if (!text || !*text || !strcmp(text, "0") || *on) return true;
  complain("%s=%.40s is neither 0 nor 1", name, text);
  return false;
}

bool machine_begin(void) {
  const char *text = getenv("SOFTGPU_DEVICES");
  count = 0;
  if (!flag("SOFTGPU_ROUNDING", &rounding)) return false;
  if (text && *text == '@') {
    complain("SOFTGPU_DEVICES=%.100s: fleet files are not read by the driver; name cards", text);
    return false;
  }
  if (!parse(text && *text ? text : DEFAULT)) return false;
  char names[1024] = "";
  for (int n = 0; n < count; n++) {
    size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s%s", n ? "," : "", devices[n].card->name);
  }
  return share_begin(names);
}
