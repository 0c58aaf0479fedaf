/* What the preloaded library writes and its readers read: the ring in shared memory, the greeting on the socket, every
 * record. The only definition of these: the library is compiled with it, and so is the cffi extension by which Python
 * reads records, whose declarations this file is too (after the lines that begin with `#if`, `#include`, `#endif`).
 *
 * Little-endian, natural alignment, no pointers that a reader would follow. A record is a structure below, with what
 * belongs to it behind it ("then: ..."), each part padded with zeros to a multiple of 8 bytes, as the record is.
 * Addresses and handles are the program's own 64 bits: names, good for telling things apart. A handle means what the
 * last record that announced it says; one that nothing has announced is unknown. docs/records.md says more. */
#ifndef TESSERA_WIRE_H
#define TESSERA_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC 0x41525345 /* "ESRA" */
#define WIRE_VERSION 1
#define WIRE_RING_BYTES 67108864      /* of records in the ring, a power of two */
#define WIRE_HEAD_BYTES 4096          /* before them */
#define WIRE_LARGEST_RECORD 8388608
#define WIRE_INLINE_BYTES 4096        /* contents up to this size stand in the record itself */
#define WIRE_PIECE_BYTES 262144       /* the most bytes of contents in a record of WIRE_DATA */
#define WIRE_CONTENT_BYTES 32

/* The first page of the shared memory. Positions count bytes from the beginning of the session; the byte at position p
 * stands at p modulo WIRE_RING_BYTES behind the first page. */
struct wire_ring {
  uint32_t magic, version;
  uint32_t functions;  /* how many the list of driver functions has, */
  uint32_t list;       /* and a digest of their names: records name functions by their place in it */
  uint64_t bytes;      /* WIRE_RING_BYTES */
  uint32_t process;    /* of the program */
  uint32_t options;    /* enum wire_option */
  uint64_t unused[4];
  uint64_t head;       /* written so far; only the program writes it */
  uint64_t unused_1[7];
  uint64_t tail;       /* read so far; only the reader writes it */
  uint64_t unused_2[7];
  uint64_t lost;       /* records that found no room, ever; only the program writes it */
  uint64_t unused_3[7];
};

enum wire_option {
  WIRE_PAYLOADS = 1 /* all contents that come from host memory, for replay */
};

/* The greeting: the library sends it with the ring's descriptor, and the other side answers. */
struct wire_hello {
  uint32_t magic, version;
  uint32_t size;     /* of this structure */
  uint32_t process;
  uint32_t functions, list;
  uint64_t ring_bytes;
  char program[256]; /* its file, as far as it fits */
};

struct wire_welcome {
  uint32_t magic, version;
  uint32_t size;
  uint32_t accepted; /* 0: the library goes on without */
  uint32_t options;
  uint32_t client;   /* a number that this reader has given to nobody else */
};

/* What the relay puts before the records of a message. */
struct wire_batch {
  uint32_t magic, version;
  uint32_t client, process;
  uint64_t number;      /* of the client's messages, from 0 */
  uint64_t position;    /* of the first record's first byte */
  uint64_t bytes;       /* of records */
  uint64_t lost;        /* as the ring says it */
  uint64_t ticks;       /* a moment, in the ticks of records, */
  uint64_t nanoseconds; /* and the same by CLOCK_REALTIME */
  uint32_t last;        /* 1: the program has ended, and all that it wrote has been sent */
  int32_t trouble;      /* enum wire_trouble */
};

enum wire_trouble {
  WIRE_NO_TROUBLE = 0,
  WIRE_MALFORMED_RING = 1 /* what the program wrote there is no records; nothing more comes of it */
};

