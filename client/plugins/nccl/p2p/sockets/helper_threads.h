#pragma once
// The threads that move a connection's pieces over its data sockets, if NCCL_SOCKET_NTHREADS asks for such threads.
//
// Each helper thread owns some sockets, and each socket has a queue of pieces. The connection's thread adds pieces at
// the end of the queue, and the helper takes them from its front. The queue needs no lock, because each end has one
// writer. If no socket of a helper is ready, the helper sleeps until a socket is ready or a new piece comes.
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
  std::byte* data = nullptr;                   // memory to send from (only read), or to receive into
  std::size_t bytes = 0;                       // at least 1
  std::atomic<std::uint32_t>* left = nullptr;  // count of the message's unfinished pieces
};

class HelperThreads {
 public:
  enum class Direction : std::uint8_t { send, receive };

  /// Thread (i mod threads) owns socket i. The threads start with the first piece.
  HelperThreads(Direction direction, std::vector<StreamSocket> sockets, std::uint32_t threads);
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // Functions that the connection's thread calls.
  /// Queues a piece. Each socket may have at most kNetRequestsMax unfinished pieces.
  void give(std::uint32_t socket, const Piece& piece);
  /// Returns true if a socket has broken. Then no more pieces move.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string failure() const;
  /// Ends the threads and closes the sockets; they cannot start again. When this returns, no thread touches a piece's
  /// memory any more. It does not wait for the network.
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
  std::string failure_;  // guarded by mutex_
};

}  // namespace tributary::nccl
