// A sealed connection as a stream of bytes over a bare socket.
#include "tributary/transport/sealed_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/peer.h"
#include "transport/random/random.h"
#include "transport/tcp/sealed_stream.h"

namespace tributary::transport::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr LinkName kPlace{77, 3, 0, 5};  // a place of sealed_keys()

/// Moves all unsent bytes of one stream to the other, as the network does while both greet.
void pass_greeting(SealedStream& from, SealedStream& to) {
  const Bytes bytes(from.unsent().begin(), from.unsent().end());
  from.note_sent(bytes.size());
  std::ranges::copy(bytes, to.greeting_room().begin());
  ASSERT_EQ(to.greet(bytes.size(), "a peer"), SealedStream::Greeted::sealed);
}

class SealedSockets : public ::testing::TestWithParam<PacketSecurity> {
 protected:
  SealedSockets() {
    auto client = std::move(*SealedStream::of_client({{kPlace, GetParam()}, secret_of(6)}));
    auto listener = SealedStream::of_listener(sealed_keys(PacketSecurity::off));
    pass_greeting(*client, *listener);
    pass_greeting(*listener, *client);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
    const int room = 40'000;  // a write is often taken in part
    EXPECT_EQ(::setsockopt(ends_[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    sender_ = std::make_unique<SealedSocket>(std::move(client));
    receiver_ = std::make_unique<SealedSocket>(std::move(listener));
  }
  ~SealedSockets() override {
    for (const int end : ends_) ::close(end);
  }
  /// Splits bytes into parts of random lengths, some of them empty.
  std::vector<iovec> parts_of(std::span<std::byte> bytes) {
    std::vector<iovec> parts;
    while (!bytes.empty()) {
      const std::size_t some = std::min<std::size_t>(bytes.size(), random_.below(4) == 0 ? 0 : random_.below(70'000));
      parts.push_back({bytes.data(), some});
      bytes = bytes.subspan(some);
    }
    return parts;
  }
  /// Returns the bytes that moved; 0: none can move now.
  static std::size_t moved(ssize_t result) {
    if (result >= 0) return static_cast<std::size_t>(result);
    EXPECT_TRUE(errno == EAGAIN || errno == EWOULDBLOCK) << std::strerror(errno);
    return 0;
  }
  std::size_t write(std::span<std::byte> bytes) { return moved(sender_->write(ends_[0], parts_of(bytes))); }
  std::size_t read(std::span<std::byte> into) { return moved(receiver_->read(ends_[1], parts_of(into))); }

  Random random_{5};
  std::array<int, 2> ends_{};
  std::unique_ptr<SealedSocket> sender_, receiver_;
};

INSTANTIATE_TEST_SUITE_P(Levels, SealedSockets,
                         ::testing::Values(PacketSecurity::authenticate, PacketSecurity::encrypt),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST_P(SealedSockets, CarryAStreamWhateverThePartsOfWritesAndReads) {
  Bytes data = pattern(5'000'000, 1), into(data.size());
  std::size_t written = 0, got = 0;
  for (int turn = 0; got < data.size() && turn < 100'000; ++turn) {
    // A write may offer fewer bytes than an earlier one that was taken in part.
    const std::size_t offered = std::min<std::size_t>(data.size() - written, 1 + random_.below(300'000));
    if (offered > 0) written += write(std::span(data).subspan(written, offered));
    ASSERT_LE(written, data.size());
    if (random_.below(3) == 0) continue;
    const std::size_t room = std::min<std::size_t>(data.size() - got, 1 + random_.below(120'000));
    got += read(std::span(into).subspan(got, room));
  }
  EXPECT_EQ(got, data.size());
  EXPECT_EQ(written + write(std::span(data).subspan(written)), data.size());
  EXPECT_TRUE(into == data);
}

TEST_P(SealedSockets, ShowTheBytesOnlyWhereTheyAreNotEncrypted) {
  Bytes data = pattern(10'000, 1), seen(20'000);
  ASSERT_EQ(write(data), data.size());
  const ssize_t length = ::recv(ends_[1], seen.data(), seen.size(), MSG_PEEK);
  ASSERT_GT(length, 10'000);
  seen.resize(static_cast<std::size_t>(length));
  const auto found = std::search(seen.begin(), seen.end(), data.begin() + 5000, data.begin() + 5064);
  EXPECT_EQ(found != seen.end(), GetParam() == PacketSecurity::authenticate);
}

TEST_P(SealedSockets, AChangedBitIsAnError) {
  Bytes data = pattern(1000, 1), bytes(2000), into(1000);
  ASSERT_EQ(write(data), data.size());
  const ssize_t length = ::recv(ends_[1], bytes.data(), bytes.size(), 0);
  ASSERT_GT(length, 1000);
  bytes[500] ^= std::byte{1};
  ASSERT_EQ(::send(ends_[0], bytes.data(), static_cast<std::size_t>(length), 0), length);
  const iovec part{into.data(), into.size()};
  EXPECT_EQ(receiver_->read(ends_[1], {&part, 1}), -1);
  EXPECT_EQ(errno, EBADMSG);
}

TEST_P(SealedSockets, TheOtherSidesCloseIsAnEndBehindItsLastByte) {
  Bytes data = pattern(1000, 1), into(600);
  ASSERT_EQ(write(data), data.size());
  ::shutdown(ends_[0], SHUT_RDWR);
  EXPECT_EQ(read(into), 600U);
  EXPECT_EQ(read(into), 400U);
  const iovec part{into.data(), into.size()};
  EXPECT_EQ(receiver_->read(ends_[1], {&part, 1}), 0);
}

}  // namespace
}  // namespace tributary::transport::test
