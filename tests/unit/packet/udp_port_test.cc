// Tests the port on the kernel's sockets by itself: shrinking paths, messages of several datagrams, refusals.
#include "transport/udp/udp_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "transport/packet/address.h"
#include "transport/packet/settings.h"

namespace tributary::transport::udp {
namespace {

using namespace std::chrono_literals;
using packet::PacketAddress;
using packet::ReceivedPacket;
using Bytes = std::vector<std::byte>;

std::unique_ptr<packet::PacketPort> open_at(const std::string& host, const UdpSettings& settings = {}) {
  return UdpPort::open({host, 0}, settings).value();
}

/// Waits until at least `count` datagrams have arrived at `port`, or some time has passed, and returns them.
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

/// Runs a function on a thread with a network of its own, which has only a loopback interface. Returns false if the
/// process may not do this.
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

/// Room for one datagram and what the system tells of it.
struct Reception {
  Reception() noexcept {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  std::array<std::byte, 2000> bytes;
  alignas(cmsghdr) std::array<char, 128> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
};

#define IN_OWN_NETWORK(...) \
  if (!in_own_network(__VA_ARGS__)) GTEST_SKIP() << "needs root, for a network namespace, and ip"

TEST(UdpPort, SendsTheProtocolsLeastEvenIfTheSystemBelievesInASmallerPath) {
  IN_OWN_NETWORK([] {
    const auto to = open_at("10.77.0.1");
    const auto from = open_at("10.77.0.1");
    // Change the system's record as if it had believed a router's message, genuine or forged.
    ASSERT_EQ(std::system("ip route change local 10.77.0.1 dev lo table local mtu 576 src 10.77.0.1"), 0);
    EXPECT_LT(from->datagram_bytes_max(to->local()), packet::kDatagramBytesMin);
    send(*from, to->local(), Bytes(packet::kDatagramBytesMin, std::byte{1}));
    send(*from, to->local(), Bytes(packet::kDatagramBytesMin, std::byte{1}), 3);
    EXPECT_EQ(take(*to, 4), std::vector(4, Bytes(packet::kDatagramBytesMin, std::byte{1})));
  });
}

/// Sends `count` datagrams of 1000 bytes from `from` to `to`, and checks the counts of both ports.
void expect_all(packet::PacketPort& from, packet::PacketPort& to, std::size_t count) {
  const Bytes bytes(1000, std::byte{1});
  send(from, to.local(), bytes, count);
  EXPECT_EQ(take(to, count), std::vector(count, bytes));
}

TEST(UdpPort, JoinsDatagramsBothWaysWhereTheSystemCan) {
  const auto to = open_at("127.0.0.1");
  const auto from = open_at("127.0.0.1");
  const Descriptor probe(::socket(AF_INET, SOCK_DGRAM, 0));
  const int on = 1;
  if (::setsockopt(probe.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0)
    GTEST_SKIP() << "this system has no UDP_GRO";
  expect_all(*from, *to, 10);
  EXPECT_EQ(from->counts().joined_sent, 10U);
  EXPECT_EQ(to->counts().joined_received, 10U);
  const auto plain = open_at("127.0.0.1", {.offloads = false});
  expect_all(*plain, *to, 10);
  EXPECT_EQ(plain->counts().joined_sent, 0U);
  expect_all(*from, *plain, 10);
  EXPECT_EQ(plain->counts().joined_received, 0U);
}

TEST(UdpPort, SendsSingleDatagramsToAPeerWhosePathRefusesJoinedOnes) {
  IN_OWN_NETWORK([] {
    const auto near = open_at("127.0.0.1");
    const auto far = open_at("10.77.0.1");
    const auto from = open_at("");
    expect_all(*from, *far, 10);
    ASSERT_EQ(from->counts().joined_sent, 10U);
    // Shrinks the route, so that the port cannot send even one datagram.
    ASSERT_EQ(std::system("ip link set lo mtu 2000"), 0);
    send(*from, far->local(), Bytes(4000, std::byte{1}), 5);
    EXPECT_EQ(from->counts().joined_refused, 5U);
    EXPECT_EQ(from->counts().unsent_too_long, 5U);
    expect_all(*from, *far, 10);
    EXPECT_EQ(from->counts().joined_sent, 10U) << "the port joins nothing for a while";
    expect_all(*from, *near, 10);
    EXPECT_EQ(from->counts().joined_sent, 20U) << "other destinations are not affected";
  });
}

TEST(UdpPort, GivesUpJoiningWhenTheSystemCutsNoMessage) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  UdpPort from(socket, ::eventfd(0, EFD_NONBLOCK), true, true);
  // Without checksums the system does not cut messages; this port then still sends single datagrams.
  const int on = 1;
  ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  const auto first = open_at("127.0.0.1");
  for (int i = 0; i < 3; ++i) expect_all(from, *first, 10);
  EXPECT_EQ(from.counts().joined_refused, 10U) << "the port asks once for each message";
  for (int i = 1; i < 20; ++i) expect_all(from, *open_at("127.0.0.1"), 10);
  EXPECT_EQ(from.counts().joined_refused, 90U);
  EXPECT_EQ(from.counts().unsent_other + from.counts().unsent_too_long + from.counts().unsent_full, 0U);
}

TEST(UdpPort, BearsItsDscpOverBothFamilies) {
  for (const bool four : {true, false}) {
    const int family = four ? AF_INET : AF_INET6;
    const int level = four ? int{IPPROTO_IP} : int{IPPROTO_IPV6};
    const Descriptor far(::socket(family, SOCK_DGRAM, 0));
    const int on = 1;
    ASSERT_EQ(::setsockopt(far.get(), level, four ? IP_RECVTOS : IPV6_RECVTCLASS, &on, sizeof on), 0);
    PacketAddress loopback{};
    loopback.ip[15] = 1;
    if (four) loopback.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
    SocketAddress own = packet::socket_address(loopback, four);
    if (::bind(far.get(), own.get(), own.bytes) != 0) continue;  // this machine has no IPv6
    ASSERT_EQ(::getsockname(far.get(), own.get(), &own.bytes), 0);
    const auto from = open_at("", {.dscp = 46});
    send(*from, packet::packet_address(own), Bytes(100));
    Reception datagram;
    ASSERT_EQ(::recvmsg(far.get(), &datagram.message, 0), 100);
    const cmsghdr* const told = CMSG_FIRSTHDR(&datagram.message);
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(std::to_integer<int>(*reinterpret_cast<const std::byte*>(CMSG_DATA(told))), 46 << 2 | 2);
  }
}

constexpr int kReceiveMark = 75;  // SO_RCVMARK, which headers before Linux 5.19 lack

/// A socket of one family on the loopback interface, which shows the mark of each datagram that comes.
class MarkedSocket {
 public:
  explicit MarkedSocket(bool four) : socket_(::socket(four ? AF_INET : AF_INET6, SOCK_DGRAM, 0)) {
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    const int on = 1;
    PacketAddress loopback{};
    loopback.ip[15] = 1;
    if (four) loopback.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1};
    own_ = packet::socket_address(loopback, four);
    open_ = ::bind(socket_.get(), own_.get(), own_.bytes) == 0 &&
            ::getsockname(socket_.get(), own_.get(), &own_.bytes) == 0 &&
            ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
            ::setsockopt(socket_.get(), SOL_SOCKET, kReceiveMark, &on, sizeof on) == 0;
  }
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] PacketAddress address() const { return packet::packet_address(own_); }
  /// Waits for a datagram. Empty: none came, or it has no mark.
  [[nodiscard]] std::optional<std::uint32_t> take() const {
    Reception datagram;
    msghdr& message = datagram.message;
    if (::recvmsg(socket_.get(), &message, 0) < 0) return std::nullopt;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SO_MARK) continue;
      std::uint32_t mark = 0;
      std::memcpy(&mark, CMSG_DATA(one), sizeof mark);
      return mark;
    }
    return std::nullopt;
  }

 private:
  Descriptor socket_;
  SocketAddress own_;
  bool open_ = false;
};

