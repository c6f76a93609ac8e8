#pragma once
// A datagram socket of the kernel at the far end of a pair of interfaces.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "tests/dpdk/port/veth.h"
#include "transport/ethernet/addresses.h"
#include "transport/packet/address.h"

namespace tributary::transport::dpdk::test {

inline packet::PacketAddress at(const char* ip, std::uint16_t port) {
  return {ethernet::parse_ip(ip).value(), port};
}

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 13 + seed);
  return bytes;
}

/// Opens a socket in the far namespace.
class FarSocket {
 public:
  FarSocket(const Veth& veth, int family, int type, int protocol) {
    veth.far([&] { socket_ = ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol); });
    EXPECT_GE(socket_, 0) << std::strerror(errno);
  }
  ~FarSocket() { ::close(socket_); }
  FarSocket(const FarSocket&) = delete;
  FarSocket& operator=(const FarSocket&) = delete;
  [[nodiscard]] bool bind(const char* ip, std::uint16_t port) const {
    const auto address = packet::socket_address(at(ip, port), std::strchr(ip, '.') != nullptr);
    return ::bind(socket_, address.get(), address.bytes) == 0;
  }
  [[nodiscard]] bool send(const char* ip, std::uint16_t port, std::span<const std::byte> bytes) const {
    const auto address = packet::socket_address(at(ip, port), std::strchr(ip, '.') != nullptr);
    return ::sendto(socket_, bytes.data(), bytes.size(), 0, address.get(), address.bytes) ==
           static_cast<ssize_t>(bytes.size());
  }
  [[nodiscard]] std::optional<std::vector<std::byte>> receive() const {
    std::vector<std::byte> bytes(65536);
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got < 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  [[nodiscard]] bool mark(int family) const {
    const int tos = 3;  // congestion experienced
    return family == AF_INET ? ::setsockopt(socket_, IPPROTO_IP, IP_TOS, &tos, sizeof tos) == 0
                             : ::setsockopt(socket_, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos) == 0;
  }

 private:
  int socket_ = -1;
};

}  // namespace tributary::transport::dpdk::test
