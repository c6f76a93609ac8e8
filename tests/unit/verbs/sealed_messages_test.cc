// Sealed RDMA connections without a device: greetings and messages, and bytes between the two sides that neither may
// believe.
#include "transport/verbs/sealed_messages.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "tests/unit/packet/sealed_keys.h"

namespace tributary::transport::verbs {
namespace {

using test::secret_of;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr LinkName kPlace{77, 3, 2, 5};

class SealedMessagesTest : public ::testing::TestWithParam<PacketSecurity> {
 protected:
  static LinkKeys::Link link(std::uint8_t secret = 6, const LinkName& name = kPlace) {
    return {{name, GetParam()}, secret_of(secret)};
  }
  void start(const LinkKeys::Link& of_client, const LinkKeys::Link& of_listener) {
    client_ = SealedMessages::of_client(of_client).value();
    listener_ = SealedMessages::of_listener(of_listener);
  }
  void agree() {
    start(link(), link());
    ASSERT_TRUE(listener_->greet(client_->ours()));
    ASSERT_TRUE(client_->greet(listener_->ours()));
  }
  /// Returns content of this length.
  static Bytes content_of(std::size_t bytes, std::uint8_t seed = 1) {
    Bytes content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 7 + seed);
    return content;
  }
  static Bytes sealed(SealedMessages& by, Bytes content) {
    content.resize(content.size() + kMessageTagBytes);
    EXPECT_TRUE(by.seal(content));
    return content;
  }
  /// Empty: the message is not authentic.
  static Bytes opened(SealedMessages& by, Bytes message) {
    const auto content = by.open(message);
    return {content.begin(), content.end()};
  }
  /// Returns why the listener does not believe this hello.
  std::string refusal_of_hello(std::span<const std::byte> hello) {
    const Status greeted = listener_->greet(hello);
    EXPECT_FALSE(greeted || listener_->ready());
    EXPECT_TRUE(listener_->failed());
    return greeted ? "" : greeted.error().message;
  }
  std::unique_ptr<SealedMessages> client_, listener_;
};

INSTANTIATE_TEST_SUITE_P(Levels, SealedMessagesTest,
                         ::testing::Values(PacketSecurity::authenticate, PacketSecurity::encrypt),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST_P(SealedMessagesTest, CarryContentOfAllLengthsBothWays) {
  agree();
  EXPECT_EQ(client_->link(), (SealedLink{kPlace, GetParam()}));
  EXPECT_EQ(listener_->link(), client_->link());
  for (const std::size_t bytes : {24U, 25U, 96U, 4192U, 16480U, 65632U}) {
    for (const auto& [from, to] : {std::pair(&client_, &listener_), std::pair(&listener_, &client_)}) {
      const Bytes content = content_of(bytes);
      EXPECT_EQ(opened(**to, sealed(**from, content)), content) << bytes;
    }
  }
}

TEST_P(SealedMessagesTest, ShowContentOnlyWhereItIsNotEncrypted) {
  agree();
  const Bytes content = content_of(500);
  const Bytes message = sealed(*client_, content);
  const auto found = std::search(message.begin(), message.end(), content.begin(), content.begin() + 24);
  EXPECT_EQ(found != message.end(), GetParam() == PacketSecurity::authenticate);
}

TEST_P(SealedMessagesTest, AMessageWithAnyBitChangedIsNotAuthentic) {
  for (const std::size_t at : {0U, 8U, 23U, 24U, 100U, 119U, 120U, 135U}) {
    agree();
    Bytes message = sealed(*client_, content_of(120));
    message[at] ^= std::byte{1};
    EXPECT_TRUE(opened(*listener_, message).empty()) << at;
  }
}

TEST_P(SealedMessagesTest, ARepeatedMovedReflectedOrMissingMessageIsNotAuthentic) {
  agree();
  const Bytes first = sealed(*client_, content_of(40)), second = sealed(*client_, content_of(40, 2));
  EXPECT_TRUE(opened(*listener_, second).empty()) << "the first was left out";
  agree();
  const Bytes again = sealed(*client_, content_of(40));
  EXPECT_FALSE(opened(*listener_, again).empty());
  EXPECT_TRUE(opened(*listener_, again).empty()) << "repeated";
  agree();
  EXPECT_TRUE(opened(*client_, sealed(*client_, content_of(40))).empty()) << "sent back";
}

TEST_P(SealedMessagesTest, AShorterOrLongerMessageIsNotAuthentic) {
  for (const std::size_t bytes : {0U, 16U, 39U, 55U, 57U}) {
    agree();
    Bytes message = sealed(*client_, content_of(40));
    message.resize(bytes);
    EXPECT_TRUE(opened(*listener_, message).empty()) << bytes;
  }
}

TEST_P(SealedMessagesTest, AfterAMessageThatIsNotAuthenticNoneIsBelieved) {
  agree();
  Bytes forged = sealed(*client_, content_of(40));
  forged.back() ^= std::byte{0x80};
  EXPECT_TRUE(opened(*listener_, forged).empty());
  EXPECT_TRUE(listener_->failed());
  EXPECT_TRUE(opened(*listener_, sealed(*client_, content_of(40, 2))).empty()) << "this one is authentic";
}

TEST_P(SealedMessagesTest, MessagesOfAnotherConnectionAreNotAuthentic) {
  agree();
  const auto other_client = std::move(client_);
  const auto other_listener = std::move(listener_);
  agree();
  EXPECT_TRUE(opened(*listener_, sealed(*other_client, content_of(40))).empty()) << "of the same link";
}

TEST_P(SealedMessagesTest, AHelloWithAnotherSecretIsRefused) {
  start(link(7), link(6));
  EXPECT_THAT(refusal_of_hello(client_->ours()), HasSubstr("does not prove that it knows the connection's secret"));
}

TEST_P(SealedMessagesTest, AHelloForAnotherPlaceThanTheRequestIsRefused) {
  LinkName other = kPlace;
  ++other.child;
  start(link(6, other), link(6));
  EXPECT_THAT(refusal_of_hello(client_->ours()), HasSubstr("for another place or security than its request"));
}

TEST_P(SealedMessagesTest, AHelloWithLessSecurityThanTheRequestIsRefused) {
  auto less = link();
  less.link.security = GetParam() == PacketSecurity::encrypt ? PacketSecurity::authenticate : PacketSecurity::off;
  start(less, link());
  EXPECT_THAT(refusal_of_hello(client_->ours()), HasSubstr("for another place or security than its request"));
}

TEST_P(SealedMessagesTest, AHelloForAStreamIsRefused) {
  start(link(), link());
  const auto key = ExchangeKey::generate().value();
  EXPECT_THAT(refusal_of_hello(hello_of(link(), key.public_key())), HasSubstr("no hello"));
}

TEST_P(SealedMessagesTest, AGreetingOfAnotherLengthIsRefused) {
  for (const std::size_t bytes : {0U, 95U, 97U}) {
    start(link(), link());
    Bytes hello(client_->ours().begin(), client_->ours().end());
    hello.resize(bytes);
    EXPECT_THAT(refusal_of_hello(hello), HasSubstr("no hello")) << bytes;
  }
}

TEST_P(SealedMessagesTest, AnAnswerOfAProcessWithoutTheSecretIsNotBelieved) {
  start(link(), link());
  const auto impostor = SealedMessages::of_listener(link(7));
  auto theirs = SealedMessages::of_client(link(7)).value();
  ASSERT_TRUE(impostor->greet(theirs->ours()));
  const Status greeted = client_->greet(impostor->ours());
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Errc::denied);
  EXPECT_THAT(greeted.error().message, HasSubstr("does not prove that it knows the connection's secret"));
  EXPECT_FALSE(client_->ready());
}

TEST_P(SealedMessagesTest, AnAnswerToAnotherHelloIsNotBelieved) {
  agree();
  const GreetingBytes answer = listener_->ours();
  start(link(), link());
  EXPECT_FALSE(client_->greet(answer));
}

// ---- Greetings of the connection manager

TEST(SealedGreeting, HasTheLevelInItsFirstBytes) {
  for (const auto security : {PacketSecurity::off, PacketSecurity::authenticate, PacketSecurity::encrypt}) {
    Greeting ours{.message_eighths = message_bytes_for(4096) / 8, .receive_depth = 32}, theirs;
    ours.set_security(security);
    ASSERT_TRUE(read_greeting(std::as_bytes(std::span(&ours, 1)), theirs));
    EXPECT_EQ(theirs.security(), security);
  }
}

TEST(SealedGreeting, NeedsRoomForTheAuthenticator) {
  Greeting ours{.message_eighths = message_bytes_for(sizeof(RemotePayload)) / 8, .receive_depth = 32}, theirs;
  EXPECT_TRUE(read_greeting(std::as_bytes(std::span(&ours, 1)), theirs));
  ours.set_security(PacketSecurity::encrypt);
  EXPECT_FALSE(read_greeting(std::as_bytes(std::span(&ours, 1)), theirs));
}

TEST(SealedGreeting, IsNotOfAnUnknownKind) {
  Greeting ours{.magic = Greeting::kMagic + 1, .message_eighths = message_bytes_for(4096) / 8, .receive_depth = 32};
  Greeting theirs;
  EXPECT_FALSE(read_greeting(std::as_bytes(std::span(&ours, 1)), theirs));
}

}  // namespace
}  // namespace tributary::transport::verbs
