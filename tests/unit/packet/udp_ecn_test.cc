// Congestion marks in the IP header: the traffic class that a UDP transport sends, and its reaction to marks that
// arrive. A relay between client and server sees each datagram's traffic class, and forwards it with another class.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>

#include "tests/unit/transport/counter.h"
#include "tests/unit/transport/peer.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

constexpr int kEcnBits = 3;
constexpr int kNotCapable = 0, kCapable = 2, kCongested = 3;

struct Family {
  int family;
  const char* host;
  int level, traffic_class, tell_class;
};
constexpr Family kFour{AF_INET, "127.0.0.1", IPPROTO_IP, IP_TOS, IP_RECVTOS};
constexpr Family kSix{AF_INET6, "::1", IPPROTO_IPV6, IPV6_TCLASS, IPV6_RECVTCLASS};

/// A UDP socket on the loopback interface.
class RelaySocket {
 public:
  RelaySocket(const Family& family, int traffic_class) : family_(family) {
    socket_ = ::socket(family.family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    const int on = 1;
    (void)::setsockopt(socket_, family.level, family.tell_class, &on, sizeof on);
    (void)::setsockopt(socket_, family.level, family.traffic_class, &traffic_class, sizeof traffic_class);
    const auto own = address(0);
    open_ = socket_ >= 0 && ::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0;
  }
  ~RelaySocket() { ::close(socket_); }
  RelaySocket(const RelaySocket&) = delete;
  RelaySocket& operator=(const RelaySocket&) = delete;

  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] std::uint16_t port() const {
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    (void)::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
    return port_of(own);
  }

  struct Datagram {
    std::vector<std::byte> bytes;
    std::uint16_t from = 0;
    int ecn = 0;
  };
  std::optional<Datagram> receive() {
    std::array<std::byte, 65536> buffer;
    alignas(cmsghdr) std::array<char, 256> control{};
    sockaddr_storage from{};
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t bytes = ::recvmsg(socket_, &message, 0);
    if (bytes < 0) return std::nullopt;
    Datagram datagram{{buffer.begin(), buffer.begin() + bytes}, port_of(from), 0};
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level != family_.level || one->cmsg_type != family_.traffic_class) continue;
      datagram.ecn = std::to_integer<int>(*reinterpret_cast<const std::byte*>(CMSG_DATA(one))) & kEcnBits;
    }
    return datagram;
  }
  void send(std::uint16_t to, std::span<const std::byte> bytes) {
    const auto peer = address(to);
    (void)::sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&peer), sizeof peer);
  }

 private:
  static std::uint16_t port_of(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  [[nodiscard]] sockaddr_storage address(std::uint16_t port) const {
    sockaddr_storage address{};
    if (family_.family == AF_INET) {
      sockaddr_in four{};
      four.sin_family = AF_INET;
      four.sin_port = htons(port);
      four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::memcpy(&address, &four, sizeof four);
    } else {
      sockaddr_in6 six{};
      six.sin6_family = AF_INET6;
      six.sin6_port = htons(port);
      six.sin6_addr = in6addr_loopback;
      std::memcpy(&address, &six, sizeof six);
    }
    return address;
  }
  const Family& family_;
  int socket_ = -1;
  bool open_ = false;
};

struct Case {
  Family family;
  bool ecn;
};

class Ecn : public ::testing::TestWithParam<Case> {
 protected:
  /// Sends twenty frames from a client to a server, through a relay that forwards them with the traffic class
  /// `relayed`.
  void run(int relayed) {
    const Family& family = GetParam().family;
    UdpTransport server({.ecn = GetParam().ecn, .offloads = false});
    UdpTransport client({.ecn = GetParam().ecn, .offloads = false});
    RelaySocket front(family, kNotCapable), back(family, relayed);
    if (!front.is_open() || !back.is_open()) GTEST_SKIP() << "no loopback address " << family.host;
    Counter taker, giver;
    const auto listener = server.listen({family.host, 0}, taker).value();
    giver.channel = client.connect({family.host, front.port()}, giver, 10s);
    const std::vector<std::byte> payload(500, std::byte{1});
    constexpr std::uint64_t kFrames = 20;
    for (std::uint64_t i = 0; i < kFrames; ++i) giver.channel->send_copy(header_of(i), payload);
    std::uint16_t client_port = 0;
    for (const TimePoint end = Clock::now() + 20s; taker.frames < kFrames && Clock::now() < end;) {
      client.poll({});
      while (const auto datagram = front.receive()) {
        client_port = datagram->from;
        said.insert(datagram->ecn);
        back.send(listener->local().port, datagram->bytes);
      }
      server.poll({});
      while (const auto datagram = back.receive()) {
        said.insert(datagram->ecn);
        front.send(client_port, datagram->bytes);
      }
    }
    EXPECT_EQ(taker.frames, kFrames);
    marked = server.statistics().marked;
  }
  std::set<int> said;  // traffic classes of both sides' datagrams
  std::uint64_t marked = 0;
};

TEST_P(Ecn, IsSaidToBePossibleIfItIsAndNothingElse) {
  run(kCapable);
  EXPECT_EQ(said, (std::set<int>{GetParam().ecn ? kCapable : kNotCapable}));
  EXPECT_EQ(marked, 0U);
}

TEST_P(Ecn, MarksOfTheNetworkAreSeen) {
  run(kCongested);
  EXPECT_GT(marked, 0U);
}

INSTANTIATE_TEST_SUITE_P(Settings, Ecn,
                         ::testing::Values(Case{kFour, true}, Case{kFour, false}, Case{kSix, true}, Case{kSix, false}),
                         [](const auto& one) {
                           return std::string(one.param.family.family == AF_INET ? "ipv4" : "ipv6") +
                                  (one.param.ecn ? "_on" : "_off");
                         });

}  // namespace
}  // namespace tributary::transport::test
