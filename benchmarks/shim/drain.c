/* The least that can read what the shim writes: takes one program that connects, copies its records out of the ring as
 * long as it lives, looks at the head of each, and counts.
 *
 *     drain SOCKET
 *
 * Prints a line when it listens, and at the end one JSON object. Between looks at the ring it sleeps, for times that
 * grow while nothing comes. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

enum { MOST = 1 << 20, SECONDS = 60, SHORTEST = 50000, LONGEST = 2000000 };

static struct { unsigned long long records, launches, bytes, gaps, sequence; } found;
static unsigned char taken[MOST];

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "drain: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void wait_for(int descriptor, const char *what) {
  struct pollfd one = {.fd = descriptor, .events = POLLIN};
  if (poll(&one, 1, SECONDS * 1000) != 1) fail(what);
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (strlen(path) >= sizeof address.sun_path) fail(path);
  strcpy(address.sun_path, path);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1)) fail(path);
  return listener;
}

/* The ring that comes with the greeting, which is answered. */
static struct wire_ring *greet(int peer) {
  struct wire_hello hello = {0};
  union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
  struct iovec part = {&hello, sizeof hello};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                           .msg_controllen = sizeof control};
  wait_for(peer, "no greeting");
  if (recvmsg(peer, &message, MSG_CMSG_CLOEXEC) != sizeof hello || hello.magic != WIRE_MAGIC ||
      hello.version != WIRE_VERSION || hello.ring_bytes != WIRE_RING_BYTES || !CMSG_FIRSTHDR(&message))
    fail("another greeting");
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  struct wire_ring *ring = mmap(NULL, WIRE_HEAD_BYTES + WIRE_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                                descriptor, 0);
  const struct wire_welcome welcome = {WIRE_MAGIC, WIRE_VERSION, sizeof welcome, 1, 0, 1};
  if (ring == MAP_FAILED || send(peer, &welcome, sizeof welcome, MSG_NOSIGNAL) != sizeof welcome) fail("no ring");
  close(descriptor);
  return ring;
}

/* Bytes of the whole records among those taken. */
static size_t look(size_t bytes) {
  size_t at = 0;
  while (bytes - at >= sizeof(struct wire_head)) {
    struct wire_head head;
    memcpy(&head, taken + at, sizeof head);
    if (head.size < sizeof head || head.size % 8 || head.size > MOST) fail("no record");
    if (head.size > bytes - at) break;
    found.gaps += found.records && head.sequence != found.sequence + 1;
    found.sequence = head.sequence;
    found.records++;
    found.launches += head.kind == WIRE_LAUNCH;
    at += head.size;
  }
  found.bytes += at;
  return at;
}

/* False when there is nothing. */
static bool take(struct wire_ring *ring) {
  const unsigned char *data = (const unsigned char *)ring + WIRE_HEAD_BYTES;
  const uint64_t tail = ring->tail, there = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - tail;
  const size_t bytes = there < MOST ? there : MOST, at = tail % WIRE_RING_BYTES;
  const size_t first = bytes < WIRE_RING_BYTES - at ? bytes : WIRE_RING_BYTES - at;
  memcpy(taken, data + at, first);
  memcpy(taken + first, data, bytes - first);
  const size_t whole = look(bytes);
  __atomic_store_n(&ring->tail, tail + whole, __ATOMIC_RELEASE);
  return whole > 0;
}

static bool ended(int process) {
  struct pollfd one = {.fd = process, .events = POLLIN};
  return poll(&one, 1, 0) == 1;
}

static void drain(struct wire_ring *ring, int process) {
  struct timespec pause = {0, SHORTEST};
  for (;;) {
    if (take(ring)) {
      pause.tv_nsec = SHORTEST;
    } else {
      if (ended(process)) {
        while (take(ring)) {}
        return;
      }
      if (pause.tv_nsec < LONGEST) pause.tv_nsec *= 2;
    }
    nanosleep(&pause, NULL); /* also after records: a relay sends them before it looks again */
  }
}

int main(int count, char **words) {
  if (count != 2) return 2;
  const int listener = listen_at(words[1]);
  struct ucred who;
  socklen_t length = sizeof who;
  printf("listening\n");
  fflush(stdout);
  wait_for(listener, "nobody came");
  const int peer = accept(listener, NULL, NULL);
  if (peer < 0 || getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &length)) fail("nobody came");
  const int process = (int)syscall(SYS_pidfd_open, who.pid, 0);
  if (process < 0) fail("no such process");
  struct wire_ring *ring = greet(peer);
  drain(ring, process);
  printf("{\"records\": %llu, \"launches\": %llu, \"bytes\": %llu, \"gaps\": %llu, \"lost\": %llu}\n", found.records,
         found.launches, found.bytes, found.gaps, (unsigned long long)ring->lost);
  return 0;
}
