// The port on the kernel's sockets, by itself: paths that shrink.
#include "udp/udp_port.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "packet/settings.h"

namespace tributary::transport::udp {
namespace {

using namespace std::chrono_literals;
using packet::PacketAddress;
using packet::ReceivedPacket;
using Bytes = std::vector<std::byte>;

std::unique_ptr<packet::PacketPort> open_at(const std::string& host, const UdpSettings& settings = {}) {
  return UdpPort::open({host, 0}, settings).value();
}

/// What `port` shows within a while, at least `count`.
std::vector<Bytes> take(packet::PacketPort& port, std::size_t count) {
  std::vector<Bytes> all;
  for (const TimePoint end = Clock::now() + 5s; all.size() < count && Clock::now() < end;) {
    std::array<ReceivedPacket, 32> into;
    const std::size_t shown = port.receive(into);
    for (const auto& one : std::span(into).first(shown)) {
      if (!one.refused) all.emplace_back(one.bytes.begin(), one.bytes.end());
    }
    if (shown == 0) port.wait(10ms);
  }
  return all;
}

void send(packet::PacketPort& port, const PacketAddress& to, const Bytes& bytes, std::size_t count = 1) {
  const auto head = std::span(bytes).first(std::min<std::size_t>(bytes.size(), packet::kPacketHeaderBytes));
  for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(port.send(to, head, std::span(bytes).subspan(head.size())));
  port.flush();
}

/// On a thread with a network of its own, in which nothing is but its loopback interface. False: not permitted.
bool in_own_network(const std::function<void()>& run) {
  bool permitted = false;
  std::thread thread([&] {
    permitted =
        ::unshare(CLONE_NEWNET) == 0 && std::system("ip link set lo up && ip address add 10.77.0.1/32 dev lo") == 0;
    if (permitted) run();
  });
  thread.join();
  return permitted;
}

#define IN_OWN_NETWORK(...) \
  if (!in_own_network(__VA_ARGS__)) GTEST_SKIP() << "needs root, for a network namespace, and ip"

TEST(UdpPort, SendsTheProtocolsLeastWhateverTheSystemBelievesOfThePath) {
  IN_OWN_NETWORK([] {
    const auto to = open_at("10.77.0.1");
    const auto from = open_at("10.77.0.1");
    // As after a router's word, genuine or forged, that the system has believed.
    ASSERT_EQ(std::system("ip route change local 10.77.0.1 dev lo table local mtu 576 src 10.77.0.1"), 0);
    EXPECT_LT(from->datagram_bytes_max(to->local()), packet::kDatagramBytesMin);
    send(*from, to->local(), Bytes(packet::kDatagramBytesMin, std::byte{1}));
    send(*from, to->local(), Bytes(packet::kDatagramBytesMin, std::byte{1}), 3);
    EXPECT_EQ(take(*to, 4), std::vector(4, Bytes(packet::kDatagramBytesMin, std::byte{1})));
  });
}

}  // namespace
}  // namespace tributary::transport::udp