enum wire_kind {
  /* of the session */
  WIRE_DRIVER = 1,   /* the first record: which driver */
  WIRE_EPOCH = 2,    /* records were lost before this one */
  WIRE_DATA = 3,     /* a piece of contents */
  WIRE_OUTCOME = 4,  /* what came of an earlier record */
  WIRE_CALL = 5,     /* a call of which only the name is recorded */
  WIRE_DOOR = 6,     /* how the program got at a function, the first time */
  /* things come and go */
  WIRE_DEVICE = 16,
  WIRE_CONTEXT = 17,
  WIRE_MODULE = 18,
  WIRE_FUNCTION = 19,
  WIRE_STREAM = 20,
  WIRE_EVENT = 21,
  WIRE_MEMORY = 22,
  WIRE_RESERVATION = 23,
  WIRE_PHYSICAL = 24,
  WIRE_ARRAY = 25,
  WIRE_GRAPH_EXEC = 26,
  WIRE_GRAPH_NODE = 27, /* new parameters of one node of an executable graph */
  WIRE_LINK_INPUT = 28,
  WIRE_LINK_OUTPUT = 29,
  WIRE_ACCESS = 30,
  WIRE_EXPORT = 31,
  WIRE_END = 32,        /* of one of these */
  /* what streams do */
  WIRE_LAUNCH = 48,
  WIRE_COPY = 49,
  WIRE_SET = 50,
  WIRE_GRAPH_LAUNCH = 51,
  WIRE_EVENT_RECORD = 52,
  WIRE_EVENT_WAIT = 53,
  WIRE_HOST_FUNCTION = 54,
  WIRE_MEMORY_OPERATIONS = 55,
  WIRE_OTHER_WORK = 56, /* work of which only the function is recorded: anything may have been written */
  /* what the program's threads wait for, and captures */
  WIRE_SYNCHRONIZE = 64,
  WIRE_CAPTURE_BEGIN = 65,
  WIRE_CAPTURE_END = 66
};

enum wire_flag {
  WIRE_CAPTURED = 1, /* the stream is being captured: this is a node of a graph, nothing was done. The wait by which a
                        stream joins a capture does not have it: one for an event whose last record has it */
  WIRE_RESTATED = 2  /* said before, and again because records were lost */
};

struct wire_head {
  uint32_t size;     /* of the whole record */
  uint16_t kind;     /* enum wire_kind */
  uint16_t flags;    /* enum wire_flag */
  uint64_t sequence; /* one more than the record's before it; records that were lost have numbers too */
  uint64_t ticks;    /* of the processor's time-stamp counter */
  uint32_t thread;   /* as the system numbers it */
  uint32_t function; /* which was called: its place in the list of driver functions */
};

/* Where work is queued. `stream` is as the program gave it, or 1 for the legacy and 2 for the per-thread default stream
 * if it gave 0; `context` is the stream's, or for default streams the thread's current one. Without a stream, 0, it is
 * for all of the context. */
struct wire_place {
  uint64_t stream, context;
};

struct wire_driver {
  struct wire_head head;
  uint32_t version; /* as cuDriverGetVersion says */
  uint32_t path_bytes;
}; /* then: path */

struct wire_epoch {
  struct wire_head head;
  uint32_t epoch; /* from 1; the session begins in epoch 0 */
  uint32_t unused;
  uint64_t lost;  /* records between the one before and this one. Records that restate what there is come next */
};

struct wire_data {
  struct wire_head head;
  uint8_t content[32]; /* the hash of the whole: shim/preload/content.h */
  uint64_t total, offset;
  uint32_t bytes;
  uint32_t unused;
}; /* then: bytes */

/* A record may have two: one that the call failed, and one with contents, in any order. The first of these counts, and
 * contents count more than what the record itself said they were: they were looked at when it was sure. */
struct wire_outcome {
  struct wire_head head;
  uint64_t of;     /* sequence */
  int32_t result;  /* CUresult: not 0 if the call failed and did nothing */
  uint32_t has_content;
  uint64_t bytes;  /* of what came to host memory, or was read from there later, rows in order */
  uint8_t content[32];
};

struct wire_call {
  struct wire_head head;
};

enum wire_how { WIRE_BY_DLSYM = 1, WIRE_BY_PROC_ADDRESS = 2 };

/* `head.function` is the function; one that is called without such a record is linked to, or was found in private
 * ways. */
struct wire_door {
  struct wire_head head;
  uint32_t how;        /* enum wire_how */
  uint32_t name_bytes; /* 0; or of a function that is not in the list, so that calls of it are not seen */
}; /* then: name */

struct wire_device {
  struct wire_head head;
  int32_t ordinal;
  uint32_t capability; /* 10 * major + minor */
  uint64_t memory;
  uint8_t uuid[16];
  uint32_t processors;
  uint32_t name_bytes;
}; /* then: name */

