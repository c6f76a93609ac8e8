/* Tributary: collectives that are reduced in the network.
 *
 * Every rank sends its tensor once to a tree of aggregators, and gets the result once. If no aggregator is available,
 * or an aggregator dies in mid-operation, the same call goes on between the ranks, by a ring or a tree of ranks.
 *
 * Rules; where these rules say nothing, NCCL's rules hold:
 *   - Every rank of a communicator makes the same collective calls in the same order, with the same count, dtype, op
 *     and root. If the ranks differ, every rank gets TRIBUTARY_ERROR_MISMATCH, and tributary_last_error names two ranks
 *     and their calls.
 *   - Calls are asynchronous: they queue an operation and return; the buffers belong to the library until the request
 *     is done. With request == NULL a call blocks until the operation ends, or fails after the communicator's time-out.
 *   - In place: send == recv (reduce_scatter: recv == send + rank * recvcount; all_gather: send == recv + rank *
 *     sendcount; gather and scatter in the same way at the root). Any other overlap gives TRIBUTARY_ERROR_BAD_ARGUMENT.
 *   - Counts are elements, not bytes; 0 is allowed. A buffer may be NULL only if it has no element.
 *   - Buffers lie in host memory or in the memory of CUDA GPUs (device pointers). Each rank may choose this for each of
 *     its two buffers. Calls have no stream argument: write a GPU's input before the call (synchronize with the stream
 *     that writes it), and read its result, on any stream, after the request is done.
 *   - Threads: different communicators are independent. Calls on one communicator may come from any thread, but the
 *     caller fixes their order. tributary_test and tributary_wait of different requests may run at the same time.
 *   - The library checks handles (comm, request, mem): a handle that was freed, or never was a handle, gives
 *     TRIBUTARY_ERROR_BAD_ARGUMENT.
 *   - After fork() the child may make communicators of its own. It cannot use communicators or ids that its parent has
 *     made.
 *   - The library prints nothing except the log on standard error (TRIBUTARY_LOG). It ends the process only if one of
 *     its own assertions fails.
 */
#ifndef TRIBUTARY_TRIBUTARY_H_
#define TRIBUTARY_TRIBUTARY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRIBUTARY_API __attribute__((visibility("default")))
#else
#define TRIBUTARY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TRIBUTARY_VERSION_MAJOR 0
#define TRIBUTARY_VERSION_MINOR 1
#define TRIBUTARY_VERSION_PATCH 0

typedef struct tributary_comm tributary_comm;
typedef struct tributary_request tributary_request;
typedef struct tributary_mem tributary_mem;

#define TRIBUTARY_UNIQUE_ID_BYTES 128
typedef struct tributary_unique_id {
  unsigned char bytes[TRIBUTARY_UNIQUE_ID_BYTES];
} tributary_unique_id;

/* In C++, every int is a valid value of these types, so that the library may read and refuse a value that it does not
 * know. */
#ifdef __cplusplus
#define TRIBUTARY_ENUM_BASE : int
#else
#define TRIBUTARY_ENUM_BASE
#endif

/* The numbers are stable: only append new ones. */
typedef enum tributary_status TRIBUTARY_ENUM_BASE {
  TRIBUTARY_OK = 0,
  TRIBUTARY_ERROR_BAD_ARGUMENT = -1, /* the call was wrong and had no effect */
  TRIBUTARY_ERROR_BAD_CONFIG = -2,   /* a configuration file or an environment variable is wrong */
  TRIBUTARY_ERROR_TIMED_OUT = -3,    /* a rank did not take part in time, or tributary_wait's own time-out passed */
  TRIBUTARY_ERROR_PEER_GONE = -4,    /* a rank died or was cut off */
  TRIBUTARY_ERROR_MISMATCH = -5,     /* ranks called different operations */
  TRIBUTARY_ERROR_EXHAUSTED = -6,    /* no memory, or nothing of a limited resource, is left */
  TRIBUTARY_ERROR_UNSUPPORTED = -7,  /* valid, but this build or this host cannot do it */
  TRIBUTARY_ERROR_UNREACHABLE = -8,  /* rank 0's address did not answer; or TRIBUTARY_PATH=in-network, but no tree */
  TRIBUTARY_ERROR_DENIED = -9,       /* the unique id or the token is wrong */
  TRIBUTARY_ERROR_ABORTED = -10,     /* this rank or another rank aborted the communicator */
  TRIBUTARY_ERROR_SYSTEM = -11,      /* a system call failed */
  TRIBUTARY_ERROR_INTERNAL = -12
} tributary_status;

