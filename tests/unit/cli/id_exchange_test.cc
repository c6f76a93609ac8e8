// The ways in which a unique id gets from rank 0 to the other ranks.
#include "client/cli/perf/id_exchange.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "client/cli/free_port/free_port.h"
#include "client/cli/perf/id_lines.h"

namespace tributary::cli {
namespace {

using namespace std::chrono_literals;

IdBytes some_id() {
  IdBytes id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<unsigned char>(i * 7 + 200);
  return id;
}

bool has_ipv6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  const bool good = ::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  ::close(socket);
  return good;
}

TEST(IdExchange, EveryRankGetsTheId) {
  if (!has_ipv6()) GTEST_SKIP() << "this system has no IPv6";
  const std::uint16_t port = free_port().value();
  const auto meeting = [port](std::uint32_t rank) {
    return IdMeeting{.rank = rank, .ranks = 3, .host = "localhost", .port = port, .job = "train", .limit = 20s};
  };
  std::thread root([&] { EXPECT_TRUE(hand_out_id(some_id(), meeting(0))); });
  for (const std::uint32_t rank : {1U, 2U}) {
    const auto id = fetch_id(meeting(rank));
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(*id, some_id());
  }
  root.join();
}

TEST(IdExchange, StrangersThatSayNothingKeepNobodyWaiting) {
  if (!has_ipv6()) GTEST_SKIP() << "this system has no IPv6";
  const std::uint16_t port = free_port().value();
  const auto meeting = [port](std::uint32_t rank) {
    return IdMeeting{.rank = rank, .ranks = 2, .host = "localhost", .port = port, .job = "train", .limit = 60s};
  };
  std::thread root([&] { EXPECT_TRUE(hand_out_id(some_id(), meeting(0))); });
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  address.sin6_port = htons(port);
  std::vector<int> strangers;
  while (strangers.size() < 400) {
    const int stranger = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(stranger, 0);
    if (::connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      strangers.push_back(stranger);
    } else {
      ::close(stranger);  // rank 0 does not listen yet
      std::this_thread::sleep_for(1ms);
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(fetch_id(meeting(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);  // one by one, two seconds each, they would take 800 s
  root.join();
  for (const int stranger : strangers) ::close(stranger);
}

TEST(IdExchange, ARankOfAnotherJobIsToldSo) {
  if (!has_ipv6()) GTEST_SKIP() << "this system has no IPv6";
  const std::uint16_t port = free_port().value();
  IdMeeting meeting{.ranks = 2, .host = "localhost", .port = port, .job = "train", .limit = 20s};
  std::thread root([meeting] { EXPECT_EQ(hand_out_id(some_id(), meeting).error().code, Errc::mismatch); });
  meeting.rank = 1;
  meeting.job = "other";
  const auto id = fetch_id(meeting);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, Errc::mismatch);
  EXPECT_NE(id.error().message.find("check whether two jobs use port"), std::string::npos) << id.error().message;
  root.join();
}

TEST(IdLines, LinesOfStrangersAreIgnored) {
  for (const char* const line : {"", "GET / HTTP/1.1", "tributary-id/2 1 2 job", "tributary-id/1 one 2 job"})
    EXPECT_FALSE(read_question(line)) << line;
  for (const char* const line : {"", "id ", "id 00", "no"}) EXPECT_FALSE(read_id(line)) << line;
  std::string damaged = to_line(some_id());
  damaged[10] = 'x';
  EXPECT_FALSE(read_id(damaged));
  EXPECT_FALSE(read_refusal("id 00"));
}

}  // namespace
}  // namespace tributary::cli
