// Sockets whose packets are lost: the options that the library sets for Linux, and the pushes of the connection itself.
#include "transport/tcp/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "tests/unit/transport/peer.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

TEST(TcpSocket, SendsALastPacketThatIsLostAgainSoonerThanLinuxDoesByItself) {
  constexpr int kRtoMinUs = 45, kDelackMaxUs = 46;
  const int socket = open_socket(AF_INET, {});
  ASSERT_GE(socket, 0);
  const auto option = [&](int name) {
    int value = 0;
    socklen_t bytes = sizeof value;
    return ::getsockopt(socket, IPPROTO_TCP, name, &value, &bytes) == 0 ? value : -errno;
  };
  const int patience_us = option(kRtoMinUs), delay_us = option(kDelackMaxUs);
  ::close(socket);
  if (patience_us == -ENOPROTOOPT) GTEST_SKIP() << "this Linux is older than 6.15";
  EXPECT_GT(patience_us, 0);
  EXPECT_LE(patience_us, 20'000) << "200 ms is what Linux takes";
  EXPECT_GT(delay_us, 0);
  EXPECT_LT(delay_us, patience_us) << "else the sender takes a late acknowledgement for a loss";
}

int sockets_with_priority(int wanted) {
  int count = 0;
  for (int socket = 3; socket < 1024; ++socket) {
    int priority = -1;
    socklen_t bytes = sizeof priority;
    count += ::getsockopt(socket, SOL_SOCKET, SO_PRIORITY, &priority, &bytes) == 0 && priority == wanted ? 1 : 0;
  }
  return count;
}

TEST(TcpSocket, HasThePriorityOfItsChannelOnceItIsOpenOrEarlier) {
  constexpr std::uint32_t kPriority = 5;  // the system takes numbers up to 6 from everyone
  TcpTransport transport;
  PeerAcceptor acceptor;
  const auto listener = transport.listen({"127.0.0.1", 0}, acceptor);
  ASSERT_TRUE(listener);
  Peer early;
  early.channel = transport.connect({"localhost", (*listener)->local().port}, early, 10s);
  early.channel->set_priority(kPriority);  // the name is not looked up yet, so there is no socket
  EXPECT_EQ(sockets_with_priority(kPriority), 0);
  const auto opened = [&] { return early.opened && acceptor.peers.size() == 1; };
  for (const TimePoint end = Clock::now() + 10s; !opened() && Clock::now() < end;) transport.poll(1ms);
  ASSERT_TRUE(opened());
  EXPECT_EQ(sockets_with_priority(kPriority), 1);
  acceptor.peers.front()->channel->set_priority(kPriority);
  EXPECT_EQ(sockets_with_priority(kPriority), 2);
}

/// Runs on a thread with a network namespace of its own, and changes the queue of this namespace's loopback.
void send_through_a_queue_that_drops() {
  const auto run = [](const char* command) { return std::system(command) == 0; };  // NOLINT(cert-env33-c)
  ASSERT_TRUE(run("ip link set lo up && tc qdisc add dev lo root handle 1: bfifo limit 1000000"));
  TcpTransport transport;
  PeerAcceptor acceptor;
  const auto listener = transport.listen({"127.0.0.1", 0}, acceptor);
  ASSERT_TRUE(listener);
  Peer sender;
  sender.channel = transport.connect((*listener)->local(), sender, 10s);
  const auto poll_until = [&](const std::function<bool()>& done) {
    for (const TimePoint end = Clock::now() + 30s; !done() && Clock::now() < end;) transport.poll(1ms);
    return done();
  };
  ASSERT_TRUE(poll_until([&] { return sender.opened && acceptor.peers.size() == 1; }));
  transport.poll(50ms);  // nothing is under way

  ASSERT_TRUE(run("tc qdisc change dev lo root handle 1: bfifo limit 1"));
  const auto payload = pattern(2000, 1);
  ASSERT_TRUE(sender.channel->send(header_of(1), payload, 1));
  ASSERT_TRUE(poll_until([&] { return transport.statistics().pushes >= 2; })) << "Linux alone would wait";
  EXPECT_TRUE(acceptor.peers[0]->frames.empty()) << "the queue drops everything";
  ASSERT_TRUE(run("tc qdisc change dev lo root handle 1: bfifo limit 1000000"));
  ASSERT_TRUE(poll_until([&] { return !acceptor.peers[0]->frames.empty(); }));
  EXPECT_EQ(acceptor.peers[0]->frames[0].payload, payload);
  const std::uint64_t pushes = transport.statistics().pushes;
  transport.poll(300ms);
  EXPECT_EQ(transport.statistics().pushes, pushes) << "once all has arrived, nobody looks any more";
}

TEST(TcpSocket, PushesWhatAQueueOfThisHostHasDroppedWhereNothingElseIsUnderWay) {
  bool apart = false;
  std::thread([&] {
    apart = ::unshare(CLONE_NEWNET) == 0;
    if (apart) send_through_a_queue_that_drops();
  }).join();
  if (!apart) GTEST_SKIP() << "a network namespace of its own needs root";
}

}  // namespace
}  // namespace tributary::transport::test