typedef enum tributary_dtype TRIBUTARY_ENUM_BASE {
  TRIBUTARY_INT8 = 0,
  TRIBUTARY_UINT8 = 1,
  TRIBUTARY_INT32 = 2,
  TRIBUTARY_UINT32 = 3,
  TRIBUTARY_INT64 = 4,
  TRIBUTARY_UINT64 = 5,
  TRIBUTARY_FLOAT16 = 6,
  TRIBUTARY_BFLOAT16 = 7,
  TRIBUTARY_FLOAT32 = 8,
  TRIBUTARY_FLOAT64 = 9,
  TRIBUTARY_FLOAT8_E4M3 = 10,
  TRIBUTARY_FLOAT8_E5M2 = 11,
  TRIBUTARY_INT16 = 12,
  TRIBUTARY_UINT16 = 13
} tributary_dtype;

/* Each reduction has the same rules on every path: in the network, between the ranks, on one host, and after a
 * failure.
 *
 * op     too large for the type                     a NaN among the inputs   zeros
 * SUM    integers wrap; floats become infinite (1)  NaN                      -0 only if all are -0
 * PROD   integers wrap; floats become infinite (1)  NaN                      the product's sign
 * MIN    cannot happen                              NaN                      -0 is below +0
 * MAX    cannot happen                              NaN                      +0 is above -0
 * AVG    integers (2); floats never (3)             NaN                      -0 only if all are -0
 *
 * BAND, BOR and BXOR combine the bits of integers. LAND, LOR and LXOR combine their truth values: 0 is false, all other
 * values are true, and results are 0 or 1. Floats have none of these six: TRIBUTARY_ERROR_BAD_ARGUMENT. A communicator
 * of one rank copies its input, whatever the op. tributary_op_create_premul_sum makes further ops.
 *
 * (1) float8 e4m3 has no infinity and becomes NaN instead. Sums and products of 8- and 16-bit floats accumulate in
 *     float32 and are rounded to their type, to nearest even, at each point of the tree, ring or host. If the result
 *     fits but a partial sum does not, the order of the ranks in the tree decides whether the result is infinite.
 * (2) The integer sum wraps; it is then divided and truncated toward zero.
 * (3) The average of finite values is finite, and not above the largest value of the type: partial averages travel
 *     scaled by a power of two. If the values include one infinity, the average is that infinity; both infinities give
 *     NaN. Values below the smallest normal number of float32 and float64 lose up to log2(ranks) + 1 bits.
 *
 * With exact numerics sums and averages of floats are the exact ones, rounded once. Products of floats are multiplied in
 * float64, in the order of the ranks, and rounded once to their type; trees do not carry them. Each NaN is then quiet,
 * positive and without payload. */
typedef enum tributary_op TRIBUTARY_ENUM_BASE {
  TRIBUTARY_SUM = 0,
  TRIBUTARY_PROD = 1,
  TRIBUTARY_MIN = 2,
  TRIBUTARY_MAX = 3,
  TRIBUTARY_AVG = 4,
  TRIBUTARY_BAND = 5,
  TRIBUTARY_BOR = 6,
  TRIBUTARY_BXOR = 7,
  TRIBUTARY_LAND = 8,
  TRIBUTARY_LOR = 9,
  TRIBUTARY_LXOR = 10,
  /* Numerics of one call, in place of the communicator's: TRIBUTARY_SUM | TRIBUTARY_OP_EXACT. All ranks need the same;
   * if they differ, every rank gets an error, at the latest when the time-out is over. In a communicator with fast
   * numerics the trees have not reserved memory for exact sums, so these are slower in trees of several levels than
   * with tributary_config.numerics. */
  TRIBUTARY_OP_FAST = 256,
  TRIBUTARY_OP_EXACT = 512
} tributary_op;

typedef enum tributary_mem_kind TRIBUTARY_ENUM_BASE {
  TRIBUTARY_MEM_HOST = 0,
  TRIBUTARY_MEM_CUDA = 1
} tributary_mem_kind;