struct wire_context {
  struct wire_head head;
  uint64_t handle;
  int32_t device;
  uint32_t primary;
};

enum wire_image { WIRE_IMAGE_UNKNOWN = 0, WIRE_IMAGE_PTX = 1, WIRE_IMAGE_CUBIN = 2, WIRE_IMAGE_FATBIN = 3 };

struct wire_module {
  struct wire_head head;
  uint64_t handle;
  uint64_t context;    /* 0 for a library, which belongs to all */
  uint32_t library;    /* 1: a CUlibrary */
  uint32_t image;      /* enum wire_image */
  uint64_t bytes;      /* 0: its image could not be read */
  uint8_t content[32];
  uint64_t of;         /* the library that this is in one context, and ends with; else 0 */
  uint32_t path_bytes; /* of the file it was loaded from, if it was */
  uint32_t unused;
}; /* then: path */

struct wire_parameter {
  uint32_t offset, bytes;
};

struct wire_function {
  struct wire_head head;
  uint64_t handle;
  uint64_t module;         /* CUmodule, or CUlibrary of a CUkernel; 0: unknown */
  uint32_t kernel;         /* 1: a CUkernel */
  uint32_t parameters;     /* how many */
  uint32_t known;          /* 0: nobody could say what its parameters are */
  uint32_t parameter_bytes;
  uint32_t name_bytes;
  uint32_t unused;
}; /* then: struct wire_parameter for each; name */

struct wire_stream {
  struct wire_head head;
  uint64_t handle, context;
  uint32_t flags;
  int32_t priority;
};

struct wire_event {
  struct wire_head head;
  uint64_t handle, context;
  uint32_t flags;
  uint32_t imported; /* 1: another process's */
};

enum wire_memory_kind {
  WIRE_ALLOCATED = 1, /* cuMemAlloc */
  WIRE_PITCHED = 2,
  WIRE_MANAGED = 3,
  WIRE_POOLED = 4,    /* in stream order */
  WIRE_HOST = 5,      /* pinned: cuMemAllocHost, cuMemHostAlloc */
  WIRE_REGISTERED = 6,
  WIRE_MAPPED = 7,    /* a part of a reservation, with physical memory */
  WIRE_IMPORTED = 8,  /* another process's */
  WIRE_VARIABLE = 9   /* of a module */
};

struct wire_memory {
  struct wire_head head;
  uint64_t address, bytes;
  uint64_t context;        /* with which it ends; 0 for memory that belongs to no context */
  uint64_t stream;         /* of WIRE_POOLED */
  uint64_t owner;          /* pool, module or library, physical memory: whichever it has */
  uint64_t offset;         /* in the physical memory */
  uint64_t device_address; /* of host memory, where it is another; else 0 */
  uint32_t kind;           /* enum wire_memory_kind */
  uint32_t flags;          /* as given to the function */
  uint64_t pitch;
  uint64_t width, height;  /* of WIRE_PITCHED */
  int32_t device;          /* -1: the host's, or unknown */
  uint32_t name_bytes;     /* of WIRE_VARIABLE */
}; /* then: name */

struct wire_reservation {
  struct wire_head head;
  uint64_t address, bytes;
};

struct wire_physical {
  struct wire_head head;
  uint64_t handle, bytes; /* bytes: 0 if unknown, as of what another process has made */
  uint32_t type;          /* CUmemAllocationType */
  uint32_t location_type; /* CUmemLocationType */
  int32_t location;
  uint32_t shareable;     /* CUmemAllocationHandleType */
  uint32_t imported;
  uint32_t unused;
};

struct wire_array {
  struct wire_head head;
  uint64_t handle, context;
  uint64_t width, height, depth;
  uint32_t format, channels;
  uint32_t flags;
  uint32_t element_bytes; /* 0 for formats that have no elements of one size */
  uint64_t of;            /* the mipmapped array whose level it is, and ends with; else 0 */
  uint32_t levels;        /* of a mipmapped array; else 0 */
  uint32_t level;
};

struct wire_link_input {
  struct wire_head head;
  uint64_t state;
  uint32_t type; /* CUjitInputType */
  uint32_t name_bytes;
  uint64_t bytes;
  uint8_t content[32];
}; /* then: name */

