#pragma once
// A connected TCP socket that no transport watches: its owner asks it when it likes, and is never kept waiting.
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "tributary/protocol/error.h"

namespace tributary::nccl {

class StreamSocket {
 public:
  /// Owns the descriptor, which must not block. `peer`: the other end's address, for messages.
  StreamSocket(int descriptor, std::string peer) : descriptor_(descriptor), peer_(std::move(peer)) {}
  ~StreamSocket() { close(); }
  StreamSocket(StreamSocket&& from) noexcept
      : descriptor_(std::exchange(from.descriptor_, -1)), peer_(std::move(from.peer_)) {}
  StreamSocket& operator=(StreamSocket&& from) noexcept;

  /// Returns how many bytes the system has taken; 0: it has no room now. An error is the connection's end.
  [[nodiscard]] Result<std::size_t> write(std::span<iovec> parts);
  /// Returns how many bytes have come; 0: none now. An error is the connection's end, the other side's close among
  /// them.
  [[nodiscard]] Result<std::size_t> read(std::span<iovec> parts);
  /// The number of bytes that were written and not yet confirmed by the other end's system.
  [[nodiscard]] std::size_t under_way() const noexcept;
  /// The shortest round trip that the system has seen; a long one where it does not say.
  [[nodiscard]] std::chrono::microseconds shortest_round_trip() const noexcept;
  /// For a connection that is not read at the moment: an error where it is broken. What has come before the other
  /// side's close can still be read.
  [[nodiscard]] Status check() const;

  /// The other end hears of it at once. No other call afterwards.
  void close() noexcept;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

 private:
  [[nodiscard]] Error lost(int error) const;

  int descriptor_;
  std::string peer_;
};

}  // namespace tributary::nccl
