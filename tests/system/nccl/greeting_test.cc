// Strangers at either end of a connection of NCCL: the facts that they learn, and whether an end believes them.
#include "client/plugins/nccl/p2p/greeting.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/system/nccl/listening.h"
#include "tributary/transport/tcp.h"

namespace tributary::nccl {
namespace {

using enum abi::Result;

/// Returns the handle with another port, as if another process answered at the listener's address.
HandleBytes leading_to(NetHandle handle, std::uint16_t port) {
  handle.port = port;
  return bytes_of(handle);
}

abi::Result connect(HandleBytes handle, void** sending) {
  abi::Result result = success;
  until("connect", [&] {
    result = net::connect(nullptr, 0, handle.data(), sending);
    return *sending != nullptr || result != success;
  });
  return result;
}

/// A hostile process that knows the frames of the greeting.
class Stranger final : public transport::Acceptor, public transport::ChannelHandler {
 public:
  /// `says` holds the stranger's messages to a process that connects: the stranger sends the first message at once, and
  /// each other message as an answer.
  explicit Stranger(std::vector<std::string> says) : says_(std::move(says)) {
    listener_ = transport_.listen({"127.0.0.1", 0}, *this).value();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) transport_.poll(std::chrono::milliseconds(1));
    });
  }
  [[nodiscard]] std::uint16_t port() const { return listener_->local().port; }
  /// Returns all bytes that the stranger received until the other end closed, and ends its thread.
  [[nodiscard]] const std::string& heard() {
    until("the connection to the stranger", [&] { return left_.load(); });
    thread_ = {};
    return heard_;
  }

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    channel_ = std::move(channel);
    say_next();
    return this;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    room_.resize(header.payload_bytes);
    return transport::Accept{room_};
  }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte> payload) override {
    heard_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (!payload.empty()) say_next();
  }
  void on_closed(transport::Channel&, const Error&) override { left_ = true; }

 private:
  void say_next() {
    if (said_ == says_.size()) return;
    FrameHeader header;
    header.type = FrameType::challenge;
    channel_->send_copy(header, std::as_bytes(std::span(says_[said_++])));
  }

  const std::vector<std::string> says_;
  std::size_t said_ = 0;
  std::atomic<bool> left_{false};
  std::string heard_;
  std::vector<std::byte> room_;
  transport::TcpTransport transport_;
  std::unique_ptr<transport::Channel> channel_;
  std::unique_ptr<transport::Listener> listener_;
  std::jthread thread_;  // the last member: until the thread ends, the other members belong to it
};

TEST(Greeting, AFakeAtTheHandlesAddressLearnsNothingAndIsNotBelieved) {
  Listening at;
  Stranger fake({std::string(kNonceDigits, '0'), std::string(kProofDigits, '0')});
  void* sending = nullptr;
  EXPECT_EQ(connect(leading_to(at.handle(), fake.port()), &sending), remote_error);
  EXPECT_EQ(sending, nullptr);
  const auto secret = at.handle().secret;
  const std::string raw(reinterpret_cast<const char*>(secret.data()), secret.size());
  const std::string heard = fake.heard();
  EXPECT_EQ(heard.find(raw.substr(0, 16)), std::string::npos) << "the secret itself was sent";
  EXPECT_EQ(heard.size(), kNonceDigits + kProofDigits + kPartDigits)
      << "the stranger hears a nonce, a proof, a number, and nothing else";
}

// To the process whose address it has taken, the fake can show only the messages that it received.
TEST(Greeting, AGreetingThatAFakeHeardIsRefusedByTheTrueListener) {
  Listening at;
  Stranger fake({std::string(kNonceDigits, '0'), std::string(kProofDigits, '0')});
  void* sending = nullptr;
  EXPECT_EQ(connect(leading_to(at.handle(), fake.port()), &sending), remote_error);
  const std::string heard = fake.heard();

  transport::TcpTransport transport;
  struct Caller final : transport::ChannelHandler {
    transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
      room.resize(header.payload_bytes);
      return transport::Accept{room};
    }
    void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override { ++frames; }
    void on_closed(transport::Channel&, const Error&) override { closed = true; }
    std::vector<std::byte> room;
    int frames = 0;
    bool closed = false;
  } caller;
  const auto channel = transport.connect(at.handle().endpoint(), caller, kLimit);
  FrameHeader hello;
  hello.type = FrameType::peer_hello;
  channel->send_copy(hello, {});
  channel->send_copy(hello, std::as_bytes(std::span(heard)));
  until("the refusal", [&] {
    transport.poll({});
    EXPECT_EQ(at.accept_now(), nullptr);
    return caller.closed;
  });
  EXPECT_LE(caller.frames, 1) << "the listening process proves nothing to a stranger";
}

