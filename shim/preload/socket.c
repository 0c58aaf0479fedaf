/* The greeting: who we are and where the records will be. The socket is closed right after, so that nothing of ours is
 * open in the program. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "doors.h"
#include "nap.h"
#include "session.h"

#define ANSWER_NANOSECONDS 1000000000ull

static int connected(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(path);
  if (length >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, length);
  int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return -1;
  if (connect(file, (struct sockaddr *)&address, sizeof address) == 0) return file;
  close(file);
  return -1;
}

static bool send_hello(int file, int ring) {
  struct wire_hello hello = {
      .magic = WIRE_MAGIC, .version = WIRE_VERSION, .size = sizeof hello, .process = (uint32_t)getpid(),
      .functions = FUNCTION_COUNT, .list = FUNCTION_LIST, .ring_bytes = WIRE_RING_BYTES,
  };
  ssize_t length = readlink("/proc/self/exe", hello.program, sizeof hello.program - 1);
  if (length < 0) hello.program[0] = 0;
  struct iovec part = {&hello, sizeof hello};
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                           .msg_controllen = sizeof control};
  control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                                  .cmsg_len = CMSG_LEN(sizeof(int))};
  memcpy(CMSG_DATA(&control.head), &ring, sizeof ring);
  return sendmsg(file, &message, MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

static bool take_welcome(int file, uint32_t *options) {
  struct wire_welcome welcome;
  uint64_t deadline = now() + ANSWER_NANOSECONDS;
  for (uint64_t time = now(); time < deadline; time = now()) {
    struct pollfd wanted = {file, POLLIN, 0};
    int ready = poll(&wanted, 1, (int)((deadline - time) / 1000000) + 1); /* signals may end it before its time */
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t got = recv(file, &welcome, sizeof welcome, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got != (ssize_t)sizeof welcome || welcome.magic != WIRE_MAGIC || welcome.version != WIRE_VERSION ||
        welcome.size != sizeof welcome || !welcome.accepted)
      return false;
    *options = welcome.options;
    return true;
  }
  return false;
}

bool greet(const char *path, int ring, uint32_t *options) {
  int file = connected(path);
  if (file < 0) return false;
  bool done = send_hello(file, ring) && take_welcome(file, options);
  close(file);
  return done;
}