TEST(UdpPort, MarksEachDatagramWithItsPriorityAndJoinsOnlyThoseOfOneMark) {
  bool seen = false;
  IN_OWN_NETWORK([&seen] {
    struct Case {
      std::string from;
      bool to_four;
    };
    for (const Case& one : {Case{"127.0.0.1", true}, Case{"::1", false}, Case{"", true}, Case{"", false}}) {
      const MarkedSocket to(one.to_four);
      if (!to.is_open()) continue;  // this machine has no IPv6, or its Linux shows no marks
      seen = true;
      const auto from = open_at(one.from);
      const Bytes header(packet::kPacketHeaderBytes);
      const std::vector<std::uint32_t> priorities{0x7471'0010, 0x7471'0010, 0x7471'0011, 0, 0, 0x7471'0010};
      for (const std::uint32_t priority : priorities) {
        from->set_priority(priority);
        ASSERT_TRUE(from->send(to.address(), header, {}));
      }
      from->flush();
      std::vector<std::uint32_t> marks;
      for (std::size_t i = 0; i < priorities.size(); ++i) marks.push_back(to.take().value_or(1));
      EXPECT_EQ(marks, priorities) << "from '" << one.from << "'";
      EXPECT_EQ(from->counts().joined_sent, 4U);
      send(*from, to.address(), Bytes(100));
      EXPECT_EQ(to.take(), 0x7471'0010U) << "the priority stays until the next call";
    }
  });
  if (!seen) GTEST_SKIP() << "this Linux does not show the marks of datagrams that come; Linux 5.19 and later do";
}

/// Takes the rights to mark packets from this thread.
bool give_up_marks() {
  struct {
    std::uint32_t version = 0x2008'0522;  // _LINUX_CAPABILITY_VERSION_3
    int thread = 0;                       // this one
  } which;
  std::array<std::uint32_t, 6> sets{};  // effective, permitted, inheritable; then the same of further capabilities
  if (::syscall(SYS_capget, &which, sets.data()) != 0) return false;
  constexpr std::uint32_t kNetAdmin = 1U << 12U, kNetRaw = 1U << 13U;
  sets[0] &= ~(kNetAdmin | kNetRaw);
  return ::syscall(SYS_capset, &which, sets.data()) == 0;
}

TEST(UdpPort, SendsDatagramsUnmarkedWithoutTheRightToMarkThem) {
  std::thread thread([] {
    ASSERT_TRUE(give_up_marks());
    const auto to = open_at("127.0.0.1");
    const auto from = open_at("127.0.0.1");
    from->set_priority(0x7471'0010);
    expect_all(*from, *to, 3);
    EXPECT_EQ(from->counts().unsent_other, 0U);
  });
  thread.join();
}

TEST(UdpPort, CountsPacketsThatTheSystemRefuses) {
  IN_OWN_NETWORK([] {
    const auto from = open_at("127.0.0.1");  // this port has only IPv4
    const auto six = open_at("::1");
    send(*from, six->local(), Bytes(100));
    EXPECT_EQ(from->counts().unsent_no_way, 1U);
    const auto everywhere = open_at("");
    PacketAddress nowhere = from->local();
    nowhere.ip[12] = 192;  // an address without a route
    send(*everywhere, nowhere, Bytes(100));
    send(*everywhere, nowhere, Bytes(1000), 10);
    EXPECT_EQ(everywhere->counts().unsent_no_way, 11U);
  });
}

TEST(UdpPort, IsNotKeptFromReadingByRefusals) {
  const auto to = open_at("127.0.0.1");
  const auto from = open_at("127.0.0.1");
  std::vector<PacketAddress> gone;
  for (int i = 0; i < 40; ++i) gone.push_back(open_at("127.0.0.1")->local());
  for (const PacketAddress& nobody : gone) send(*to, nobody, Bytes(100, std::byte{2}));
  send(*from, to->local(), Bytes(100, std::byte{1}), 3);
  std::array<ReceivedPacket, 32> into;
  std::size_t data = 0;
  std::size_t refused = 0;
  std::size_t turns = 0;
  for (const TimePoint end = Clock::now() + 5s; data < 3 && Clock::now() < end; ++turns) {
    const std::size_t count = to->receive(into);
    for (const ReceivedPacket& one : std::span(into).first(count)) ++(one.refused ? refused : data);
  }
  EXPECT_EQ(data, 3U);
  EXPECT_LE(turns, 2U);
  EXPECT_LE(refused, 8U) << "the refusals leave room for data";
  for (const TimePoint end = Clock::now() + 5s; refused < 20 && Clock::now() < end;) {
    const std::size_t count = to->receive(into);
    for (const ReceivedPacket& one : std::span(into).first(count)) refused += one.refused ? 1U : 0U;
  }
  EXPECT_GE(refused, 20U) << "the system may limit their rate";
}

}  // namespace
}  // namespace tributary::transport::udp