/// Passes every byte on, both ways, unchanged.
class Relay {
 public:
  explicit Relay(std::uint16_t to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at = loopback(0);
    socklen_t length = sizeof at;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), length), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length), 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { pass_on(stop); });
  }
  ~Relay() {
    thread_ = {};
    close(listener_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int passed() const { return passed_; }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    return at;
  }
  static bool waits(int socket) {
    pollfd one{.fd = socket, .events = POLLIN, .revents = 0};
    return poll(&one, 1, 5) > 0;
  }
  /// Returns false if the connection has ended.
  bool pass(int from, int to) {
    if (!waits(from)) return true;
    std::array<char, 4096> bytes{};
    const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    ++passed_;
    return ::send(to, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
  }
  void pass_on(const std::stop_token& stop) {
    while (!waits(listener_)) {
      if (stop.stop_requested()) return;
    }
    const int victim = accept(listener_, nullptr, nullptr);
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in at = loopback(to_);
    bool up = ::connect(listening, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    while (up && !stop.stop_requested()) up = pass(victim, listening) && pass(listening, victim);
    close(listening);
    close(victim);
  }

  const std::uint16_t to_;
  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> passed_{0};
  std::jthread thread_;
};

TEST(Greeting, ARelayIsRefusedByBothEnds) {
  Listening at;
  const Relay relay(static_cast<std::uint16_t>(at.handle().port));
  HandleBytes handle = leading_to(at.handle(), relay.port());
  void* sending = nullptr;
  abi::Result result = success;
  until("connect", [&] {
    result = net::connect(nullptr, 0, handle.data(), &sending);
    EXPECT_EQ(at.accept_now(), nullptr);
    return sending != nullptr || result != success;
  });
  EXPECT_EQ(result, remote_error);
  EXPECT_GE(relay.passed(), 2) << "the relay passed a nonce and a proof on";
}

TEST(Greeting, AStrangerDoesNotKeepThePeerOut) {
  Listening at;
  transport::TcpTransport transport;
  struct Silent final : transport::ChannelHandler {
    transport::Placement on_header(transport::Channel&, const FrameHeader&) override { return transport::NotYet{}; }
    void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override {}
    void on_closed(transport::Channel&, const Error&) override {}
  } silent;
  std::vector<std::unique_ptr<transport::Channel>> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(transport.connect(at.handle().endpoint(), silent, kLimit));
  void* receiving = nullptr;
  void* sending = nullptr;
  HandleBytes handle = at.bytes();
  until("the connection", [&] {
    transport.poll({});
    if (sending == nullptr && net::connect(nullptr, 0, handle.data(), &sending) != success) return true;
    if (receiving == nullptr) receiving = at.accept_now();
    return sending != nullptr && receiving != nullptr;
  });
  ASSERT_TRUE(sending != nullptr && receiving != nullptr);
  EXPECT_EQ(net::close_send(sending), success);
  EXPECT_EQ(net::close_receive(receiving), success);
}

// ---- the two classes themselves: the test passes their messages directly from one to the other, without a relay

class Words final : public transport::Channel {
 public:
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t) override {
    send_copy(header, payload);
    return true;
  }
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
    FrameHeader sent = header;
    sent.payload_bytes = static_cast<std::uint32_t>(payload.size());
    frames.emplace_back(sent, std::vector<std::byte>(payload.begin(), payload.end()));
  }
  void resume() override {}
  void close() override {}
  void close_after_flush(transport::Duration) override {}
  [[nodiscard]] bool closed() const noexcept override { return false; }
  [[nodiscard]] std::string peer() const override { return "the other end"; }

  std::vector<std::pair<FrameHeader, std::vector<std::byte>>> frames;
};

template <class End, class... Ends>
Status hand_over(Words& from, End& to, Words& back, const Ends&... ends) {
  for (const auto& [header, payload] : std::exchange(from.frames, {})) {
    const auto placement = to.place(header);
    if (const auto* const rejected = std::get_if<transport::Reject>(&placement))
      return std::unexpected(rejected->error);
    std::ranges::copy(payload, std::get<transport::Accept>(placement).payload.begin());
    if (auto taken = to.take(back, ends...); !taken) return taken;
  }
  return {};
}

struct Outcome {
  bool connecting = false, listening = false;
  std::optional<Errc> refused;
};

const ConnectionPart kPart{.connection = std::string(32, 'a'), .number = 1, .parts = 5};

