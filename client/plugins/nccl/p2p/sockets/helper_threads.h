#pragma once
// The threads that move a connection's pieces over its data sockets, where NCCL_SOCKET_NTHREADS asks for some.
//
// Each helper thread owns some sockets, and each socket has a row of pieces: the connection's thread adds pieces at one
// end, and the helper takes them from the other, in order. The row needs no lock, because each end has one writer. If
// none of a helper's sockets can go on, it sleeps until one can, or until it gets a piece.
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
  std::byte* data = nullptr;                   // the memory to send from, which is only read, or to receive into
  std::size_t bytes = 0;                       // at least 1
  std::atomic<std::uint32_t>* left = nullptr;  // its message's count of pieces, which falls when this one is done
};

class HelperThreads {
 public:
  enum class Direction : std::uint8_t { send, receive };

  /// Thread (i mod threads) owns socket i. The threads start with the first piece.
  HelperThreads(Direction direction, std::vector<StreamSocket> sockets, std::uint32_t threads);
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // ---- the connection's thread
  /// Queues a piece. Each socket may have at most kNetRequestsMax pieces under way.
  void give(std::uint32_t socket, const Piece& piece);
  /// True if a socket has broken: no piece moves any more.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string failure() const;
  /// Ends the threads and closes the sockets for good. When this returns, no thread touches a piece's memory any more.
  /// Does not wait for the network.
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
