// Tributary for C++17 and later: tributary.h with owning classes, types and exceptions. This header is the whole C++
// part: all state is in the C library.
//
//   tributary::Communicator comm(nranks, id, rank);
//   comm.all_reduce(gradients, gradients, tributary::Op::sum);             // blocks; in place
//   tributary::Request request = comm.start_all_reduce(in, out, tributary::Op::avg);
//   ...
//   request.wait();
//
// Errors are exceptions of type tributary::Error, which carry the C status and the whole sentence of
// tributary_last_error. The rules for threads are those of tributary.h. Several threads may use a Communicator at
// once, but only one may end it, after the last use by the others. One thread at a time may use a Request.
#ifndef TRIBUTARY_TRIBUTARY_HPP_
#define TRIBUTARY_TRIBUTARY_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "tributary/tributary.h"

namespace tributary {
inline namespace v0 {  // so that the linker sees no clash with the library's inner names

/// An error of a call of the C API: it has the status that the call returned instead of TRIBUTARY_OK.
class Error : public std::runtime_error {
 public:
  Error(tributary_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  [[nodiscard]] tributary_status status() const noexcept { return status_; }

 private:
  tributary_status status_;
};

namespace detail {

/// Throws for every status except TRIBUTARY_OK, with the sentence of this thread's last error.
inline void check(tributary_status status) {
  if (status == TRIBUTARY_OK) return;
  const char* sentence = tributary_last_error(nullptr);
  throw Error(status, sentence != nullptr && *sentence != '\0' ? sentence : tributary_status_string(status));
}

template <class T, class = void>
struct DTypeOf;  // the specialisations below define the element types

template <tributary_dtype dtype>
struct DTypeIs {
  static constexpr tributary_dtype value = dtype;
};

// Chooses a dtype by size and signedness, so that long, long long and every kind of char map to their size here.
template <class T>
struct DTypeOf<T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>> {
  static_assert(sizeof(T) <= 8, "Tributary has integers of 8 to 64 bits");
  static constexpr tributary_dtype value = std::is_signed<T>::value ? (sizeof(T) == 1   ? TRIBUTARY_INT8
                                                                       : sizeof(T) == 2 ? TRIBUTARY_INT16
                                                                       : sizeof(T) == 4 ? TRIBUTARY_INT32
                                                                                        : TRIBUTARY_INT64)
                                                                    : (sizeof(T) == 1   ? TRIBUTARY_UINT8
                                                                       : sizeof(T) == 2 ? TRIBUTARY_UINT16
                                                                       : sizeof(T) == 4 ? TRIBUTARY_UINT32
                                                                                        : TRIBUTARY_UINT64);
};
template <>
struct DTypeOf<float> : DTypeIs<TRIBUTARY_FLOAT32> {};
template <>
struct DTypeOf<double> : DTypeIs<TRIBUTARY_FLOAT64> {};

}  // namespace detail

/// Floating-point elements of 16 and 8 bits, as bits: C++17 has no types for them. A pointer to any class of the same
/// size and format can be cast to a pointer to these types.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};
struct Float8E4m3 {
  std::uint8_t bits;
};
struct Float8E5m2 {
  std::uint8_t bits;
};

namespace detail {
template <>
struct DTypeOf<Float16> : DTypeIs<TRIBUTARY_FLOAT16> {};
template <>
struct DTypeOf<Bfloat16> : DTypeIs<TRIBUTARY_BFLOAT16> {};
template <>
struct DTypeOf<Float8E4m3> : DTypeIs<TRIBUTARY_FLOAT8_E4M3> {};
template <>
struct DTypeOf<Float8E5m2> : DTypeIs<TRIBUTARY_FLOAT8_E5M2> {};
}  // namespace detail

/// The tributary_dtype of an element type: integers of 8 to 64 bits, float, double, Float16, Bfloat16, Float8E4m3,
/// Float8E5m2.
template <class T>
inline constexpr tributary_dtype dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

enum class Op : int {
  sum = TRIBUTARY_SUM,
  prod = TRIBUTARY_PROD,
  min = TRIBUTARY_MIN,
  max = TRIBUTARY_MAX,
  avg = TRIBUTARY_AVG,
  band = TRIBUTARY_BAND,  // band to lxor: only for integers
  bor = TRIBUTARY_BOR,
  bxor = TRIBUTARY_BXOR,
  land = TRIBUTARY_LAND,
  lor = TRIBUTARY_LOR,
  lxor = TRIBUTARY_LXOR,
};

/// Numerics of one call, in place of Config::numerics: comm.all_reduce(send, recv, Op::sum | Numerics::exact).
enum class Numerics : int {
  fast = TRIBUTARY_OP_FAST,
  exact = TRIBUTARY_OP_EXACT,
};
[[nodiscard]] constexpr Op operator|(Op op, Numerics numerics) noexcept {
  return static_cast<Op>(static_cast<int>(op) | static_cast<int>(numerics));
}

/// A view of `size` elements at `data`, which the caller owns. A buffer for the functions below may be any type that
/// std::data and std::size accept: a View, std::vector, std::array, std::span, an array.
template <class T>
class View {
 public:
  constexpr View() noexcept = default;
  constexpr View(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The 128 bytes by which ranks meet. The process of rank 0 makes them, and then listens; send them to the other ranks
/// in any way.
class UniqueId {
 public:
  static constexpr std::size_t kBytes = TRIBUTARY_UNIQUE_ID_BYTES;

  /// Makes an id; call it in rank 0's process. Errors: bad_config (TRIBUTARY_IFNAME, configuration file), system (no
  /// address to listen at).
  [[nodiscard]] static UniqueId create() {
    UniqueId id;
    detail::check(tributary_get_unique_id(&id.id_));
    return id;
  }
  /// Makes the same id from the kBytes bytes that bytes() returned in rank 0's process.
  [[nodiscard]] static UniqueId from_bytes(const void* bytes) noexcept {
    UniqueId id;
    std::memcpy(id.id_.bytes, bytes, kBytes);
    return id;
  }
  [[nodiscard]] const unsigned char* bytes() const noexcept { return id_.bytes; }
  [[nodiscard]] const tributary_unique_id& c() const noexcept { return id_; }

 private:
  tributary_unique_id id_{};
};

/// An operation under way. The buffers of its call belong to the library until the operation has ended. The destructor
/// waits for the end, and ignores the outcome.
class Request {
 public:
  Request() noexcept = default;
  explicit Request(tributary_request* request) noexcept : request_(request) {}
  Request(Request&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      end();
      request_ = std::exchange(other.request_, nullptr);
    }
    return *this;
  }
  ~Request() { end(); }

  /// True while an operation is under way; false once a call has reported its end.
  [[nodiscard]] bool valid() const noexcept { return request_ != nullptr; }

  /// Blocks until the end; throws the operation's error. Does nothing if no operation is under way.
  void wait() {
    if (request_ != nullptr) detail::check(tributary_wait(std::exchange(request_, nullptr), -1));
  }

  /// Returns true if the operation has succeeded within `limit`, false if it goes on; throws if it has failed.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds limit) {
    if (request_ == nullptr) return true;
    const auto nanoseconds = limit.count() > 0 ? static_cast<std::int64_t>(limit.count()) : 0;
    const auto waited = tributary_wait(request_, nanoseconds);
    if (waited != TRIBUTARY_ERROR_TIMED_OUT) {
      request_ = nullptr;
      detail::check(waited);
      return true;
    }
    // Either `limit` has passed and the request lives, or the operation itself has timed out and the request is gone.
    const std::string text = tributary_last_error(nullptr);
    int done = 0;
    const auto tested = tributary_test(request_, &done);
    if (tested == TRIBUTARY_OK && done == 0) return false;
    request_ = nullptr;
    if (tested == TRIBUTARY_ERROR_BAD_ARGUMENT) throw Error(waited, text);
    detail::check(tested);
    return true;
  }

  /// Waits for the end, at most for `limit` (negative: no limit), and returns counts of the operation's values
  /// (Config::check_values). Call it before the call that reports the end; does not throw the operation's error.
  [[nodiscard]] tributary_request_details details(std::chrono::nanoseconds limit = std::chrono::nanoseconds(-1)) const {
    tributary_request_details value{};
    value.struct_bytes = sizeof value;
    const auto nanoseconds = limit.count() < 0 ? std::int64_t{-1} : static_cast<std::int64_t>(limit.count());
    detail::check(tributary_request_info(request_, nanoseconds, &value));
    return value;
  }

  /// Returns true if the operation has succeeded, false if it goes on; throws if it has failed.
  [[nodiscard]] bool test() {
    if (request_ == nullptr) return true;
    int done = 0;
    const auto status = tributary_test(request_, &done);
    if (status != TRIBUTARY_OK || done != 0) request_ = nullptr;
    detail::check(status);
    return done != 0;
  }

 private:
  void end() noexcept {
    if (request_ != nullptr) tributary_wait(std::exchange(request_, nullptr), -1);
  }
  tributary_request* request_ = nullptr;
};

/// Explicit settings. They override TRIBUTARY_* variables, which override the configuration file. A member that is
/// empty or 0 is not set.
struct Config {
  std::string manager;                   // such as "http://host:7470"
  std::string path;                      // "auto", "in-network", "fallback"
  std::string transport;                 // such as "tcp"
  std::string interface_name;            // other ranks use its address
  std::string host_id;                   // this host's name in the topology
  std::string token_file;                // file with the manager's job token
  std::string job;                       // the manager lists the group under this name
  int lanes = 0;                         // 1 to 16; if no source sets it: as many as save time
  std::chrono::milliseconds timeout{0};  // time until a lost or hung rank is an error
  std::string tuning;                    // "auto", "model", "off" or a tuning table's path; rank 0's setting holds
  std::string require;                   // "none", or "in-network": no communicator without trees
  std::string numerics;                  // "fast", or "exact": sums and averages of floats are rounded once
  std::string local;                     // "auto", or "off": no shared memory for the ranks of a host
  std::string check_values;              // "off", "count", "nan-fails": Request::details() has counts of NaN and others
};

/// Registered memory; the destructor deregisters it.
class Memory {
 public:
  Memory() noexcept = default;
  Memory(tributary_comm* comm, tributary_mem* memory) noexcept : comm_(comm), memory_(memory) {}
  Memory(Memory&& other) noexcept : comm_(other.comm_), memory_(std::exchange(other.memory_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Memory() {
    if (memory_ != nullptr) tributary_mem_deregister(comm_, memory_);
  }

 private:
  tributary_comm* comm_ = nullptr;
  tributary_mem* memory_ = nullptr;
};

/// A sum for which this rank first multiplies its values by a factor of its own: see tributary_op_create_premul_sum.
/// Communicator::premultiplied_sum() makes it. The destructor destroys the op; calls that were made with it go on.
class PremultipliedSum {
 public:
  PremultipliedSum(tributary_comm* comm, tributary_op op) noexcept : comm_(comm), op_(op) {}
  PremultipliedSum(PremultipliedSum&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)), op_(other.op_) {}
  PremultipliedSum& operator=(PremultipliedSum&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(op_, other.op_);
    return *this;
  }
  ~PremultipliedSum() {
    if (comm_ != nullptr) tributary_op_destroy(comm_, op_);
  }

  [[nodiscard]] Op op() const noexcept { return static_cast<Op>(op_); }

 private:
  tributary_comm* comm_ = nullptr;
  tributary_op op_ = TRIBUTARY_SUM;
};

namespace detail {

template <class Buffer>
using ElementOf = std::remove_pointer_t<decltype(std::data(std::declval<Buffer&>()))>;

inline void require(bool right, const char* sentence) {
  if (!right) throw Error(TRIBUTARY_ERROR_BAD_ARGUMENT, sentence);
}

/// The two buffers of a call, which have one element type.
template <class Send, class Recv>
struct Pair {
  using Element = std::remove_cv_t<ElementOf<Send>>;
  static_assert(std::is_same<Element, std::remove_cv_t<ElementOf<Recv>>>::value,
                "send and recv hold different element types");
  static_assert(!std::is_const<ElementOf<Recv>>::value, "recv must be writable");
  static constexpr tributary_dtype dtype = dtype_of<Element>;
};

}  // namespace detail

/// One rank's end of a group. N below is size(). Every rank makes the same calls in the same order with the same
/// counts, element types, ops and roots. start_x queues an operation and returns a Request; x also waits for its end.
/// In place means one array for both buffers, by the rules of tributary.h.
///
/// Errors of all calls, as Error::status(): BAD_ARGUMENT (wrong sizes, partly overlapping buffers; the call had no
/// effect), and from the end of the operation MISMATCH, TIMED_OUT, PEER_GONE, ABORTED. After these four errors a
/// program can only end the communicator.
class Communicator {
 public:
  /// Collective: returns when all `nranks` ranks have met. After the time-out it throws, and names the missing ranks.
  Communicator(int nranks, const UniqueId& id, int rank, const Config& config = {}) {
    tributary_config c = TRIBUTARY_CONFIG_INITIALIZER;
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    c.manager = text(config.manager);
    c.path = text(config.path);
    c.transport = text(config.transport);
    c.interface_name = text(config.interface_name);
    c.host_id = text(config.host_id);
    c.token_file = text(config.token_file);
    c.job = text(config.job);
    c.tuning = text(config.tuning);
    c.require = text(config.require);
    c.numerics = text(config.numerics);
    c.local = text(config.local);
    c.check_values = text(config.check_values);
    c.lanes = config.lanes;
    c.timeout_ms = static_cast<std::int64_t>(config.timeout.count());
    detail::check(tributary_comm_init_rank_config(&comm_, nranks, &id.c(), rank, &c));
  }
  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  /// Finalizes: waits for the other ranks, at most for the time-out; ignores errors. All requests must have ended.
  ~Communicator() {
    if (comm_ != nullptr) tributary_comm_destroy(comm_);
  }

  [[nodiscard]] int rank() const {
    int value = 0;
    detail::check(tributary_comm_rank(comm_, &value));
    return value;
  }
  [[nodiscard]] int size() const {
    int value = 0;
    detail::check(tributary_comm_size(comm_, &value));
    return value;
  }
  [[nodiscard]] tributary_info info() const {
    tributary_info value{};
    value.struct_bytes = sizeof value;
    detail::check(tributary_comm_info(comm_, &value));
    return value;
  }
  /// Returns the handle for calls of the C API. This object still owns it.
  [[nodiscard]] tributary_comm* c() const noexcept { return comm_; }

  /// Collective: returns when every rank's operations have ended. No operation can start afterwards.
  void finalize() { detail::check(tributary_comm_finalize(comm_)); }
  /// Ends every outstanding operation on all ranks with ABORTED. This object cannot be used afterwards.
  void abort() { detail::check(tributary_comm_abort(std::exchange(comm_, nullptr))); }

  [[nodiscard]] Memory register_memory(void* memory, std::size_t bytes, tributary_mem_kind kind = TRIBUTARY_MEM_HOST) {
    tributary_mem* handle = nullptr;
    detail::check(tributary_mem_register(comm_, memory, bytes, kind, &handle));
    return Memory(comm_, handle);
  }

  /// Makes an op for reductions of buffers with elements of the factor's type:
  ///   const auto half = comm.premultiplied_sum(0.5F);
  ///   comm.all_reduce(gradients, gradients, half.op());
  template <class T>
  [[nodiscard]] PremultipliedSum premultiplied_sum(T factor) {
    tributary_op op = TRIBUTARY_SUM;
    detail::check(tributary_op_create_premul_sum(comm_, &factor, dtype_of<T>, &op));
    return PremultipliedSum(comm_, op);
  }

  /// recv[i] = op over all ranks of send[i]; both buffers have the same size.
  template <class Send, class Recv>
  [[nodiscard]] Request start_all_reduce(const Send& send, Recv&& recv, Op op) {
    detail::require(std::size(send) == std::size(recv), "all_reduce: send and recv differ in size");
    return start([&](tributary_request** request) {
      return tributary_all_reduce(std::data(send), std::data(recv), std::size(send),
                                  detail::Pair<const Send, Recv>::dtype, to_c(op), comm_, request);
    });
  }
  /// recv[i] at `root` = op over all ranks of send[i]; on other ranks recv is not used and may be an empty View.
  template <class Send, class Recv>
  [[nodiscard]] Request start_reduce(const Send& send, Recv&& recv, Op op, int root) {
    detail::require(rank() != root || std::size(send) == std::size(recv),
                    "reduce: send and recv differ in size at the root");
    return start([&](tributary_request** request) {
      return tributary_reduce(std::data(send), std::data(recv), std::size(send), detail::Pair<const Send, Recv>::dtype,
                              to_c(op), root, comm_, request);
    });
  }
  /// buffer on every rank = buffer of root.
  template <class Buffer>
  [[nodiscard]] Request start_broadcast(Buffer&& buffer, int root) {
    return start([&](tributary_request** request) {
      return tributary_broadcast(std::data(buffer), std::data(buffer), std::size(buffer),
                                 detail::Pair<Buffer, Buffer>::dtype, root, comm_, request);
    });
  }
  /// recv = elements [rank * n, (rank + 1) * n) of the reduction of send. recv has n elements, send N * n.
  template <class Send, class Recv>
  [[nodiscard]] Request start_reduce_scatter(const Send& send, Recv&& recv, Op op) {
    require_parts(std::size(send), std::size(recv),
                  "reduce_scatter: send must hold one part of recv's size for every rank");
    return start([&](tributary_request** request) {
      return tributary_reduce_scatter(std::data(send), std::data(recv), std::size(recv),
                                      detail::Pair<const Send, Recv>::dtype, to_c(op), comm_, request);
    });
  }
  /// recv[r * n ... ] = send of rank r. n is the size of send, N * n the size of recv.
  template <class Send, class Recv>
  [[nodiscard]] Request start_all_gather(const Send& send, Recv&& recv) {
    require_parts(std::size(recv), std::size(send),
                  "all_gather: recv must hold one part of send's size for every rank");
    return start([&](tributary_request** request) {
      return tributary_all_gather(std::data(send), std::data(recv), std::size(send),
                                  detail::Pair<const Send, Recv>::dtype, comm_, request);
    });
  }
  /// Part j of send goes to rank j; part i of recv comes from rank i. Both hold N equal parts; never in place.
  template <class Send, class Recv>
  [[nodiscard]] Request start_all_to_all(const Send& send, Recv&& recv) {
    const std::size_t count = std::size(send) / static_cast<std::size_t>(size());
    require_parts(std::size(send), count, "all_to_all: send must hold equal parts for all ranks");
    detail::require(std::size(send) == std::size(recv), "all_to_all: send and recv differ in size");
    return start([&](tributary_request** request) {
      return tributary_all_to_all(std::data(send), std::data(recv), count, detail::Pair<const Send, Recv>::dtype, comm_,
                                  request);
    });
  }
  /// recv[r * n ... ] at the root = send of rank r; on other ranks recv is not used and may be an empty View.
  template <class Send, class Recv>
  [[nodiscard]] Request start_gather(const Send& send, Recv&& recv, int root) {
    if (rank() == root)
      require_parts(std::size(recv), std::size(send), "gather: recv must hold one part of send's size for every rank");
    return start([&](tributary_request** request) {
      return tributary_gather(std::data(send), std::data(recv), std::size(send), detail::Pair<const Send, Recv>::dtype,
                              root, comm_, request);
    });
  }
  /// recv = part `rank` of the root's send, which has N parts of recv's size; on other ranks send may be an empty View.
  template <class Send, class Recv>
  [[nodiscard]] Request start_scatter(const Send& send, Recv&& recv, int root) {
    if (rank() == root)
      require_parts(std::size(send), std::size(recv), "scatter: send must hold one part of recv's size for every rank");
    return start([&](tributary_request** request) {
      return tributary_scatter(std::data(send), std::data(recv), std::size(recv), detail::Pair<const Send, Recv>::dtype,
                               root, comm_, request);
    });
  }
  /// Sends a message. It pairs with the peer's recv of the same size, element type and tag; with tag 0 in the order of
  /// calls between the two ranks.
  template <class Send>
  [[nodiscard]] Request start_send(const Send& send, int peer, std::uint32_t tag = 0) {
    return start([&](tributary_request** request) {
      return tributary_send_tagged(std::data(send), std::size(send), dtype_of<detail::ElementOf<const Send>>, peer, tag,
                                   comm_, request);
    });
  }
  /// Receives a message. `peer` is a rank, or TRIBUTARY_ANY_SOURCE. The Request's wait() or test() writes the sender's
  /// rank to *source, which must stay valid until then; source may be nullptr.
  template <class Recv>
  [[nodiscard]] Request start_recv(Recv&& recv, int peer, std::uint32_t tag = 0, int* source = nullptr) {
    return start([&](tributary_request** request) {
      return tributary_recv_tagged(std::data(recv), std::size(recv), detail::Pair<Recv, Recv>::dtype, peer, tag, source,
                                   comm_, request);
    });
  }
  [[nodiscard]] Request start_barrier() {
    return start([&](tributary_request** request) { return tributary_barrier(comm_, request); });
  }

  // The same calls without `start_`; each waits for the end of its operation.
  template <class Send, class Recv>
  void all_reduce(const Send& send, Recv&& recv, Op op) {
    start_all_reduce(send, recv, op).wait();
  }
  template <class Send, class Recv>
  void reduce(const Send& send, Recv&& recv, Op op, int root) {
    start_reduce(send, recv, op, root).wait();
  }
  template <class Buffer>
  void broadcast(Buffer&& buffer, int root) {
    start_broadcast(buffer, root).wait();
  }
  template <class Send, class Recv>
  void reduce_scatter(const Send& send, Recv&& recv, Op op) {
    start_reduce_scatter(send, recv, op).wait();
  }
  template <class Send, class Recv>
  void all_gather(const Send& send, Recv&& recv) {
    start_all_gather(send, recv).wait();
  }
  template <class Send, class Recv>
  void all_to_all(const Send& send, Recv&& recv) {
    start_all_to_all(send, recv).wait();
  }
  template <class Send, class Recv>
  void gather(const Send& send, Recv&& recv, int root) {
    start_gather(send, recv, root).wait();
  }
  template <class Send, class Recv>
  void scatter(const Send& send, Recv&& recv, int root) {
    start_scatter(send, recv, root).wait();
  }
  template <class Send>
  void send(const Send& buffer, int peer, std::uint32_t tag = 0) {
    start_send(buffer, peer, tag).wait();
  }
  /// Receives a message, and returns the sender's rank.
  template <class Recv>
  int recv(Recv&& buffer, int peer, std::uint32_t tag = 0) {
    int source = -1;
    start_recv(buffer, peer, tag, &source).wait();
    return source;
  }
  void barrier() { start_barrier().wait(); }

 private:
  static tributary_op to_c(Op op) noexcept { return static_cast<tributary_op>(op); }

  template <class Call>
  static Request start(Call call) {
    tributary_request* request = nullptr;
    detail::check(call(&request));
    return Request(request);
  }

  void require_parts(std::size_t whole, std::size_t part, const char* sentence) const {
    detail::require(whole == part * static_cast<std::size_t>(size()), sentence);
  }

  tributary_comm* comm_ = nullptr;
};

}  // namespace v0
}  // namespace tributary

#endif  // TRIBUTARY_TRIBUTARY_HPP_