typedef enum tributary_path TRIBUTARY_ENUM_BASE {
  TRIBUTARY_PATH_FALLBACK = 0,
  TRIBUTARY_PATH_IN_NETWORK = 1,
  TRIBUTARY_PATH_LOCAL = 2 /* shared memory: all ranks are on one host */
} tributary_path;
#undef TRIBUTARY_ENUM_BASE

/* Explicit settings of one communicator. They override the environment, which overrides the configuration file. Start
 * from TRIBUTARY_CONFIG_INITIALIZER; a member that is NULL or 0 is not set. */
typedef struct tributary_config {
  size_t struct_bytes;        /* sizeof(tributary_config): lets the struct grow */
  const char* manager;        /* TRIBUTARY_MANAGER: "http://host:7470" */
  const char* path;           /* TRIBUTARY_PATH: "auto", "in-network", "fallback" */
  const char* transport;      /* TRIBUTARY_TRANSPORT: "tcp" */
  const char* interface_name; /* TRIBUTARY_IFNAME: other ranks use its address; only the first of a list */
  const char* host_id;        /* TRIBUTARY_HOST_ID: this host's name in the topology */
  const char* token_file;     /* TRIBUTARY_TOKEN_FILE: the manager's job token */
  const char* job;            /* TRIBUTARY_JOB: the manager lists the group under this name */
  /* TRIBUTARY_LANES: 1 to 16; 0: not set here. If no source sets it ("auto"), the manager plans by the links' rates as
   * many lanes as save time, or one lane if it knows no rates. */
  int lanes;
  int64_t timeout_ms; /* TRIBUTARY_TIMEOUT (there in seconds): time until a lost or hung rank is an error */
  const char* tuning; /* TRIBUTARY_TUNING: "auto", "model", "off" or a tuning table's path; rank 0's setting counts */
  /* While tributary_comm_init_rank_config waits for the other ranks, it calls this about ten times a second with
   * still_wanted_context, on its caller's thread. If the function returns 0, the wait ends: the call returns
   * TRIBUTARY_ERROR_ABORTED, and no part of the communicator is left. NULL: the call waits until the time-out. */
  int (*still_wanted)(void* still_wanted_context);
  void* still_wanted_context;
  /* TRIBUTARY_REQUIRE: "none" or "in-network". With "in-network", tributary_comm_init_rank waits for trees within the
   * time-out, and returns TRIBUTARY_ERROR_UNREACHABLE with the reason if it gets none. If the communicator loses its
   * trees later, it ends on every rank. */
  const char* require;
  /* TRIBUTARY_NUMERICS: "fast", "wide" or "exact". With "exact", sums and averages of floats are the exact ones,
   * rounded once: their bits depend on no path, tree or order. Products of floats depend only on the order of the ranks.
   * "wide" asks for less, and gets the same. All ranks need the same numerics. See tributary_op for a single call. */
  const char* numerics;
  const char* local; /* TRIBUTARY_LOCAL: "auto" or "off" */
  /* TRIBUTARY_CHECK_VALUES: "off", "count" or "nan-fails". With "count", each collective counts NaN, infinities and
   * subnormal numbers in this rank's input and result: see tributary_request_info. With "nan-fails", a NaN in this
   * rank's input also ends the communicator before any byte of this call leaves the rank: every rank gets
   * TRIBUTARY_ERROR_ABORTED, and tributary_last_error names this rank, the call and the element. Set it on all ranks:
   * a rank looks only at its own values. */
  const char* check_values;
  /* Work of the caller that must go on while its thread waits in a blocking call or in tributary_wait, such as the
   * progress of another library: the waiting thread calls it with while_waiting_context and the nanoseconds since the
   * wait began, first with 0, and again each time when the nanoseconds that it returned are over. It must return soon,
   * because meanwhile the communicator may stand still, and it must not call this library. */
  int64_t (*while_waiting)(void* while_waiting_context, int64_t waited_ns);
  void* while_waiting_context;
} tributary_config;
/* clang-format off */
#define TRIBUTARY_CONFIG_INITIALIZER                                                                                   \
  {sizeof(tributary_config), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
   NULL, NULL}
/* clang-format on */

