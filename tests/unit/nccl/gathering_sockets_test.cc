#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/plugins/nccl/p2p/sockets/arriving_sockets.h"

namespace tributary::nccl {
namespace {

/// One end of a pair of sockets; the other end tells whether this end is still open.
struct Watched {
  Watched() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    socket.emplace(transport::ReleasedSocket{.socket = ends[0]}, "a peer");
    other = ends[1];
  }
  ~Watched() { close(other); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  [[nodiscard]] bool is_open() const {
    char byte = 0;
    return recv(other, &byte, 1, MSG_DONTWAIT) < 0;
  }
  std::optional<StreamSocket> socket;
  int other = -1;
};

ConnectionPart part(int connection, std::uint32_t number) {
  std::string digits = std::to_string(connection);
  digits.insert(0, 32 - digits.size(), '0');
  return {.connection = digits, .number = number, .parts = 3};
}

TEST(GatheringSockets, GivesAConnectionsSocketsByTheirNumbersOnceAllAreThere) {
  GatheringSockets gathering(3);
  std::array<Watched, 6> sockets;
  std::array<int, 6> descriptors{};
  for (std::size_t i = 0; i < sockets.size(); ++i) descriptors[i] = sockets[i].socket->descriptor();
  EXPECT_TRUE(gathering.add(part(1, 2), std::move(*sockets[0].socket)).empty());
  EXPECT_TRUE(gathering.add(part(2, 0), std::move(*sockets[1].socket)).empty());
  EXPECT_TRUE(gathering.add(part(1, 0), std::move(*sockets[2].socket)).empty());
  EXPECT_TRUE(gathering.add(part(2, 1), std::move(*sockets[3].socket)).empty());
  const auto first = gathering.add(part(1, 1), std::move(*sockets[4].socket));
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0].descriptor(), descriptors[2]);
  EXPECT_EQ(first[1].descriptor(), descriptors[4]);
  EXPECT_EQ(first[2].descriptor(), descriptors[0]);
  EXPECT_EQ(gathering.add(part(2, 2), std::move(*sockets[5].socket)).size(), 3U);
}

TEST(GatheringSockets, EndAConnectionOfWhichOneSocketComesTwice) {
  GatheringSockets gathering(3);
  Watched first, again;
  EXPECT_TRUE(gathering.add(part(1, 1), std::move(*first.socket)).empty());
  EXPECT_TRUE(gathering.add(part(1, 1), std::move(*again.socket)).empty());
  EXPECT_FALSE(first.is_open());
  again.socket.reset();
  EXPECT_FALSE(again.is_open());
}

TEST(GatheringSockets, KeepsTheYoungestOfThoseThatNeverEnd) {
  GatheringSockets gathering(3);
  std::array<Watched, 100> sockets;
  for (std::size_t i = 0; i < sockets.size(); ++i)
    EXPECT_TRUE(gathering.add(part(static_cast<int>(i), 0), std::move(*sockets[i].socket)).empty());
  for (std::size_t i = 0; i < sockets.size(); ++i)
    EXPECT_EQ(sockets[i].is_open(), i >= sockets.size() - 64) << "connection " << i;
}

}  // namespace
}  // namespace tributary::nccl
