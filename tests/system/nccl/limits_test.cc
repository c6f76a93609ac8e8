// The time that a connect takes at most (one second here, by TRIBUTARY_NCCL_CONNECT_TIMEOUT), the end of connections
// that NCCL gives up, and the options of a communicator: traffic class and profiler.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "client/plugins/nccl/collective/collnet.h"
#include "tests/system/nccl/granting_manager.h"
#include "tests/system/nccl/listening.h"
#include "tributary/tributary.h"

namespace tributary::nccl {
namespace {

using enum abi::Result;
using std::chrono::seconds;

void no_log(abi::LogLevel, unsigned long, const char*, int, const char*, ...) {}

/// A process that accepts and never says a word.
class SilentListener {
 public:
  SilentListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    at_.sin_family = AF_INET;
    at_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at_;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&at_), length), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at_), &length), 0);
  }
  ~SilentListener() {
    ::close(taken_);
    ::close(socket_);
  }
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;

  /// Returns a handle that leads here.
  [[nodiscard]] HandleBytes bytes(const Listening& like) const {
    NetHandle handle = like.handle();
    handle.port = ntohs(at_.sin_port);
    return bytes_of(handle);
  }
  [[nodiscard]] std::uint16_t port() const { return ntohs(at_.sin_port); }
  void accept() { taken_ = ::accept(socket_, nullptr, nullptr); }
  /// Returns true if the connecting end closes within the limit.
  [[nodiscard]] bool sees_the_end() const {
    std::array<char, 4096> bytes{};
    const auto until = Clock::now() + kLimit;
    while (Clock::now() < until) {
      pollfd one{taken_, POLLIN, 0};
      if (::poll(&one, 1, 1000) == 1 && ::recv(taken_, bytes.data(), bytes.size(), 0) <= 0) return true;
    }
    return false;
  }

 private:
  const int socket_;
  int taken_ = -1;
  sockaddr_in at_{};
};

TEST(ConnectLimit, EndsAConnectToAProcessThatNeverProvesItself) {
  const Listening like;
  const SilentListener silent;
  HandleBytes handle = silent.bytes(like);
  const auto begin = Clock::now();
  void* sending = nullptr;
  abi::Result result = success;
  until("connect", [&] { return (result = net::connect(nullptr, 0, handle.data(), &sending)) != success; });
  EXPECT_EQ(result, remote_error);
  EXPECT_EQ(sending, nullptr);
  EXPECT_GE(Clock::now() - begin, seconds(1));
  EXPECT_LT(Clock::now() - begin, seconds(30)) << "TRIBUTARY_TIMEOUT is 300 s";
}

// After ncclCommAbort NCCL no longer calls connect, and has no pointer that it could close.
TEST(ConnectLimit, EndsConnectionsThatAreNotOpenWithTheCommunicator) {
  const Listening like;
  SilentListener silent;
  HandleBytes handle = silent.bytes(like);
  void *context = nullptr, *sending = nullptr;
  ASSERT_EQ(net::init(12, &context, no_log), success);
  ASSERT_EQ(net::connect(context, 0, handle.data(), &sending), success);
  ASSERT_EQ(sending, nullptr);
  silent.accept();
  ASSERT_EQ(net::finalize(context), success);
  EXPECT_TRUE(silent.sees_the_end());
}

TEST(ConnectLimit, EndsCollNetsConnectWhenARankDoesNotCome) {
  const GrantingManager manager;
  std::array<HandleBytes, 2> handles{};
  std::array<void*, 2> listening{};
  for (std::size_t i = 0; i < 2; ++i) ASSERT_EQ(collnet::listen(0, handles[i].data(), &listening[i]), success);
  std::array<void*, 2> all{handles[0].data(), handles[1].data()};
  const auto begin = Clock::now();
  void* comm = nullptr;
  EXPECT_NE(collnet::connect(all.data(), 2, 0, listening[0], &comm), success);
  EXPECT_EQ(comm, nullptr);
  EXPECT_GE(Clock::now() - begin, seconds(1));
  EXPECT_LT(Clock::now() - begin, seconds(30)) << "TRIBUTARY_TIMEOUT is 300 s";
  for (void* const one : listening) EXPECT_EQ(collnet::close_listen(one), success);
}

// The other rank ends the ranks' first call, and then gives up as if its time were over.
TEST(ConnectLimit, EndsCollNetsConnectOnAllRanksWhenOneOfThemGivesUpAtTheLastMoment) {
  const GrantingManager manager;
  std::array<HandleBytes, 2> handles{};
  std::array<void*, 2> listening{};
  for (std::size_t i = 0; i < 2; ++i) ASSERT_EQ(collnet::listen(0, handles[i].data(), &listening[i]), success);
  std::thread late([&] {
    tributary_unique_id id{};
    std::memcpy(&id, handles[0].data(), sizeof id);
    tributary_comm* comm = nullptr;
    if (tributary_comm_init_rank(&comm, 2, &id, 1) != TRIBUTARY_OK) return;  // rank 0 has given up before
    std::array<std::uint64_t, 2> rates{};
    (void)tributary_all_reduce(rates.data(), rates.data(), 2, TRIBUTARY_UINT64, TRIBUTARY_MAX, comm, nullptr);
    EXPECT_EQ(tributary_comm_abort(comm), TRIBUTARY_OK);
  });
  std::array<void*, 2> all{handles[0].data(), handles[1].data()};
  void* comm = nullptr;
  EXPECT_NE(collnet::connect(all.data(), 2, 0, listening[0], &comm), success);
  EXPECT_EQ(comm, nullptr);
  late.join();
  for (void* const one : listening) EXPECT_EQ(collnet::close_listen(one), success);
}