typedef struct tributary_info {
  size_t struct_bytes; /* set by the caller to sizeof(tributary_info) */
  tributary_path path; /* in-network: trees are ready; the tuning says which operations use them, and the bytes
                        * below say whether any operations did */
  uint32_t epoch;      /* generation of the trees; 0 before the first trees */
  uint32_t lanes;      /* number of lanes; 0 on fallback */
  uint32_t levels;     /* number of aggregators from a rank to the root; 0 on fallback */
  uint32_t window;     /* number of segments */
  uint32_t segment_bytes;
  uint64_t operations;       /* collectives that have ended */
  uint64_t bytes_in_network; /* payload of ended collectives by path: this rank's input (all_gather: its output) */
  uint64_t bytes_fallback;
  uint64_t failovers;     /* how often trees were lost while in use */
  uint64_t returns;       /* how often the ranks moved back to trees */
  uint64_t last_pause_us; /* time from the last loss of trees to the fallback's start */
  uint64_t longest_pause_us;
  char reason[256]; /* the reason for this path, with its code: "no manager is configured; ... [no-manager]" */
  uint64_t bytes_local;
  /* Number of hosts, if the ranks of each host first reduce in its memory; `path` then runs between hosts; else 0. */
  uint32_t hosts;
  /* Collectives in shared memory (if hosts > 0, their pieces) that moved data straight from buffers to buffers: in
   * registered memory, or by cross-memory attach. */
  uint64_t direct;
  uint32_t lanes_shared; /* how many of `lanes` share memory with an aggregator of this host */
  uint32_t links;        /* open connections to other ranks, for the fallback and messages */
  uint32_t links_shared; /* how many of `links` use shared memory */
  char transport[16];    /* transport of the other lanes and links: "tcp", "udp", "verbs", "dpdk" */
  /* The reason why ranks of this host do not use cross-memory attach. Empty if they use it where it is faster, or if
   * they have made no long call yet. */
  char attach_refusal[64];
  /* The number of connections that this rank closed because they did not prove in time that they belong to the group,
   * or because too many other connections had come. */
  uint64_t strangers_turned_away;
} tributary_info;

TRIBUTARY_API const char* tributary_status_string(tributary_status status);
/* Returns a whole sentence: what is wrong, where, and what to do. With comm == NULL: this thread's last error. The text
 * is valid until this thread calls tributary_last_error again. */
TRIBUTARY_API const char* tributary_last_error(const tributary_comm* comm);
TRIBUTARY_API tributary_status tributary_version(int* major, int* minor, int* patch);

/* Makes a unique id. Call this in the process of rank 0, which then listens; send the 128 bytes to the other ranks in
 * any way. An id serves one communicator. A process keeps at most 64 ids that no communicator has taken yet; if there
 * are more, it drops the oldest id. The address belongs to the interface TRIBUTARY_IFNAME; else to the loopback, if
 * MASTER_ADDR names it; else to the first interface that is up (IPv4 before IPv6, interfaces of containers and virtual
 * machines last). If there is no such interface, the address is 127.0.0.1. */
TRIBUTARY_API tributary_status tributary_get_unique_id(tributary_unique_id* id);
/* Makes a unique id with settings of its own: the interface_name of `config` decides the address. */
TRIBUTARY_API tributary_status tributary_get_unique_id_config(tributary_unique_id* id, const tributary_config* config);
/* Gives back an id of this process that no communicator has taken, and closes its listener. Does nothing if a
 * communicator has taken the id, or if another process made it. */
TRIBUTARY_API tributary_status tributary_release_unique_id(const tributary_unique_id* id);
/* Checks, within two seconds, whether the manager answers. Returns TRIBUTARY_ERROR_UNREACHABLE if no answer comes,
 * TRIBUTARY_ERROR_UNSUPPORTED if no manager is configured or the settings forbid trees (path: fallback);
 * tributary_last_error(NULL) has the reason. No communicator needs this call: it is for callers that make no
 * communicator if it would run on the fallback. */
TRIBUTARY_API tributary_status tributary_service_check(const tributary_config* config);
/* Sets *name to the transport that a communicator would use here: the first of the list in TRIBUTARY_TRANSPORT (or in
 * the configuration file, or in `config`) that is built and works on this host. The text is a constant of the library.
 * TRIBUTARY_ERROR_UNSUPPORTED: no transport works. This call is for callers that also send messages without the
 * library. */
TRIBUTARY_API tributary_status tributary_transport_name(const tributary_config* config, const char** name);
/* Sets *supported to 1 if a communicator with these settings reduces `dtype` by `op`, else to 0: with exact numerics no
 * tree carries products of floats (TRIBUTARY_PATH=in-network), floats have no bitwise and no logical operators, and
 * other numbers than those of the two enums name nothing. This call is for callers that must choose another library
 * before a call. `config` may be NULL. Any thread may call it. */
