#include "client/plugins/nccl/p2p/sockets/helper_threads.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tributary/protocol/assert.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::nccl {
namespace {

// A helper sleeps after this many turns without progress: a busy socket is ready again within microseconds.
constexpr int kYieldsMax = 16;

}  // namespace

struct HelperThreads::DataSocket {
  explicit DataSocket(StreamSocket&& from) : socket(std::move(from)) {}

  [[nodiscard]] Piece* front() noexcept {
    const std::uint32_t at = taken.load(std::memory_order_relaxed);
    return at == given.load(std::memory_order_seq_cst) ? nullptr : &row[at % row.size()];
  }

  StreamSocket socket;
  std::array<Piece, kNetRequestsMax> row;
  std::atomic<std::uint32_t> given{0};  // only the connection's thread counts it up
  std::atomic<std::uint32_t> taken{0};  // only the helper counts it up
  std::size_t moved = 0;                // bytes of the first piece that are done; only the helper uses it
};

/// One thread, and the sockets that this thread owns.
class HelperThreads::Helper {
 public:
  explicit Helper(HelperThreads& all) : all_(all), bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (bell_ < 0) throw std::system_error(errno, std::system_category(), "no descriptor for a helper thread");
  }
  ~Helper() {
    stop();
    ::close(bell_);
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  void own(DataSocket& socket) {
    TRIBUTARY_ASSERT(!thread_.joinable(), "a helper with {} sockets gets another while it runs", sockets_.size());
    sockets_.push_back(&socket);
  }
  void start() {
    TRIBUTARY_ASSERT(!thread_.joinable() && !sockets_.empty(), "a helper with {} sockets starts, perhaps again",
                     sockets_.size());
    waits_for_.reserve(sockets_.size() + 1);
    const transport::BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
  }
  /// Call it after a piece was added. It works together with sleep(): either the helper finds the piece, or this call
  /// finds that the helper sleeps.
  void wake() {
    if (asleep_.load(std::memory_order_seq_cst)) ring();
  }
  void ask_to_stop() {
    stops_.store(true, std::memory_order_seq_cst);
    ring();
  }
  void stop() {
    if (!thread_.joinable()) return;
    ask_to_stop();
    thread_.join();
  }

 private:
  void ring() const {
    const std::uint64_t one = 1;
    (void)!::write(bell_, &one, sizeof one);  // fails only if the bell already rings
  }
  void run() {
    int idle = 0;
    while (!stops_.load(std::memory_order_relaxed)) {
      if (turn()) {
        idle = 0;
      } else if (++idle <= kYieldsMax) {
        ::sched_yield();
      } else {
        idle = 0;
        sleep();
      }
    }
  }
  /// Makes one system call for each socket that has a piece. Returns true if at least one byte has moved.
  bool turn() {
    bool moved = false;
    for (DataSocket* one : sockets_) {
      Piece* const piece = one->front();
      if (piece == nullptr) continue;
      const auto bytes = move(*one, *piece);
      if (!bytes) {
        all_.fail(bytes.error());
        stops_.store(true, std::memory_order_relaxed);
        return true;
      }
      moved |= *bytes > 0;
    }
    return moved;
  }
  [[nodiscard]] Result<std::size_t> move(DataSocket& one, const Piece& piece) const {
    TRIBUTARY_ASSERT(one.moved < piece.bytes, "{} of a piece's {} bytes are done, and it goes on", one.moved,
                     piece.bytes);
    iovec part{piece.data + one.moved, piece.bytes - one.moved};
    auto bytes = all_.direction_ == Direction::send ? one.socket.write({&part, 1}) : one.socket.read({&part, 1});
    if (!bytes) return bytes;
    one.moved += *bytes;
    TRIBUTARY_ASSERT(one.moved <= piece.bytes, "{} bytes of a piece of {} are done", one.moved, piece.bytes);
    if (one.moved < piece.bytes) return bytes;
    one.moved = 0;
    auto* const left = piece.left;
    one.taken.store(one.taken.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    const auto before =
        left->fetch_sub(1, std::memory_order_release);  // the last access to this piece: its message may end now
    TRIBUTARY_ASSERT(before > 0, "a piece is done of a message that has {} left", before);
    return bytes;
  }
  /// Sleeps until a socket with a piece is ready, or until the bell rings.
  void sleep() {
    asleep_.store(true, std::memory_order_seq_cst);
    // A piece that came before this rang no bell. Its bytes may be in user space already, where poll() does not see them.
    if (turn()) return asleep_.store(false, std::memory_order_relaxed);
    const short event = all_.direction_ == Direction::send ? POLLOUT : POLLIN;
    waits_for_.clear();
    waits_for_.push_back({.fd = bell_, .events = POLLIN, .revents = 0});
    for (DataSocket* one : sockets_) {
      if (one->front() != nullptr)
        waits_for_.push_back({.fd = one->socket.descriptor(), .events = event, .revents = 0});
    }
    if (!stops_.load(std::memory_order_seq_cst)) ::poll(waits_for_.data(), waits_for_.size(), -1);
    asleep_.store(false, std::memory_order_relaxed);
    std::uint64_t rung = 0;
    if (waits_for_.front().revents != 0) (void)!::read(bell_, &rung, sizeof rung);
  }

  HelperThreads& all_;
  const int bell_;
  std::vector<DataSocket*> sockets_;
  std::vector<pollfd> waits_for_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

HelperThreads::HelperThreads(Direction direction, std::vector<StreamSocket> sockets, std::uint32_t threads)
    : direction_(direction) {
  TRIBUTARY_ASSERT(threads > 0 && sockets.size() >= threads, "{} sockets for {} helper threads", sockets.size(),
                   threads);
  for (std::uint32_t i = 0; i < threads; ++i) helpers_.push_back(std::make_unique<Helper>(*this));
  for (StreamSocket& socket : sockets) {
    sockets_.push_back(std::make_unique<DataSocket>(std::move(socket)));
    helpers_[(sockets_.size() - 1) % threads]->own(*sockets_.back());
  }
}

HelperThreads::~HelperThreads() {
  stop();
}

void HelperThreads::give(std::uint32_t socket, const Piece& piece) {
  TRIBUTARY_ASSERT(socket < sockets_.size(), "a piece for data socket {} of {}", socket, sockets_.size());
  TRIBUTARY_ASSERT(piece.bytes > 0 && piece.left != nullptr, "a piece of {} bytes, or a piece without a message",
                   piece.bytes);
  DataSocket& to = *sockets_[socket];
  const std::uint32_t given = to.given.load(std::memory_order_relaxed);
  const std::uint32_t waiting = given - to.taken.load(std::memory_order_acquire);
  TRIBUTARY_ASSERT(waiting < to.row.size(), "socket {} has {} pieces, more than a connection has requests", socket,
                   waiting);
  to.row[given % to.row.size()] = piece;
  to.given.store(given + 1, std::memory_order_seq_cst);
  if (!std::exchange(started_, true)) {
    for (const auto& helper : helpers_) helper->start();
  }
  helpers_[socket % helpers_.size()]->wake();
}

std::string HelperThreads::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void HelperThreads::fail(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why.message;
  failed_.store(true, std::memory_order_release);
}

void HelperThreads::stop() {
  for (const auto& helper : helpers_) helper->ask_to_stop();
  for (const auto& helper : helpers_) helper->stop();
  for (const auto& one : sockets_) one->socket.close();
}

}  // namespace tributary::nccl
