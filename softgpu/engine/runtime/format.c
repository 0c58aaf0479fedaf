/* The text of a device printf. The buffer holds the arguments as C passes variable ones: int and unsigned in 4 bytes,
 * long, long long, pointers and double in 8, each aligned to its size. As with CUDA the host's C library does the final
 * formatting (CUDA C++ Programming Guide, "Formatted Output"); it is given one checked conversion at a time. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

enum {
  MOST_ARGUMENTS = 32, /* of one printf; further conversions are printed as they stand */
  WIDEST = 1 << 20     /* width and precision at most, so that no thread prints without bound */
};

struct reader {
  struct worker *worker;
  int lane;
  uint32_t site;
  uint64_t start;
  uint64_t offset;
  int count;
};

struct conversion {
  char flags[8];
  int width; /* -1: none */
  int precision;
  bool long_integer; /* 8 bytes */
  char cut;          /* 'h': short, 'c': char, 0: none */
  char kind;
};

static int append(struct worker *worker, struct text *out, const void *bytes, size_t size) {
  char *data = buffer_get(out->room, out->size + size);
  if (!data) return no_memory(worker);
  if (size) memcpy(data + out->size, bytes, size);
  out->size += size;
  return 0;
}

/* The next argument, of 4 or 8 bytes. */
static int take(struct reader *reader, unsigned size, uint64_t *value) {
  uint64_t offset = (reader->offset + size - 1) / size * size, left;
  const uint8_t *bytes = locate(reader->worker, reader->lane, reader->start + offset, &left);
  if (!bytes || left < size)
    return fail_at(reader->worker, SG_FAULT, reader->site, reader->lane,
                   "argument %d of printf at 0x%llx lies in no memory", reader->count + 1,
                   (unsigned long long)(reader->start + offset));
  *value = 0;
  memcpy(value, bytes, size);
  reader->offset = offset + size;
  reader->count++;
  return 0;
}

static int take_int(struct reader *reader, int *value) {
  uint64_t bits;
  if (take(reader, 4, &bits)) return -1;
  *value = (int)(uint32_t)bits;
  return 0;
}

static const char *digits(const char *at, const char *end, int *value) {
  int64_t number = 0;
  for (; at < end && *at >= '0' && *at <= '9'; at++)
    if (number < WIDEST) number = number * 10 + (*at - '0');
  *value = number < WIDEST ? (int)number : WIDEST;
  return at;
}

/* How many arguments a conversion takes: its value and every star. */
static int needs(const char *at, const char *end) {
  int count = 1;
  for (; at < end; at++) count += *at == '*';
  return count;
}

/* Read a conversion behind its '%' without taking arguments: its end, or NULL when it is none. A width or precision
 * of -2 stands for a star. */
static const char *parse(const char *at, const char *end, struct conversion *found) {
  size_t flags = 0;
  memset(found, 0, sizeof *found);
  found->width = found->precision = -1;
  for (; at < end && strchr("-+ #0", *at) && *at; at++)
    if (!strchr(found->flags, *at)) found->flags[flags++] = *at;
  if (at < end && *at == '*') {
    found->width = -2;
    at++;
  } else if (at < end && *at >= '1' && *at <= '9') {
    at = digits(at, end, &found->width);
  }
  if (at < end && *at == '.') {
    at++;
    if (at < end && *at == '*') {
      found->precision = -2;
      at++;
    } else {
      at = digits(at, end, &found->precision);
    }
  }
  for (; at < end && *at && strchr("hljztL", *at); at++) {
    if (*at == 'h')
      found->cut = found->cut == 'h' ? 'c' : 'h';
    else if (*at != 'L')
      found->long_integer = true;
  }
  if (at == end || !*at || !strchr("diouxXcpaAeEfFgGs%", *at)) return NULL;
  found->kind = *at;
  return at + 1;
}

/* Replace stars by the arguments they stand for. A negative width is a minus sign and a width (C standard). */
static int fill_stars(struct reader *reader, struct conversion *conversion) {
  if (conversion->width == -2) {
    if (take_int(reader, &conversion->width)) return -1;
    if (conversion->width < 0) {
      if (!strchr(conversion->flags, '-')) strcat(conversion->flags, "-");
      conversion->width = conversion->width < -WIDEST ? WIDEST : -conversion->width;
    }
  }
  if (conversion->precision == -2) {
    if (take_int(reader, &conversion->precision)) return -1;
    if (conversion->precision < 0) conversion->precision = -1;
  }
  if (conversion->width > WIDEST) conversion->width = WIDEST;
  if (conversion->precision > WIDEST) conversion->precision = WIDEST;
  return 0;
}

/* The format for the C library: `%`, the flags, width and precision as stars, the length and the kind. */
static void host_format(const struct conversion *conversion, const char *length, char *format, size_t size) {
  snprintf(format, size, "%%%s%s%s%s%c", conversion->flags, conversion->width >= 0 ? "*" : "",
           conversion->precision >= 0 ? ".*" : "", length, conversion->kind);
}