TRIBUTARY_API tributary_status tributary_op_supported(const tributary_config* config, tributary_dtype dtype,
                                                      tributary_op op, int* supported);
/* Makes a communicator. Collective: returns when all nranks ranks have met. After the time-out it fails, and the
 * error's sentence names the missing ranks. */
TRIBUTARY_API tributary_status tributary_comm_init_rank(tributary_comm** comm, int nranks,
                                                        const tributary_unique_id* id, int rank);
TRIBUTARY_API tributary_status tributary_comm_init_rank_config(tributary_comm** comm, int nranks,
                                                               const tributary_unique_id* id, int rank,
                                                               const tributary_config* config);
/* The next four functions make a communicator from another one, which they leave as it is: destroy or abort it
 * yourself. They block; `config` holds for the new communicator, and may be NULL.
 *   - Order: they count as calls on `comm`, and only one thread at a time may be in one of them with the same `comm`.
 *     tributary_comm_shrink alone sends nothing through `comm`.
 *   - Time-outs: what goes through `comm` has the time-out of `comm`, the meeting of the new ranks that of `config`.
 *   - Errors: TRIBUTARY_ERROR_BAD_ARGUMENT for arguments that are wrong on this rank (or, as each function says, on
 *     another one); TRIBUTARY_ERROR_UNREACHABLE if another rank could not listen; else the errors of
 *     tributary_all_gather on `comm` and of tributary_comm_init_rank_config. A rank whose own arguments are wrong, for
 *     example newcomm == NULL, returns at once, and the others wait for it until the time-out. After an error *newcomm
 *     is NULL, and tributary_last_error(NULL) on the same thread has the sentence.
 *   - Rank 0 of the new communicator asks the manager for trees. Any rank can become rank 0 of a split or a shrink, so
 *     all ranks need the manager's URL, the token and the TLS files.
 *   - Secrets: each rank derives the new group's secret from that of `comm`, so all ranks of `comm` could join the new
 *     group, also those of another color and the excluded ones.
 *
 * Splits: all ranks of `comm` call it, and those with the same color make a communicator of their own. Their ranks
 * there follow the keys, and for equal keys the ranks in `comm`. A color is 0 or more; a rank with TRIBUTARY_SPLIT_NONE
 * gets NULL in *newcomm. Another color on one rank is TRIBUTARY_ERROR_BAD_ARGUMENT on all. */
#define TRIBUTARY_SPLIT_NONE (-1)
TRIBUTARY_API tributary_status tributary_comm_split(tributary_comm* comm, int color, int key, tributary_comm** newcomm,
                                                    const tributary_config* config);
/* Prepares a later tributary_comm_shrink. All ranks of `comm` call it while all of them are there. Each rank then keeps
 * two listeners open until `comm` ends, which count as unique ids of its process: 64 newer ids close them. */
TRIBUTARY_API tributary_status tributary_comm_prepare_shrink(tributary_comm* comm, const tributary_config* config);
/* Goes on without lost ranks: makes a communicator of all ranks of `comm` except the excluded ones, in the same order,
 * so the lowest rank that stays becomes rank 0. `comm` may have failed. The call reads `excluded` and does not keep it.
 * All ranks that stay give the same excluded ranks. If they differ, or another rank is gone, every rank gets an error,
 * TRIBUTARY_ERROR_TIMED_OUT or TRIBUTARY_ERROR_DENIED, at the latest after the time-out; then all ranks that stay can
 * call again with a longer list. One preparation is good for two such calls with the same lowest rank, whether they
 * fail or not; a third gets TRIBUTARY_ERROR_EXHAUSTED. Calls with wrong arguments do not count. The new communicator
 * is prepared in its turn; if that fails, it is good nevertheless, and tributary_last_error(*newcomm) says why. */
TRIBUTARY_API tributary_status tributary_comm_shrink(tributary_comm* comm, const int* excluded, int excluded_count,
                                                     tributary_comm** newcomm, const tributary_config* config);