/// Returns the traffic class of this process's connection to a port; -1 if there is none.
int class_of_connection_to(std::uint16_t port) {
  for (int socket = 0; socket < 1024; ++socket) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.sin_family != AF_INET) continue;
    int value = -1;
    length = sizeof value;
    if (ntohs(peer.sin_port) == port && ::getsockopt(socket, IPPROTO_IP, IP_TOS, &value, &length) == 0) return value;
  }
  return -1;
}

TEST(TrafficClass, IsOnTheConnectionsOfItsCommunicator) {
  const Listening like;
  for (const auto& [given, expected] : {std::pair{104, 104}, {abi::kNoTrafficClass, 0}, {256, 0}}) {
    const SilentListener silent;
    HandleBytes handle = silent.bytes(like);
    void *context = nullptr, *sending = nullptr;
    const abi::CommConfig config{given};
    ASSERT_EQ(net::init(12, &context, no_log, &config), success);
    ASSERT_EQ(net::connect(context, 0, handle.data(), &sending), success);
    EXPECT_EQ(class_of_connection_to(silent.port()), expected);
    ASSERT_EQ(net::finalize(context), success);
  }
}

TEST(TrafficClass, IsOnTheConnectionsOfAConnectOfVersion10) {
  const Listening like;
  const SilentListener silent;
  HandleBytes handle = silent.bytes(like);
  void* sending = nullptr;
  const abi::CommConfig config{184};
  ASSERT_EQ(net::connect(nullptr, 0, handle.data(), &sending, &config), success);
  EXPECT_EQ(class_of_connection_to(silent.port()), 184);
}

/// The calls that NCCL's profiler gets.
struct Call {
  int kind;
  void* parent;
  std::int64_t plugin;
  int operation;
  std::size_t bytes;
};
std::vector<Call>& calls() {
  static std::vector<Call> list;
  return list;
}
abi::Result note(void** event, int kind, void* parent, std::int64_t plugin, void* extra) {
  static int handle = 0;
  const auto* const data = static_cast<const abi::SocketEvent*>(extra);
  calls().push_back({kind, parent, plugin, data == nullptr ? -1 : data->operation, data == nullptr ? 0 : data->bytes});
  if (kind == abi::profiler::kStart) *event = &handle;
  return success;
}

void finish(void* request) {
  until("test", [&] {
    int done = 0;
    EXPECT_EQ(net::test(request, &done, nullptr), success);
    return done != 0;
  });
}

TEST(Profiler, SeesEachMessageFromItsPostToItsEnd) {
  void* context = nullptr;
  ASSERT_EQ(net::init(12, &context, no_log, nullptr, note), success);
  Listening at;
  HandleBytes handle = at.bytes();
  void *sending = nullptr, *receiving = nullptr;
  until("the connection", [&] {
    if (sending == nullptr) {
      EXPECT_EQ(net::connect(context, 0, handle.data(), &sending), success);
    }
    if (receiving == nullptr) receiving = at.accept_now();
    return sending != nullptr && receiving != nullptr;
  });
  int send_parent = 0, receive_parent = 0;
  std::array<char, 100> from{}, to{};
  void *sent = nullptr, *received = nullptr, *room = to.data();
  const std::size_t bytes = to.size();
  const int tag = 7;
  ASSERT_EQ(net::receive(receiving, 1, &room, &bytes, &tag, &received, &receive_parent), success);
  ASSERT_EQ(net::send(sending, from.data(), from.size(), tag, &sent, &send_parent), success);
  ASSERT_EQ(calls().size(), 2U);
  EXPECT_EQ(calls()[0].parent, &receive_parent);
  EXPECT_EQ(calls()[0].operation, 1);
  EXPECT_EQ(calls()[1].parent, &send_parent);
  EXPECT_EQ(calls()[1].operation, 0);
  for (const Call& call : calls()) {
    EXPECT_EQ(call.kind, abi::profiler::kStart);
    EXPECT_EQ(call.plugin, (2 << 16) | 1) << "a socket transport, with the first version of its events";
    EXPECT_EQ(call.bytes, 100U);
  }
  finish(sent);
  finish(received);
  ASSERT_EQ(calls().size(), 4U);
  EXPECT_EQ(calls()[2].kind, abi::profiler::kStop);
  EXPECT_EQ(calls()[3].kind, abi::profiler::kStop);
  // Without a parent there is no event.
  ASSERT_EQ(net::receive(receiving, 1, &room, &bytes, &tag, &received), success);
  ASSERT_EQ(net::send(sending, from.data(), from.size(), tag, &sent), success);
  finish(sent);
  finish(received);
  EXPECT_EQ(calls().size(), 4U);
  EXPECT_EQ(net::close_send(sending), success);
  EXPECT_EQ(net::close_receive(receiving), success);
  EXPECT_EQ(net::finalize(context), success);
}

}  // namespace
}  // namespace tributary::nccl
