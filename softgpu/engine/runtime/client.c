/* Requests to the compile service, and loading of kernels. The protocol is softgpu/engine/service/protocol.py's. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"

#define MAGIC 0x56534753u
#define VERSION 1
#define MAX_PTX (1u << 29)
#define MAX_NAME (1u << 16)
#define MAX_REPLY (1u << 30)

#define PARTING_MILLISECONDS 1000 /* for which a process that is about to be gone may still take connections */

enum { MOST_PARTS = 4 };

enum kind { COMPILE = 2, DESCRIBE = 3, UNPACK = 4, LINK = 5, FLEET = 6 };

struct header {
  uint32_t magic;
  uint16_t version;
  uint16_t kind; /* of a request, or the status of a reply */
  uint64_t bytes;
};

struct fields {
  uint8_t engine[32];
  uint32_t block[3];
  uint32_t flags;
  uint32_t rounding;
  uint32_t kernel_bytes;
  uint32_t cache_bytes;
  uint32_t zero;
  uint64_t ptx_bytes;
};

struct unpack_fields {
  uint8_t engine[32];
  uint32_t packing;
  uint32_t cache_bytes;
  uint64_t bytes;
  uint64_t packed_bytes;
};

_Static_assert(sizeof(struct header) == 16 && sizeof(struct fields) == 72 && sizeof(struct unpack_fields) == 56,
               "as the protocol has them");

static atomic_int start_milliseconds = SG_START_MILLISECONDS;
static atomic_int answer_milliseconds = SG_ANSWER_MILLISECONDS;

void sg_set_deadlines(int start, int answer) {
  start_milliseconds = start;
  answer_milliseconds = answer;
}

/* What a step of the exchange came to, beside enum sg_answer: the service is gone. */
#define GONE (-1)

/* Wait until the socket is ready for `events`: 0, or SG_TOO_LATE. */
static int await(int connection, short events, int64_t deadline) {
  for (;;) {
    struct pollfd waiting = {connection, events, 0};
    const int64_t left = deadline - sg_milliseconds();
    if (left <= 0)
      return SG_TOO_LATE;
    const int ready = poll(&waiting, 1, (int)left);
    if (ready > 0)
      return 0;
    if (ready < 0 && errno != EINTR)
      return GONE;
  }
}

static int send_parts(int connection, struct iovec *parts, size_t count, int64_t deadline) {
  while (count) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    const int failed = await(connection, POLLOUT, deadline);
    if (failed)
      return failed;
    ssize_t sent = sendmsg(connection, &message, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (sent < 0)
      return GONE;
    while (count && (size_t)sent >= parts->iov_len) {
      sent -= (ssize_t)parts->iov_len;
      parts++;
      count--;
    }
    if (count) {
      parts->iov_base = (char *)parts->iov_base + sent;
      parts->iov_len -= (size_t)sent;
    }
  }
  return 0;
}

static int receive_bytes(int connection, void *data, size_t bytes, int64_t deadline) {
  while (bytes) {
    const int failed = await(connection, POLLIN, deadline);
    if (failed)
      return failed;
    const ssize_t got = recv(connection, data, bytes, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (got <= 0)
      return GONE;
    data = (char *)data + got;
    bytes -= (size_t)got;
  }
  return 0;
}

/* One request and its reply, a text to be freed; the reply's status, GONE, SG_TOO_LATE or SG_NO_SERVICE. */
static int exchange(int connection, struct iovec *parts, size_t count, char **reply, size_t *reply_bytes,
                    struct sg_failure *failure) {
  const int64_t deadline = sg_milliseconds() + answer_milliseconds;
  struct header header;
  int failed = send_parts(connection, parts, count, deadline);
  if (!failed || failed == GONE) { /* it may have said why it does not listen */
    const int heard = receive_bytes(connection, &header, sizeof header, deadline);
    failed = heard ? heard : 0;
  }
  if (failed)
    return failed;
  if (header.magic != MAGIC || header.version != VERSION || header.kind > SG_REFUSED || header.bytes > MAX_REPLY) {
    sg_say(failure, "the compile service speaks another protocol");
    return SG_NO_SERVICE;
  }
  char *text = malloc(header.bytes + 1);
  if (!text) {
    sg_say(failure, "no memory for the answer of the compile service");
    return SG_NO_SERVICE;
  }
  failed = receive_bytes(connection, text, header.bytes, deadline);
  if (failed) {
    free(text);
    return failed;
  }
  text[header.bytes] = 0;
  *reply = text;
  *reply_bytes = header.bytes;
  return header.kind;
}

static int from_hexadecimal(const char *text, uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    unsigned value;
    if (sscanf(text + 2 * i, "%2x", &value) != 1)
      return -1;
    bytes[i] = (uint8_t)value;
  }
  return 0;
}

