/* Calls that copy: records of them, and what was copied from or to host memory.
 *
 *   struct copies copies;
 *   copy_begin(&copies, NUMBER_cuMemcpyDtoDAsync_v2, IN_STREAM(stream, false), &params);
 *   return copies_end(&copies, real.cuMemcpyDtoDAsync_v2(...));
 */
#ifndef TESSERA_COPYING_H
#define TESSERA_COPYING_H

#include "copy.h"
#include "rows.h"
#include "work.h"

/* How a call goes on. */
struct copy_way {
  CUstream stream;
  bool per_thread; /* stream 0 is the thread's own */
  bool async;
  bool between;    /* contexts: the call may wait for work of either */
};

#define AT_ONCE(per_thread) ((struct copy_way){NULL, per_thread, false, false})
#define IN_STREAM(stream, per_thread) ((struct copy_way){stream, per_thread, true, false})
#define AT_ONCE_BETWEEN(per_thread) ((struct copy_way){NULL, per_thread, false, true})
#define IN_STREAM_BETWEEN(stream, per_thread) ((struct copy_way){stream, per_thread, true, true})

/* How the bytes that host memory gives or gets are told. */
enum telling {
  TELL_NOTHING = 0,
  TELL_AFTER,     /* the call has returned: they are there, or still there */
  TELL_IN_STREAM, /* in the stream's order, by a host function beside the copy */
  TELL_SOON       /* when the call has returned, if all is done then; else in the stream's order */
};

struct copy {
  struct wire_copy_body body;
  struct sides sides;
  CUmemcpySrcAccessOrder order; /* of a copy of a batch; else 0 */
  bool synchronous;             /* the call returns when the host's part is done */
  bool waits;                   /* it may have to wait for that */
  enum telling source, target;
  uint64_t sequence;
  unsigned char inline_bytes[WIRE_INLINE_BYTES];
};

struct copies {
  struct work work;
  struct copy *list;
  size_t count;   /* 0: nobody knows what they are */
  size_t room;    /* of a list of its own, in bytes */
  struct copy one;
};

/* Records, up to the call of the driver. */
void copy_begin(struct copies *copies, unsigned number, struct copy_way way, const CUDA_MEMCPY3D_PEER *params);

/* For batches: a list of `count`, all zeros, in which body, sides and order are to be set; NULL without memory. */
struct copy *copies_list(struct copies *copies, size_t count);
void copies_forget(struct copies *copies); /* the list */
void copies_begin(struct copies *copies, unsigned number, struct copy_way way);

/* Nobody knows what they are: a record of WIRE_OTHER_WORK. */
void copies_unknown(struct copies *copies, unsigned number, struct copy_way way);

CUresult copies_end(struct copies *copies, CUresult result);

#endif
