#pragma once
// A connected TCP socket that no transport watches. Its owner may call it at any time, and no call blocks. If the
// connection is sealed, the bytes travel in records.
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "tributary/protocol/error.h"
#include "tributary/transport/sealed_socket.h"

namespace tributary::nccl {

class StreamSocket {
 public:
  /// Takes over the socket, which must be non-blocking. `peer` is the other end's address, for error texts.
  StreamSocket(transport::ReleasedSocket from, std::string peer)
      : descriptor_(from.socket), seal_(std::move(from.seal)), peer_(std::move(peer)) {}
  ~StreamSocket() { close(); }
  StreamSocket(StreamSocket&& from) noexcept
      : descriptor_(std::exchange(from.descriptor_, -1)), seal_(std::move(from.seal_)), peer_(std::move(from.peer_)) {}
  StreamSocket& operator=(StreamSocket&& from) noexcept;

  /// Returns how many bytes the system has taken; 0 if it has no room now. The caller offers all other bytes again,
  /// unchanged. After an error the connection is lost.
  [[nodiscard]] Result<std::size_t> write(std::span<iovec> parts);
  /// Returns how many bytes have come; 0 if no bytes are there now. After an error the connection is lost. If the other
  /// end has closed, this is an error, too.
  [[nodiscard]] Result<std::size_t> read(std::span<iovec> parts);
  /// Returns the number of bytes that were written and that the other end's system has not confirmed yet.
  [[nodiscard]] std::size_t under_way() const noexcept;
  /// Returns the shortest round trip that the system has measured, or one second if the system reports none.
  [[nodiscard]] std::chrono::microseconds shortest_round_trip() const noexcept;
  /// Returns an error if the connection is broken. Use it while the connection is not read. Bytes that came before the
  /// other end's close can still be read.
  [[nodiscard]] Status check() const;

  /// Closes the socket. The other end notices this at once. Call only the destructor afterwards.
  void close() noexcept;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

 private:
  [[nodiscard]] Error lost(int error) const;

  int descriptor_;
  std::unique_ptr<transport::SealedSocket> seal_;  // nullptr: bytes travel in clear
  std::string peer_;
};

}  // namespace tributary::nccl