/* Takes in ranks: makes a communicator of the ranks of `comm`, which keep their numbers, and of new ones. Rank 0 makes
 * `id`, and gives it here and, in any way, to the new ranks; the other ranks' `id` is not used. The id goes to the old
 * ranks encrypted. The new ranks call tributary_comm_init_rank with the same nranks, and ranks from the size of `comm`
 * on. id == NULL on rank 0 is TRIBUTARY_ERROR_BAD_ARGUMENT on all ranks. After an error rank 0 releases its id. */
TRIBUTARY_API tributary_status tributary_comm_grow(tributary_comm* comm, int nranks, const tributary_unique_id* id,
                                                   tributary_comm** newcomm, const tributary_config* config);
TRIBUTARY_API tributary_status tributary_comm_rank(const tributary_comm* comm, int* rank);
TRIBUTARY_API tributary_status tributary_comm_size(const tributary_comm* comm, int* size);
TRIBUTARY_API tributary_status tributary_comm_info(const tributary_comm* comm, tributary_info* info);
/* Collective: waits until every rank's operations have ended. */
TRIBUTARY_API tributary_status tributary_comm_finalize(tributary_comm* comm);
/* Frees the communicator. First calls tributary_comm_finalize, unless that was done or the communicator has failed.
 * Requests that have not ended become invalid. */
TRIBUTARY_API tributary_status tributary_comm_destroy(tributary_comm* comm);
/* Ends every outstanding operation on all ranks with TRIBUTARY_ERROR_ABORTED, and frees this rank's
 * communicator. */
TRIBUTARY_API tributary_status tributary_comm_abort(tributary_comm* comm);
/* Aborts with a reason. The other ranks' error is "rank R aborted: ", then `reason`: a sentence, at most 400 bytes. */
TRIBUTARY_API tributary_status tributary_comm_abort_because(tributary_comm* comm, const char* reason);

/* Allocates memory for buffers. Once it is registered, the ranks of this host reach it without copies. It is shared
 * memory, in huge pages if there are any, zeroed, aligned to a page; the system provides all of it at once. After
 * fork() the child has the same memory, not a copy. `bytes` is at least 1. Deregister the memory before you free it
 * with tributary_mem_free (else TRIBUTARY_ERROR_BAD_ARGUMENT). Freeing NULL does nothing. No communicator is needed. */
TRIBUTARY_API tributary_status tributary_mem_alloc(size_t bytes, void** ptr);
TRIBUTARY_API tributary_status tributary_mem_free(void* ptr);
/* Registers memory that many calls will use. The library checks `kind`, which says where the memory is. If the memory
 * comes from tributary_mem_alloc, or is a shared mapping of a memfd with the seal F_SEAL_SHRINK, the communicator's
 * other ranks of this host map it. If the buffers of a long call lie in such memory on all of these ranks, the call
 * reads inputs and writes results in place. If there are no other ranks on this host, an aggregator of this host maps
 * the memory for reading, and sums contributions there. A communicator shares at most 32 ranges. Other memory, and
 * further ranges, are registered but not shared, and tributary_mem_info gives the reason. The memory must stay mapped
 * until it is deregistered or the communicator is destroyed. For memory of a GPU the library makes the streams that its
 * copies need, and logs the way of the data. */
TRIBUTARY_API tributary_status tributary_mem_register(tributary_comm* comm, void* ptr, size_t bytes,
                                                      tributary_mem_kind kind, tributary_mem** mem);
TRIBUTARY_API tributary_status tributary_mem_register_dmabuf(tributary_comm* comm, void* ptr, size_t bytes,
                                                             uint64_t offset, int fd, tributary_mem** mem);
TRIBUTARY_API tributary_status tributary_mem_deregister(tributary_comm* comm, tributary_mem* mem);
typedef struct tributary_mem_details {
  size_t struct_bytes; /* set by the caller to sizeof(tributary_mem_details) */
  int shared;          /* 1: announced to the other ranks of this host, or to an aggregator of this host */
  char reason[256];    /* the reason, if shared is 0 */
} tributary_mem_details;
TRIBUTARY_API tributary_status tributary_mem_info(const tributary_mem* mem, tributary_mem_details* details);

