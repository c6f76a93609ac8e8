#pragma once
// The threads that move a connection's pieces over its data sockets, where NCCL_SOCKET_NTHREADS asks for some.
//
// Each thread has sockets of its own, and each socket a row of pieces: the connection's thread puts them in, the helper
// takes them out in that order. Nothing is locked: a row has one writer at each end. A helper whose sockets can do
// nothing sleeps until one can, or until it gets a piece.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/plugins/nccl/p2p/net_comm.h"
#include "client/plugins/nccl/p2p/sockets/stream_socket.h"

namespace tributary::nccl {

/// A part of one message, on one of a connection's data sockets.
struct Piece {
  std::byte* data = nullptr;                   // sent from or received to; a sender never writes to it
  std::size_t bytes = 0;                       // at least 1
  std::atomic<std::uint32_t>* left = nullptr;  // of its message: counted down when the piece is through
};

class HelperThreads {
 public:
  enum class Direction : std::uint8_t { send, receive };

  /// Socket i is thread (i mod threads)'s. The threads start with the first piece.
  HelperThreads(Direction direction, std::vector<StreamSocket> sockets, std::uint32_t threads);
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // ---- the connection's thread
  /// At most kNetRequestsMax for each socket may be under way.
  void give(std::uint32_t socket, const Piece& piece);
  /// A socket has broken: no piece goes on.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string failure() const;
  /// When this returns nobody touches a piece's memory any more, and the sockets are closed, for good. Does not wait
  /// for the network.
  void stop();

 private:
  struct DataSocket;
  class Helper;

  void fail(const Error& why);

  const Direction direction_;
  std::vector<std::unique_ptr<DataSocket>> sockets_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  bool started_ = false;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string failure_;  // with the mutex
};

}  // namespace tributary::nccl
