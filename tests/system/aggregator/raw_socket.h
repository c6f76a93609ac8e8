#pragma once
// A plain TCP connection to this machine, for tests that act as strangers.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace tributary::aggregator::test {

class RawSocket {
 public:
  /// Connects to 127.0.0.1; connected() tells whether this has succeeded.
  explicit RawSocket(std::uint16_t port);
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] bool connected() const noexcept { return fd_ >= 0; }
  /// Returns false if the other side has closed.
  bool send(std::span<const std::byte> bytes) const;
  bool send(std::string_view text) const { return send(std::as_bytes(std::span(text))); }
  /// Returns all bytes until the other side closes, or until the limit.
  [[nodiscard]] std::string read_to_end(std::chrono::milliseconds limit = std::chrono::seconds(10)) const;
  /// Returns whether the other side closes, or has closed, within the limit.
  [[nodiscard]] bool closed_by_peer(std::chrono::milliseconds limit = std::chrono::seconds(10)) const;
  void close();

 private:
  int fd_;
};

struct HttpReply {
  unsigned status = 0;
  std::string body;
};
/// Sends "GET /path" to 127.0.0.1; the status is 0 if the answer is not HTTP.
[[nodiscard]] HttpReply http_get(std::uint16_t port, const std::string& path);

/// Raises this process's limit of descriptors: every connection of a test also needs a descriptor in this process.
void raise_descriptor_limit();

}  // namespace tributary::aggregator::test