/* Makes an op for tributary_all_reduce, tributary_reduce and tributary_reduce_scatter: this rank multiplies its values by
 * a factor of its own, and the ranks then sum the products. The other ranks have an op with another factor, or
 * TRIBUTARY_SUM, which is the factor 1. `factor` is one `dtype` in host memory, which the call reads. The op is good for
 * calls with this dtype on this communicator, and may have numerics: op | TRIBUTARY_OP_EXACT.
 *   - Numbers: each product is rounded to its type, once, to nearest even; products of integers wrap. The sum then
 *     follows the rules of TRIBUTARY_SUM: with exact numerics it is the exact sum of the rounded products, rounded once.
 *     So every path gives the same products. check_values counts the products, not the input, and the bound of the
 *     rounding error is not known for floats.
 *   - Price: the call itself multiplies, before it returns. It writes the products to recv if recv has the size of send,
 *     else to memory of that size, which the library keeps until the request is freed. `send` keeps its values, unless
 *     it is recv. A GPU's input first comes down to host memory as a whole, and the network does not read it directly.
 *   - Threads: any thread may make and destroy ops, without the other ranks. A communicator has at most 65,536 ops
 *     (TRIBUTARY_ERROR_EXHAUSTED). */
TRIBUTARY_API tributary_status tributary_op_create_premul_sum(tributary_comm* comm, const void* factor,
                                                              tributary_dtype dtype, tributary_op* op);
/* Destroys such an op. Calls that were made with it go on. The communicator's end destroys all its ops. */
TRIBUTARY_API tributary_status tributary_op_destroy(tributary_comm* comm, tributary_op op);
/* recv[i] = op over all ranks of send[i], for i in [0, count). */
TRIBUTARY_API tributary_status tributary_all_reduce(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                                    tributary_op op, tributary_comm* comm, tributary_request** request);
/* recv[i] at root = op over all ranks of send[i]. The other ranks' recv is not used. */
TRIBUTARY_API tributary_status tributary_reduce(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                                tributary_op op, int root, tributary_comm* comm,
                                                tributary_request** request);
/* recv on every rank = send of root. The other ranks' send is not used. */
TRIBUTARY_API tributary_status tributary_broadcast(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                                   int root, tributary_comm* comm, tributary_request** request);
/* send: nranks * recvcount elements; rank r gets the reduced elements [r * recvcount, (r + 1) * recvcount). */
TRIBUTARY_API tributary_status tributary_reduce_scatter(const void* send, void* recv, size_t recvcount,
                                                        tributary_dtype dtype, tributary_op op, tributary_comm* comm,
                                                        tributary_request** request);
/* recv: nranks * sendcount elements; the elements of rank r start at r * sendcount. */
TRIBUTARY_API tributary_status tributary_all_gather(const void* send, void* recv, size_t sendcount,
                                                    tributary_dtype dtype, tributary_comm* comm,
                                                    tributary_request** request);
/* send, recv: nranks * count elements; part j of rank i's send goes to part i of rank j's recv. Not in place. */
TRIBUTARY_API tributary_status tributary_all_to_all(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                                    tributary_comm* comm, tributary_request** request);
/* recv at root: nranks * count elements. */
TRIBUTARY_API tributary_status tributary_gather(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                                int root, tributary_comm* comm, tributary_request** request);
/* send at root: nranks * count elements. */
TRIBUTARY_API tributary_status tributary_scatter(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                                 int root, tributary_comm* comm, tributary_request** request);
/* The nth tributary_send from one rank to another pairs with the nth tributary_recv there; collectives between these
 * calls change nothing. Counts and dtypes must agree. The peer of tributary_recv may be TRIBUTARY_ANY_SOURCE. */
TRIBUTARY_API tributary_status tributary_send(const void* send, size_t count, tributary_dtype dtype, int peer,
                                              tributary_comm* comm, tributary_request** request);
TRIBUTARY_API tributary_status tributary_recv(void* recv, size_t count, tributary_dtype dtype, int peer,
                                              tributary_comm* comm, tributary_request** request);
/* Messages with tags, from 1 on: a receive takes only messages with its own tag, so a program may receive messages with
 * different tags in any order. Messages from one rank with one tag keep their order; tributary_send and tributary_recv
 * use tag 0. If two receives could take the same message, the receive that was called first takes it.
 *
 * The peer of a receive, with any tag, may be TRIBUTARY_ANY_SOURCE: it takes the first message with its tag from any
 * rank, including this rank. While a receive from any rank with tag 0 waits, later receives with tag 0 wait behind it.
 * The first receive from any rank with tag 0, and the first with another tag, connects this rank to every lower rank.
 *
 * If source is not NULL, *source gets the rank that has sent the message, from the call that returns TRIBUTARY_OK
 * for the receive (tributary_wait, tributary_test, or this call if request is NULL); it must stay valid until then.
 *
 * The data of a message with a tag travel once its receive is called: a blocking send waits for this call, and each
 * message costs a round trip more than tributary_send. A rank may have 65,536 sends with tags to another rank that has
 * not received them yet; the request of a further send ends with TRIBUTARY_ERROR_EXHAUSTED, without other effects. */
