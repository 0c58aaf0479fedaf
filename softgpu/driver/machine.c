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

int device_count(void) { return count; }

const struct device *device_at(CUdevice ordinal) {
  return ordinal >= 0 && ordinal < count ? &devices[ordinal] : NULL;
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

bool machine_begin(void) {
  const char *text = getenv("SOFTGPU_DEVICES");
  count = 0;
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