/* snprintf with width and precision where the conversion has them. */
#define PRINT(room, size, format, conversion, value)                                                       \
  ((conversion)->width >= 0                                                                                \
       ? ((conversion)->precision >= 0                                                                     \
              ? snprintf(room, size, format, (conversion)->width, (conversion)->precision, value)          \
              : snprintf(room, size, format, (conversion)->width, value))                                  \
       : ((conversion)->precision >= 0 ? snprintf(room, size, format, (conversion)->precision, value)      \
                                       : snprintf(room, size, format, value)))

static int print_value(const struct conversion *conversion, uint64_t bits, char *room, size_t size) {
  char format[32];
  double number;
  switch (conversion->kind) {
    case 'd':
    case 'i':
      host_format(conversion, "ll", format, sizeof format);
      int64_t value = conversion->cut == 'c'   ? (int8_t)bits
                      : conversion->cut == 'h' ? (int16_t)bits
                      : conversion->long_integer ? (int64_t)bits
                                                 : (int32_t)bits;
      return PRINT(room, size, format, conversion, (long long)value);
    case 'c':
      host_format(conversion, "", format, sizeof format);
      return PRINT(room, size, format, conversion, (int)(bits & 0xFF));
    case 'p':
      host_format(conversion, "", format, sizeof format);
      return PRINT(room, size, format, conversion, (void *)(uintptr_t)bits);
    case 'o':
    case 'u':
    case 'x':
    case 'X':
      host_format(conversion, "ll", format, sizeof format);
      bits = conversion->cut == 'c' ? (uint8_t)bits : conversion->cut == 'h' ? (uint16_t)bits : bits;
      return PRINT(room, size, format, conversion, (unsigned long long)bits);
    default:
      host_format(conversion, "", format, sizeof format);
      memcpy(&number, &bits, sizeof number);
      return PRINT(room, size, format, conversion, number);
  }
}

/* %s: at most `precision` bytes, padded to `width`. */
static int append_string(struct reader *reader, const struct conversion *conversion, uint64_t address,
                         struct text *out) {
  static const char spaces[64] = "                                                               ";
  const char *reason;
  size_t length, longest = conversion->precision >= 0 ? (size_t)conversion->precision : WIDEST;
  const char *text = read_string(reader->worker, reader->lane, address, longest, &length, &reason);
  if (!text)
    return fail_at(reader->worker, SG_FAULT, reader->site, reader->lane, "the string for %%s of printf at 0x%llx %s",
                   (unsigned long long)address, reason);
  size_t padding = conversion->width > 0 && (size_t)conversion->width > length ? (size_t)conversion->width - length : 0;
  bool left = strchr(conversion->flags, '-');
  if (left && append(reader->worker, out, text, length)) return -1;
  for (; padding; padding -= padding < 63 ? padding : 63)
    if (append(reader->worker, out, spaces, padding < 63 ? padding : 63)) return -1;
  return left ? 0 : append(reader->worker, out, text, length);
}

static int append_conversion(struct reader *reader, struct conversion *conversion, struct text *out) {
  uint64_t bits;
  if (fill_stars(reader, conversion)) return -1;
  bool small = strchr("diouxXc", conversion->kind) && (conversion->kind == 'c' || !conversion->long_integer);
  if (take(reader, small ? 4 : 8, &bits)) return -1;
  if (conversion->kind == 's') return append_string(reader, conversion, bits, out);
  char room[400];
  int size = print_value(conversion, bits, room, sizeof room);
  if (size < (int)sizeof room) return append(reader->worker, out, room, size > 0 ? (size_t)size : 0);
  char *data = buffer_get(out->room, out->size + (size_t)size + 1);
  if (!data) return no_memory(reader->worker);
  print_value(conversion, bits, data + out->size, (size_t)size + 1);
  out->size += (size_t)size;
  return 0;
}

int format_text(struct worker *worker, int lane, uint32_t site, const char *format, size_t length, uint64_t arguments,
                struct text *out) {
  struct reader reader = {worker, lane, site, arguments, 0, 0};
  const char *at = format, *end = format + length;
  while (at < end) {
    const char *percent = memchr(at, '%', (size_t)(end - at));
    const char *plain = percent ? percent : end;
    if (append(worker, out, at, (size_t)(plain - at))) return -1;
    if (!percent) break;
    struct conversion conversion;
    at = parse(percent + 1, end, &conversion);
    bool known = at && (conversion.kind == '%' || reader.count + needs(percent + 1, at) <= MOST_ARGUMENTS);
    if (!known) {
      if (!at) at = percent + 1;
      if (append(worker, out, percent, (size_t)(at - percent))) return -1;
    } else if (conversion.kind == '%') {
      if (append(worker, out, "%", 1)) return -1;
    } else if (append_conversion(&reader, &conversion, out)) {
      return -1;
    }
  }
  return reader.count;
}