#define TRIBUTARY_ANY_SOURCE INT32_MIN /* far from every sum or difference of ranks */
TRIBUTARY_API tributary_status tributary_send_tagged(const void* send, size_t count, tributary_dtype dtype, int peer,
                                                     uint32_t tag, tributary_comm* comm, tributary_request** request);
TRIBUTARY_API tributary_status tributary_recv_tagged(void* recv, size_t count, tributary_dtype dtype, int peer,
                                                     uint32_t tag, int* source, tributary_comm* comm,
                                                     tributary_request** request);
TRIBUTARY_API tributary_status tributary_barrier(tributary_comm* comm, tributary_request** request);

/* Sets *done = 1 if the operation has ended: the return value is then its outcome, and the request is freed. Else sets
 * *done = 0. */
TRIBUTARY_API tributary_status tributary_test(tributary_request* request, int* done);
/* Waits until the operation has ended. timeout_ns == -1: this call has no time-out (the communicator's time-out still
 * ends a hang). If this call's time-out passes, it returns TRIBUTARY_ERROR_TIMED_OUT, the request stays alive and the
 * operation goes on: *only* then call again. In every other case the request is freed. An operation may itself end with
 * TIMED_OUT, so after a wait with a time-out TIMED_OUT has two possible meanings. The next call on the request shows
 * which one holds: it returns BAD_ARGUMENT if the operation had ended. */
TRIBUTARY_API tributary_status tributary_wait(tributary_request* request, int64_t timeout_ns);
/* Counts of the elements of one buffer. Integers have no NaN, infinity or subnormal number. */
typedef struct tributary_values {
  uint64_t elements; /* elements that were looked at */
  uint64_t nans;
  uint64_t infinities; /* also of both signs; a result beyond the largest value is infinite, or NaN in float8 e4m3 */
  uint64_t subnormals; /* below the smallest normal number of the type, without zeros: such values lose bits */
} tributary_values;
typedef struct tributary_request_details {
  size_t struct_bytes;     /* set by the caller to sizeof(tributary_request_details) */
  int done;                /* 1: the operation has ended */
  int counted;             /* 1: check_values is on and this is a collective; else the counts are 0 */
  tributary_values input;  /* what this rank has sent */
  tributary_values result; /* what this rank has received; 0 elements until the operation has succeeded */
  /* A bound of the relative rounding error of each result that is finite, and at least the smallest normal number: 0
   * for calls that only move or choose values, and for sums of integers; half the distance from 1 to the next number
   * with exact numerics; -1: not known, because fast sums of floats may cancel. */
  double relative_error_bound;
} tributary_request_details;
/* Describes an operation, and does not free its request. First waits for the operation's end like tributary_wait, at
 * most for timeout_ns; 0: not at all. TRIBUTARY_OK also if the operation has not ended, or has failed: tributary_wait
 * tells the outcome. */
TRIBUTARY_API tributary_status tributary_request_info(tributary_request* request, int64_t timeout_ns,
                                                      tributary_request_details* details);
typedef struct tributary_outcome {
  tributary_status status;
  const char* sentence; /* the text of tributary_last_error, valid during the call; "" with TRIBUTARY_OK */
  int peer;             /* the other rank of a message with TRIBUTARY_OK; else -1 */
} tributary_outcome;
/* Replaces tributary_test and tributary_wait for callers that wait for many requests at once. When the operation has
 * ended, the library frees the request and calls `done` once; at once if it has ended already. The library may call
 * `done` on any thread, also on one that drives the communicator: `done` must return soon, and must not call this
 * library. The communicator's end ends the operation, too. Call this function once for each request. */
TRIBUTARY_API tributary_status tributary_when_done(tributary_request* request,
                                                   void (*done)(void* context, const tributary_outcome* outcome),
                                                   void* context);

#ifdef __cplusplus
}
#endif
#endif /* TRIBUTARY_TRIBUTARY_H_ */