/* The version of our engine, as requests have it: 0, or -1. */
static int own_version(uint8_t version[32], struct sg_failure *failure) {
  const struct sg_engine_info *engine = sg_engine(failure);
  if (!engine)
    return -1;
  if (from_hexadecimal(engine->version, version, 32)) {
    sg_say(failure, "the version of the engine is damaged: build Tessera again");
    return -1;
  }
  return 0;
}

/* The process that made the socket at the other end. */
static pid_t peer_of(int connection) {
  struct ucred peer = {0, 0, 0};
  socklen_t size = sizeof peer;
  getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return peer.pid;
}

/* Ask the service, once more if it ends before it answers. A request is `count` parts of at most MOST_PARTS; `what` names
 * it in errors. SG_ANSWERED: `reply` is to be freed. */
static enum sg_answer ask(enum kind kind, const struct iovec *request, size_t count, const char *what, char **reply,
                          size_t *reply_bytes, struct sg_failure *failure) {
  const struct sg_engine_info *engine = sg_engine(failure);
  struct header header = {MAGIC, VERSION, (uint16_t)kind, 0};
  const struct timespec pause = {0, 10000000};
  int64_t parting = 0;
  pid_t ended = 0;
  if (!engine)
    return SG_NO_SERVICE;
  for (size_t i = 0; i < count; i++)
    header.bytes += request[i].iov_len;
  for (;;) {
    struct iovec parts[1 + MOST_PARTS] = {{&header, sizeof header}};
    memcpy(parts + 1, request, count * sizeof *request);
    enum sg_answer answer;
    const int connection = sg_service_connection(engine, start_milliseconds, &answer, failure);
    if (connection < 0)
      return answer;
    const pid_t process = peer_of(connection);
    const int status = exchange(connection, parts, 1 + count, reply, reply_bytes, failure);
    close(connection);
    if (status == GONE && !ended) {
      ended = process;
      parting = sg_milliseconds() + PARTING_MILLISECONDS;
      continue;
    }
    if (status == GONE && process == ended && sg_milliseconds() < parting) {
      nanosleep(&pause, 0);
      continue;
    }
    if (status == GONE)
      break;
    if (status == SG_TOO_LATE) {
      sg_say(failure, "the compile service did not answer within %d seconds%.200s", answer_milliseconds / 1000, what);
    } else if (status != SG_ANSWERED && status != SG_NO_SERVICE) {
      sg_say(failure, "%s", *reply);
      free(*reply);
    }
    return (enum sg_answer)status;
  }
  sg_say(failure, "the compile service ended before it answered, twice%.200s", what);
  return SG_NO_SERVICE;
}

/* A request about a PTX text. */
static enum sg_answer ask_about(enum kind kind, const void *ptx, size_t bytes, const char *kernel,
                                const struct sg_options *options, char **reply, size_t *reply_bytes,
                                struct sg_failure *failure) {
  struct fields fields = {.kernel_bytes = (uint32_t)strnlen(kernel, MAX_NAME + 1), .ptx_bytes = bytes};
  char folder[SG_PATH_BYTES], what[224] = "";
  if (own_version(fields.engine, failure) || sg_cache_folder(folder, failure))
    return SG_NO_SERVICE;
  if (fields.kernel_bytes > MAX_NAME || bytes > MAX_PTX) {
    sg_say(failure, "the module or the name of the kernel is too long");
    return SG_INVALID;
  }
  memcpy(fields.block, options->block, sizeof fields.block);
  fields.flags = options->flags & (SG_COUNTS | SG_LOGS);
  fields.rounding = options->rounding;
  fields.cache_bytes = (uint32_t)strlen(folder);
  if (kernel[0])
    snprintf(what, sizeof what, ", for kernel %.200s", kernel);
  const struct iovec request[] = {{&fields, sizeof fields}, {(void *)kernel, fields.kernel_bytes},
                                  {folder, fields.cache_bytes}, {(void *)ptx, bytes}};
  return ask(kind, request, 4, what, reply, reply_bytes, failure);
}

/* Load a file of the cache; -1 if it is not there whole, or is not that kernel. */
static int load(const char *path, const char *name, struct sg_loaded *loaded, struct sg_failure *failure) {
  size_t bytes;
  char *content = sg_sealed_content(path, &bytes);
  free(content);
  if (!content) {
    sg_say(failure, "%s is missing or damaged", path);
    return -1;
  }
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    sg_say(failure, "a compiled kernel cannot be loaded: %s", dlerror());
    return -1;
  }
  const struct sg_kernel *kernel = dlsym(handle, "softgpu_kernel");
  if (!kernel || kernel->magic != SG_MAGIC || kernel->abi != SG_ABI_VERSION || strcmp(kernel->name, name)) {
    sg_say(failure, "%s is not a compiled kernel named %s", path, name);
    dlclose(handle);
    return -1;
  }
  loaded->handle = handle;
  loaded->kernel = kernel;
  return 0;
}