Outcome meet(const ConnectionEnds& seen_by_connecting, const ConnectionEnds& seen_by_listening, Secret first = {},
             Secret second = {}, std::uint32_t parts_of_listening = 5) {
  Words of_connecting, of_listening;
  ConnectingGreeting connecting(first, kPart);
  ListeningGreeting listening(second, seen_by_listening, parts_of_listening);
  connecting.begin(of_connecting, 1);
  EXPECT_TRUE(listening.begin(of_listening));
  Status status;
  for (int step = 0; step < 3 && status; ++step) {
    status = hand_over(of_connecting, listening, of_listening);
    if (status) status = hand_over(of_listening, connecting, of_connecting, seen_by_connecting);
  }
  return {connecting.proved(), listening.proved(), status ? std::nullopt : std::optional(status.error().code)};
}

TEST(Greeting, BindsBothEndsAddressesAndTheSecret) {
  const ConnectionEnds ends{"10.0.0.1:5000", "10.0.0.2:6000"};
  const Outcome good = meet(ends, ends);
  EXPECT_TRUE(good.connecting && good.listening);
  Secret other{};
  other[31] = std::byte{1};
  for (const Outcome& bad :
       {meet(ends, {"10.0.0.1:5000", "10.0.0.2:6001"}), meet(ends, {"10.0.0.1:5001", "10.0.0.2:6000"}),
        meet(ends, {"10.0.0.1:5000", ""}), meet(ends, ends, {}, other), meet(ends, ends, {}, {}, 4)}) {
    EXPECT_FALSE(bad.connecting || bad.listening);
    EXPECT_EQ(bad.refused, Errc::denied);
  }
}

// Otherwise a process between the ends could present one socket of a connection as another socket.
TEST(Greeting, BindsWhichPartOfWhichConnectionAChannelIs) {
  const ConnectionEnds ends{"10.0.0.1:5000", "10.0.0.2:6000"};
  for (std::size_t digit = 0; digit <= kPartDigits; ++digit) {
    Words of_connecting, of_listening;
    ConnectingGreeting connecting(Secret{}, kPart);
    ListeningGreeting listening(Secret{}, ends, 5);
    connecting.begin(of_connecting, 1);
    ASSERT_TRUE(listening.begin(of_listening));
    ASSERT_TRUE(hand_over(of_connecting, listening, of_listening));
    ASSERT_TRUE(hand_over(of_listening, connecting, of_connecting, ends));
    auto& said = of_connecting.frames.at(0).second;
    const bool changes = digit < kPartDigits;
    if (changes) said[kNonceDigits + kProofDigits + digit] ^= std::byte{1};
    const Status status = hand_over(of_connecting, listening, of_listening);
    EXPECT_EQ(status.has_value(), !changes) << "digit " << digit;
    EXPECT_EQ(listening.proved(), !changes);
  }
}

TEST(Greeting, ReadsTheTextOfAPartAndNoOther) {
  const auto read = read_part(to_text(kPart));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->connection, kPart.connection);
  EXPECT_EQ(read->number, kPart.number);
  EXPECT_EQ(read->parts, kPart.parts);
  const std::string connection(32, 'a');
  for (const char* bad : {"0505", "0605", "0000", "010", "01050", "0x05", "01A5"})
    EXPECT_FALSE(read_part(connection + bad)) << bad;
}

TEST(Greeting, TakesOnlyFramesInTheirOrderAndOfTheirLength) {
  FrameHeader header;
  const auto rejected = [&](auto& end, FrameType type, std::uint32_t bytes) {
    header.type = type;
    header.payload_bytes = bytes;
    return std::holds_alternative<transport::Reject>(end.place(header));
  };
  ConnectingGreeting connecting(Secret{}, kPart);
  EXPECT_TRUE(rejected(connecting, FrameType::message, kNonceDigits));
  EXPECT_TRUE(rejected(connecting, FrameType::challenge, kProofDigits)) << "the nonce must come before the proof";
  EXPECT_FALSE(rejected(connecting, FrameType::challenge, kNonceDigits));
  ListeningGreeting listening(Secret{}, {}, 5);
  EXPECT_TRUE(rejected(listening, FrameType::message, 0));
  EXPECT_TRUE(rejected(listening, FrameType::peer_hello, kNonceDigits + kProofDigits + kPartDigits))
      << "the empty frame must come before the answer";
  EXPECT_FALSE(rejected(listening, FrameType::peer_hello, 0));
}

}  // namespace
}  // namespace tributary::nccl
