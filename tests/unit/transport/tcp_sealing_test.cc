// Sealed channels over TCP, with a hostile process at the other end.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/peer.h"
#include "transport/tcp/sealed_stream.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport::test {
namespace {

using Bytes = std::vector<std::byte>;

TcpSettings with(PacketSecurity security, std::uint8_t first = 1) {
  return {.keys = security == PacketSecurity::off ? nullptr : sealed_keys(security, first)};
}

/// A listener, and whoever connects to it.
class SealedTcp : public ::testing::Test {
 protected:
  class Accepting : public Acceptor {
   public:
    ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
      peers.emplace_back().channel = std::move(channel);
      return &peers.back();
    }
    std::deque<Peer> peers;
  };

  void listen(const TcpSettings& settings) {
    server_ = std::make_unique<TcpTransport>(settings);
    listener_ = server_->listen({"127.0.0.1", 0}, accepting_).value();
  }
  void connect(const TcpSettings& settings) {
    client_ = std::make_unique<TcpTransport>(settings);
    peer_.channel = client_->connect(listener_->local(), peer_, std::chrono::seconds(10));
    peer_.channel->send_copy(header_of(0), pattern(5000, 1));
  }
  bool run_until(const std::function<bool()>& done) {
    for (const TimePoint end = Clock::now() + std::chrono::seconds(30); !done();) {
      if (Clock::now() > end) return false;
      server_->poll(std::chrono::milliseconds(1));
      if (client_) client_->poll(std::chrono::milliseconds(1));
    }
    return true;
  }
  Peer& accepted() { return accepting_.peers.front(); }

  Accepting accepting_;
  std::unique_ptr<TcpTransport> server_, client_;
  std::unique_ptr<Listener> listener_;
  Peer peer_;
};

TEST_F(SealedTcp, AClientInClearLearnsWhichSettingToChange) {
  listen(with(PacketSecurity::encrypt));
  connect(with(PacketSecurity::off));
  ASSERT_TRUE(run_until([&] { return peer_.closed && accepted().closed; }));
  EXPECT_EQ(peer_.closed->code, Errc::denied);
  EXPECT_NE(peer_.closed->message.find("set TRIBUTARY_SECURITY=encrypt on every rank"), std::string::npos)
      << peer_.closed->message;
  EXPECT_EQ(accepted().headers, 0U) << "no frame in clear is shown";
}

TEST_F(SealedTcp, AClientInClearThatWaitsForTheListenerIsToldAtOnce) {
  listen(with(PacketSecurity::authenticate));
  client_ = std::make_unique<TcpTransport>();
  peer_.channel = client_->connect(listener_->local(), peer_, std::chrono::seconds(10));
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value(); }));
  EXPECT_NE(peer_.closed->message.find("set TRIBUTARY_SECURITY=authenticate"), std::string::npos)
      << peer_.closed->message;
}

TEST_F(SealedTcp, AListenerInClearThatSpeaksFirstIsNotBelieved) {
  listen(with(PacketSecurity::off));
  client_ = std::make_unique<TcpTransport>(with(PacketSecurity::encrypt));
  peer_.channel = client_->connect(listener_->local(), peer_, std::chrono::seconds(10));
  ASSERT_TRUE(run_until([&] { return !accepting_.peers.empty(); }));
  accepted().channel->send_copy(header_of(0), pattern(100, 1));
  peer_.channel->send_copy(header_of(0), pattern(100, 1));
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value(); }));
  EXPECT_EQ(peer_.headers, 0U);
  EXPECT_NE(peer_.closed->message.find("it has security 'off'"), std::string::npos) << peer_.closed->message;
}

TEST_F(SealedTcp, AListenerInClearTellsAClientThatSeals) {
  listen(with(PacketSecurity::off));
  connect(with(PacketSecurity::encrypt));
  ASSERT_TRUE(run_until([&] { return peer_.closed && accepted().closed; }));
  EXPECT_FALSE(peer_.opened);
  EXPECT_NE(peer_.closed->message.find("it has security 'off'"), std::string::npos) << peer_.closed->message;
}