enum sg_answer sg_load_kernel(const void *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], const char *kernel,
                              const struct sg_options *options, struct sg_loaded *loaded, struct sg_failure *failure) {
  char path[SG_PATH_BYTES], folder[SG_PATH_BYTES], *made;
  size_t made_bytes;
  const struct sg_engine_info *engine = sg_engine(failure);
  if (!engine)
    return SG_NO_SERVICE;
  if (!sg_target_level()) {
    sg_say(failure, "compiled kernels need a CPU of level x86-64-v3 or higher");
    return SG_FAILED;
  }
  if (!sg_cache_folder(folder, failure) && sg_is_private(folder) &&
      !sg_object_file(engine, digest, kernel, options, path) && !load(path, kernel, loaded, failure))
    return SG_ANSWERED;
  for (int attempt = 0; attempt < 2; attempt++) { /* a file may be removed between the answer and the load */
    const enum sg_answer answer = ask_about(COMPILE, ptx, bytes, kernel, options, &made, &made_bytes, failure);
    if (answer != SG_ANSWERED)
      return answer;
    const int failed = made[0] != '/' || strlen(made) != made_bytes || load(made, kernel, loaded, failure);
    free(made);
    if (!failed)
      return SG_ANSWERED;
  }
  return SG_FAILED;
}

enum sg_answer sg_describe_module(const void *ptx, size_t bytes, const uint8_t digest[SG_DIGEST_BYTES], char **json,
                                  size_t *json_bytes, struct sg_failure *failure) {
  const struct sg_options none = {{0, 0, 0}, 0, 0};
  char path[SG_PATH_BYTES], folder[SG_PATH_BYTES];
  const struct sg_engine_info *engine = sg_engine(failure);
  if (!engine)
    return SG_NO_SERVICE;
  if (!sg_cache_folder(folder, failure) && sg_is_private(folder) && !sg_description_file(engine, digest, path) &&
      (*json = sg_sealed_content(path, json_bytes)))
    return SG_ANSWERED;
  return ask_about(DESCRIBE, ptx, bytes, "", &none, json, json_bytes, failure);
}

enum sg_answer sg_unpack(enum sg_packing packing, const void *packed, size_t packed_bytes, size_t bytes, char **content,
                         struct sg_failure *failure) {
  struct unpack_fields fields = {.packing = packing, .bytes = bytes, .packed_bytes = packed_bytes};
  char folder[SG_PATH_BYTES], path[SG_PATH_BYTES];
  size_t content_bytes;
  uint8_t digest[SG_DIGEST_BYTES];
  if (own_version(fields.engine, failure) || sg_cache_folder(folder, failure))
    return SG_NO_SERVICE;
  if (bytes > MAX_PTX || packed_bytes > MAX_PTX) {
    sg_say(failure, "a packed image is too long");
    return SG_INVALID;
  }
  sg_module_digest(packed, packed_bytes, digest);
  enum sg_answer answer = SG_ANSWERED;
  *content = sg_is_private(folder) && !sg_unpacked_file(digest, packing, path) ? sg_sealed_content(path, &content_bytes) : 0;
  if (!*content) {
    fields.cache_bytes = (uint32_t)strlen(folder);
    const struct iovec request[] = {{&fields, sizeof fields}, {folder, fields.cache_bytes},
                                    {(void *)packed, packed_bytes}};
    answer = ask(UNPACK, request, 3, ", for a packed image", content, &content_bytes, failure);
  }
  if (answer == SG_ANSWERED && content_bytes != bytes) {
    free(*content);
    sg_say(failure, "a packed image has %zu bytes, not the %zu that it announces", content_bytes, bytes);
    return SG_INVALID;
  }
  return answer;
}

enum sg_answer sg_link(const char *texts, size_t bytes, char **text, size_t *text_bytes, struct sg_failure *failure) {
  uint8_t engine[32];
  const struct iovec request[] = {{engine, sizeof engine}, {(void *)texts, bytes}};
  if (own_version(engine, failure))
    return SG_NO_SERVICE;
  if (bytes > MAX_PTX) {
    sg_say(failure, "the texts to link are too long");
    return SG_INVALID;
  }
  return ask(LINK, request, 2, ", for a link", text, text_bytes, failure);
}

enum sg_answer sg_fleet(const char *path, char **text, struct sg_failure *failure) {
  uint8_t engine[32];
  size_t bytes = strlen(path);
  const struct iovec request[] = {{engine, sizeof engine}, {(void *)path, bytes}};
  return own_version(engine, failure) ? SG_NO_SERVICE
                                      : ask(FLEET, request, 2, ", for a fleet file", text, &bytes, failure);
}
