// Checks how a rank's settings for packets over UDP change its packets.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "client/api/transports.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

class Nobody final : public transport::ChannelHandler {
 public:
  transport::Placement on_header(transport::Channel&, const FrameHeader&) override { return transport::Accept{}; }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_closed(transport::Channel&, const Error&) override {}
};

struct Opening {
  int traffic_class = -1;
  std::uint32_t datagram_bytes_max = 0;
};

/// The first packet of a rank that connects to the test's socket.
Opening opening_of(const UdpRank& udp) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  const int on = 1;
  EXPECT_EQ(::setsockopt(socket, IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size), 0);
  auto transport = make_transport("udp", "127.0.0.1", {}, nullptr, {}, {}, udp).value();
  Nobody handler;
  const auto channel = transport->connect({"127.0.0.1", ntohs(own.sin_port)}, handler, 10s);
  transport->poll({});
  pollfd waits{socket, POLLIN, 0};
  EXPECT_EQ(::poll(&waits, 1, 5000), 1);
  std::array<std::byte, 2048> bytes;
  alignas(cmsghdr) std::array<char, 128> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  EXPECT_EQ(::recvmsg(socket, &message, MSG_DONTWAIT), 128) << "the packet `open` has a header and a handshake";
  Opening opening;
  std::memcpy(&opening.datagram_bytes_max, bytes.data() + 64 + 32, sizeof opening.datagram_bytes_max);
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_TOS) {
      opening.traffic_class = std::to_integer<int>(*reinterpret_cast<const std::byte*>(CMSG_DATA(one)));
    }
  }
  ::close(socket);
  return opening;
}

TEST(UdpRank, SendsAsItsSettingsSay) {
  const Opening usual = opening_of({});
  EXPECT_EQ(usual.traffic_class, 2) << "packets are ECN-capable, and have no code point";
  EXPECT_EQ(usual.datagram_bytes_max, 16384U);
  const Opening other = opening_of({.datagram_bytes_max = 1472, .ecn = false, .dscp = 46});
  EXPECT_EQ(other.traffic_class, 46 << 2);
  EXPECT_EQ(other.datagram_bytes_max, 1472U);
  EXPECT_EQ(opening_of({.dscp = 26}).traffic_class, 26 << 2 | 2);
}

}  // namespace
}  // namespace tributary::client