TEST_F(SealedTcp, AClientWithLessSecurityLearnsWhichSettingToChange) {
  listen(with(PacketSecurity::encrypt));
  connect(with(PacketSecurity::authenticate));
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value(); }));
  EXPECT_NE(peer_.closed->message.find("set TRIBUTARY_SECURITY=encrypt"), std::string::npos) << peer_.closed->message;
}

TEST_F(SealedTcp, AClientWithAnotherSecretIsRefused) {
  listen(with(PacketSecurity::encrypt));
  connect(with(PacketSecurity::encrypt, 50));
  ASSERT_TRUE(run_until([&] { return peer_.closed && accepted().closed; }));
  EXPECT_EQ(peer_.closed->code, Errc::denied);
  EXPECT_EQ(accepted().headers, 0U);
}

/// Returns keys that have no secrets of groups before `*has_key`.
std::shared_ptr<LinkKeys> keys_once(const std::shared_ptr<const bool>& has_key, PacketSecurity least) {
  auto keys = std::make_shared<LinkKeys>(least);
  keys->set_derive([has_key](const LinkName& name) -> LinkKeys::Found {
    if (!*has_key) return std::unexpected(NoSecret::not_yet);
    return secret_of(static_cast<std::uint8_t>(1 + name.child));
  });
  return keys;
}

TEST_F(SealedTcp, AHelloWaitsForTheManagersKey) {
  for (const auto least : {PacketSecurity::off, PacketSecurity::encrypt}) {
    const auto has_key = std::make_shared<bool>(false);
    accepting_.peers.clear();
    peer_ = Peer();
    listen({.keys = keys_once(has_key, least)});
    connect(with(PacketSecurity::encrypt));
    const TimePoint until = Clock::now() + std::chrono::milliseconds(200);
    ASSERT_TRUE(run_until([&] { return Clock::now() > until; }));
    EXPECT_FALSE(peer_.opened || peer_.closed);
    *has_key = true;
    ASSERT_TRUE(run_until([&] { return peer_.closed || accepted().frames.size() == 1; }));
    EXPECT_FALSE(peer_.closed) << peer_.closed->message;
    client_.reset();
  }
}

TEST_F(SealedTcp, AHelloIsRefusedWithTheReasonIfNoKeyComes) {
  const auto has_key = std::make_shared<bool>(false);
  listen({.keys = keys_once(has_key, PacketSecurity::off)});
  connect(with(PacketSecurity::encrypt));
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value(); }));
  EXPECT_NE(peer_.closed->message.find("has not reached its manager yet"), std::string::npos) << peer_.closed->message;
}

TEST_F(SealedTcp, AConnectionWithoutASecretIsNotMadeInClear) {
  listen(with(PacketSecurity::off));
  TcpSettings settings;
  settings.keys = std::make_shared<LinkKeys>(PacketSecurity::encrypt);
  connect(settings);
  ASSERT_TRUE(run_until([&] { return peer_.closed.has_value(); }));
  EXPECT_NE(peer_.closed->message.find("has no secret for it"), std::string::npos) << peer_.closed->message;
  EXPECT_EQ(server_->statistics().bytes_received, 0U);
}

TEST_F(SealedTcp, TheKeysOfAListenerThatDemandsNothingServeBothKinds) {
  listen({.keys = sealed_keys(PacketSecurity::off)});
  connect(with(PacketSecurity::off));
  ASSERT_TRUE(run_until([&] { return accepted().frames.size() == 1; }));
  EXPECT_FALSE(accepted().channel->sealed().has_value());
  Peer second;
  TcpTransport seals(with(PacketSecurity::authenticate));
  second.channel = seals.connect(listener_->local(), second, std::chrono::seconds(10));
  second.channel->send_copy(header_of(0), pattern(5000, 1));
  ASSERT_TRUE(run_until([&] {
    seals.poll({});
    return accepting_.peers.size() == 2 && accepting_.peers.back().frames.size() == 1;
  }));
  EXPECT_EQ(accepting_.peers.back().channel->sealed(), (SealedLink{{77, 3, 0, 5}, PacketSecurity::authenticate}));
}