struct wire_link_output {
  struct wire_head head;
  uint64_t state;
  uint64_t bytes;
  uint8_t content[32];
};

/* The right of a place to the memory that is mapped in a range just now. */
struct wire_access {
  struct wire_head head;
  uint64_t address, bytes;
  uint32_t location_type;
  int32_t location;
  uint32_t flags; /* CUmemAccess_flags */
  uint32_t unused;
};

struct wire_export {
  struct wire_head head;
  uint64_t address; /* or handle, of memory or an event, that other processes may use from now on */
  uint32_t kind;    /* the enum wire_kind of what it is */
  uint32_t unused;
};

/* Before the call that ends something. If that fails, a record of WIRE_OUTCOME says so, and what has not ended is
 * announced once more. With a module its functions and variables end, with a library also its modules, with a context
 * all that belongs to it, with an executable graph its new parameters, with a range all that is mapped in it and the
 * rights to it, with each thing that others may use its export. WIRE_CAPTURED: nothing ends, it is a node of a graph. */
struct wire_end {
  struct wire_head head;
  uint64_t handle; /* or address; of a link its state */
  uint32_t kind;   /* the enum wire_kind of what ends; WIRE_LINK_INPUT for a link with all that it has */
  uint32_t memory; /* enum wire_memory_kind, if it is memory and the function says so; else 0 */
  uint64_t stream; /* in whose order, for cuMemFreeAsync */
  uint64_t bytes;  /* of WIRE_MAPPED and reservations */
};

/* What is the same in a record and in a node of a graph. */

enum wire_launch_flag {
  WIRE_COOPERATIVE = 1,
  WIRE_PACKED = 2,            /* the program gave the parameters in one piece */
  WIRE_PARAMETERS_UNKNOWN = 4 /* they are not there */
};

struct wire_launch_body {
  uint64_t function;
  uint32_t grid[3], block[3];
  uint32_t shared; /* dynamic, in bytes */
  uint32_t flags;  /* enum wire_launch_flag */
  uint32_t parameter_bytes;
  uint32_t attributes;
}; /* then: the parameters where the function has them; struct wire_attribute for each attribute */

struct wire_attribute {
  uint32_t id; /* CUlaunchAttributeID */
  uint32_t unused;
  uint8_t value[64];
};

enum wire_side_kind { WIRE_SIDE_HOST = 1, WIRE_SIDE_DEVICE = 2, WIRE_SIDE_ARRAY = 3, WIRE_SIDE_MANAGED = 4 };

struct wire_side {
  uint64_t address; /* or the array */
  uint64_t context; /* of copies between contexts; else 0 */
  uint64_t x, y, z; /* where in it: bytes, rows, slices. Not yet in the address */
  uint64_t pitch;   /* bytes from row to row; 0 if there is one row */
  uint64_t height;  /* rows from slice to slice; 0 if there is one slice */
  uint32_t kind;    /* enum wire_side_kind */
  uint32_t level;   /* of a mipmapped array */
};

enum wire_copy_flag {
  WIRE_SYNCHRONOUS = 1, /* the function returned when the bytes had arrived, or could do so */
  WIRE_PINNED = 2       /* host memory which the device reads or writes when the copy is done, not at the call: if there
                           is content all the same, it is what was there at the call */
};

enum wire_content_kind {
  WIRE_NO_CONTENT = 0,     /* not looked at, or of no host memory */
  WIRE_INLINE_CONTENT = 1, /* the bytes stand in the record, and their hash */
  WIRE_HASHED_CONTENT = 2, /* the hash; with WIRE_PAYLOADS the bytes came before in records of WIRE_DATA */
  WIRE_LATER_CONTENT = 3   /* the hash comes in a record of WIRE_OUTCOME, with WIRE_PAYLOADS the bytes before that */
};

struct wire_copy_body {
  uint64_t width, height, depth; /* bytes, rows, slices */
  struct wire_side to, from;
  uint32_t flags;                /* enum wire_copy_flag */
  uint32_t content_kind;         /* enum wire_content_kind: of the bytes in order */
  uint64_t inline_bytes;
  uint8_t content[32];
}; /* then: inline bytes */

struct wire_set_body {
  uint64_t address, context;
  uint64_t width, height; /* elements, rows */
  uint64_t pitch;
  uint32_t element_bytes;
  uint32_t value;
};

