#pragma once
// Sends requests to the kernel's network configuration (rtnetlink), one at a time.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// A request under construction: the header, a fixed body, then attributes, which may contain further attributes.
class NetlinkMessage {
 public:
  /// `flags`: flags in addition to every request's flags.
  NetlinkMessage(std::uint16_t type, std::uint16_t flags);

  template <class T>
  void body(const T& value) {
    append(bytes_of(value));
  }
  void attribute(std::uint16_t type, std::span<const std::byte> value);
  template <class T>
  void attribute(std::uint16_t type, const T& value) {
    attribute(type, std::span<const std::byte>(bytes_of(value)));
  }
  /// Adds a text that ends with a zero byte, as names of devices and kinds do.
  void text(std::uint16_t type, std::string_view value);
  /// Adds an attribute that contains everything that `fill` appends.
  template <class Fill>
  void nested(std::uint16_t type, const Fill& fill) {
    const std::size_t at = begin(type);
    fill();
    end(at);
  }
  /// Sets the length and the number, and returns the bytes to send.
  [[nodiscard]] std::span<const std::byte> finish(std::uint32_t number);

 private:
  template <class T>
  [[nodiscard]] static std::array<std::byte, sizeof(T)> bytes_of(const T& value) {
    return std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  }
  void append(std::span<const std::byte> bytes);
  [[nodiscard]] std::size_t begin(std::uint16_t type);
  void end(std::size_t at);
  std::vector<std::byte> bytes_;
};

/// A socket for requests. It belongs to the network namespace in which a thread has opened it.
class NetlinkSocket {
 public:
  [[nodiscard]] static Result<NetlinkSocket> open();
  NetlinkSocket(NetlinkSocket&& from) noexcept;
  NetlinkSocket& operator=(NetlinkSocket&&) = delete;
  ~NetlinkSocket();

  /// Sends the request, and waits for the kernel's answer. `what` names the request in an error.
  [[nodiscard]] Status ask(NetlinkMessage& message, std::string_view what);

 private:
  explicit NetlinkSocket(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  std::uint32_t number_ = 0;
};

}  // namespace tributary::cli