/// Sends its own bytes after a right greeting.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, bool greets = true) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    if (greets) send(stream_->unsent());
    stream_->note_sent(stream_->unsent().size());
  }
  ~RawClient() { ::close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// True once the answer has come.
  bool greeted() {
    const auto room = stream_->greeting_room();
    const ssize_t got = stream_->ready() ? 0 : ::recv(socket_, room.data(), room.size(), MSG_DONTWAIT);
    if (got > 0) static_cast<void>(stream_->greet(static_cast<std::size_t>(got), "the listener"));
    return stream_->ready();
  }
  Bytes records(std::size_t payload) {
    SendQueue queue;
    queue.push_copy(header_of(0), pattern(payload, 1));
    Bytes room(1U << 20U);
    room.resize(stream_->fill(queue, room, SIZE_MAX).bytes);
    return room;
  }

 private:
  std::unique_ptr<SealedStream> stream_ =
      SealedStream::of_client({{{77, 3, 0, 5}, PacketSecurity::encrypt}, secret_of(6)}).value();
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST_F(SealedTcp, ARecordThatWasChangedEndsTheConnectionWithAnErrorThatNamesIt) {
  for (const std::size_t payload : {std::size_t{100}, std::size_t{20'000}}) {
    listen(with(PacketSecurity::encrypt));
    RawClient raw(listener_->local().port);
    ASSERT_TRUE(run_until([&] { return raw.greeted(); }));
    raw.send(raw.records(payload));
    ASSERT_TRUE(run_until([&] { return accepting_.peers.back().frames.size() == 1; }));
    Bytes records = raw.records(payload);
    records[records.size() - 30] ^= std::byte{4};
    raw.send(records);
    ASSERT_TRUE(run_until([&] { return accepting_.peers.back().closed.has_value(); }));
    const Error& error = *accepting_.peers.back().closed;
    EXPECT_EQ(error.code, Errc::corrupt);
    EXPECT_NE(error.message.find(payload == 100 ? "record 2 " : "record 4 "), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("is not authentic"), std::string::npos) << error.message;
    EXPECT_EQ(accepting_.peers.back().frames.size(), 1U);
    EXPECT_EQ(server_->statistics().records_forged, 1U);
  }
}

TEST_F(SealedTcp, FramesInClearAreNotShownAlsoIfTheClientDoesNotHeedTheDemand) {
  listen(with(PacketSecurity::encrypt));
  RawClient raw(listener_->local().port, false);
  FrameBytes in_clear{};
  encode(header_of(0, FrameType::ready), in_clear);
  raw.send(in_clear);
  ASSERT_TRUE(run_until([&] { return !accepting_.peers.empty() && accepted().closed.has_value(); }));
  EXPECT_EQ(accepted().headers, 0U);
  EXPECT_NE(accepted().closed->message.find("this side demands 'encrypt'"), std::string::npos)
      << accepted().closed->message;
  EXPECT_EQ(server_->statistics().seals_refused, 1U);
}

TEST_F(SealedTcp, AfterOnlyAHelloNoFrameIsShown) {
  listen(with(PacketSecurity::encrypt));
  RawClient raw(listener_->local().port);
  ASSERT_TRUE(run_until([&] { return raw.greeted(); }));
  FrameBytes in_clear{};
  encode(header_of(0), in_clear);
  raw.send(in_clear);
  ASSERT_TRUE(run_until([&] { return accepted().closed.has_value(); }));
  EXPECT_EQ(accepted().headers, 0U);
}

}  // namespace
}  // namespace tributary::transport::test