struct wire_event_body {
  uint64_t event;
  uint32_t flags;
  uint32_t unused;
};

struct wire_host_function_body {
  uint64_t function, data;
  uint32_t callback; /* 1: cuStreamAddCallback */
  uint32_t unused;
};

struct wire_memory_operation {
  uint32_t type; /* CUstreamBatchMemOpType */
  uint32_t flags;
  uint64_t address, value;
};

struct wire_memory_operations_body {
  uint32_t count;
  uint32_t flags;
}; /* then: struct wire_memory_operation for each */

/* What streams do. */

struct wire_launch {
  struct wire_head head;
  struct wire_place place;
  struct wire_launch_body body;
};

struct wire_copy {
  struct wire_head head;
  struct wire_place place;
  struct wire_copy_body body;
};

struct wire_set {
  struct wire_head head;
  struct wire_place place;
  struct wire_set_body body;
};

struct wire_graph_launch {
  struct wire_head head;
  struct wire_place place;
  uint64_t exec;
};

struct wire_event_record {
  struct wire_head head;
  struct wire_place place;
  struct wire_event_body body;
};

struct wire_event_wait {
  struct wire_head head;
  struct wire_place place;
  struct wire_event_body body;
};

struct wire_host_function {
  struct wire_head head;
  struct wire_place place;
  struct wire_host_function_body body;
};

struct wire_memory_operations {
  struct wire_head head;
  struct wire_place place;
  struct wire_memory_operations_body body;
};

struct wire_other_work {
  struct wire_head head;
  struct wire_place place;
};

enum wire_waited { WIRE_WAITED_CONTEXT = 1, WIRE_WAITED_STREAM = 2, WIRE_WAITED_EVENT = 3 };

/* Before the wait; a record of WIRE_OUTCOME says that it is over. With `query` nothing was waited for: the program has
 * asked, and heard that all is done. */
struct wire_synchronize {
  struct wire_head head;
  struct wire_place place; /* of a context or a stream */
  uint64_t event;
  uint32_t what;           /* enum wire_waited */
  uint32_t query;
};

struct wire_capture {
  struct wire_head head;
  struct wire_place place;
  uint64_t graph; /* at the end */
  uint32_t mode;  /* at the beginning */
  uint32_t unused;
};

/* Executable graphs. */

enum wire_node_kind {
  WIRE_NODE_OTHER = 0, /* what it does is not recorded */
  WIRE_NODE_LAUNCH = 1,
  WIRE_NODE_COPY = 2,
  WIRE_NODE_SET = 3,
  WIRE_NODE_HOST_FUNCTION = 4,
  WIRE_NODE_EMPTY = 5,
  WIRE_NODE_EVENT_RECORD = 6,
  WIRE_NODE_EVENT_WAIT = 7,
  WIRE_NODE_CHILD = 8,  /* its nodes come next, with it as parent */
  WIRE_NODE_ALLOCATE = 9,
  WIRE_NODE_FREE = 10,
  WIRE_NODE_MEMORY_OPERATIONS = 11
};

struct wire_node {
  uint32_t size;    /* with all that is its own */
  uint16_t kind;    /* enum wire_node_kind */
  uint16_t enabled;
  uint64_t node;
  uint64_t parent;  /* of the nodes of a child graph; else 0 */
  uint64_t context; /* where it says so; else 0: the one in which the graph was made executable */
}; /* then: the body that its kind has, with what belongs to it; struct wire_allocation of WIRE_NODE_ALLOCATE, FREE */

struct wire_allocation {
  uint64_t address, bytes; /* bytes: 0 when it is freed */
  int32_t device;
  uint32_t unused;
};

struct wire_edge {
  uint64_t from, to;
};

/* One that comes again for the same graph replaces all that was said of it. */
struct wire_graph_exec {
  struct wire_head head;
  uint64_t exec, graph, context;
  uint32_t nodes, edges;
  uint32_t whole; /* 0: it could not be read, or is too large: there are no nodes */
  uint32_t flags;
}; /* then: struct wire_node for each; struct wire_edge for each */

struct wire_graph_node {
  struct wire_head head;
  uint64_t exec;
}; /* then: one struct wire_node */

#endif
