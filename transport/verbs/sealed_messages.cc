#include "transport/verbs/sealed_messages.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

Result<std::unique_ptr<SealedMessages>> SealedMessages::of_client(const LinkKeys::Link& link) {
  const auto key = ExchangeKey::generate();
  if (!key) return std::unexpected(key.error());
  std::unique_ptr<SealedMessages> messages(new SealedMessages(link, true));
  messages->exchange_ = *key;
  messages->ours_ = hello_of(link, key->public_key(), Carrier::rdma);
  return messages;
}

std::unique_ptr<SealedMessages> SealedMessages::of_listener(const LinkKeys::Link& link) {
  return std::unique_ptr<SealedMessages>(new SealedMessages(link, false));
}

Status SealedMessages::greet(std::span<const std::byte> theirs) {
  TRIBUTARY_ASSERT(!ready(), "a second greeting of {} bytes is taken", theirs.size());
  GreetingBytes greeting{};
  if (theirs.size() == kGreetingBytes) std::ranges::copy(theirs, greeting.begin());
  Status greeted = client_ ? take_answer(greeting) : take_hello(greeting);
  failed_ = !greeted;
  return greeted;
}

/// The request has proved the same link, but in 80 bits, and anybody may have repeated it.
Status SealedMessages::take_hello(const GreetingBytes& hello) {
  const auto asked = read_greeting(hello, GreetingKind::hello, Carrier::rdma);
  if (!asked) return tributary::fail(Errc::corrupt, "it sends no hello of a sealed connection");
  if (asked->name() != link_.link.name || asked->level != static_cast<std::uint8_t>(link_.link.security)) {
    return tributary::fail(Errc::denied, "its hello is for another place or security than its request");
  }
  if (!hello_is_authentic(link_.secret, hello)) {
    return tributary::fail(Errc::denied, "its hello does not prove that it knows the connection's secret");
  }
  const auto answer = answer_to(hello, link_.secret);
  if (!answer) return tributary::fail(Errc::corrupt, "its hello is wrong: " + answer.error().message);
  ours_ = answer->bytes;
  start(answer->secrets);
  return {};
}

Status SealedMessages::take_answer(const GreetingBytes& answer) {
  const auto secrets = secrets_of(ours_, *exchange_, answer, link_.secret);
  if (!secrets) {
    return tributary::fail(
        Errc::denied, "its answer does not prove that it knows the connection's secret: " + secrets.error().message);
  }
  start(*secrets);
  return {};
}

void SealedMessages::start(const StreamSecrets& secrets) {
  sending_.emplace(secrets, link_.link.security, client_, RecordKey::Use::seals);
  receiving_.emplace(secrets, link_.link.security, !client_, RecordKey::Use::opens);
  exchange_.reset();
  link_.secret = {};
}

bool SealedMessages::seal(std::span<std::byte> message) noexcept {
  TRIBUTARY_ASSERT(ready() && message.size() > kMessageTagBytes, "a message of {} bytes is sealed", message.size());
  return sending_->seal_message(message.first(message.size() - kMessageTagBytes), message.last<kMessageTagBytes>());
}

std::span<std::byte> SealedMessages::open(std::span<std::byte> message) noexcept {
  TRIBUTARY_ASSERT(ready(), "a message of {} bytes is opened before both sides have agreed on keys", message.size());
  failed_ = failed_ || message.size() < sizeof(MessagePrefix) + kMessageTagBytes;
  if (failed_) return {};
  const auto content = message.first(message.size() - kMessageTagBytes);
  failed_ = !receiving_->open_message(content, message.last<kMessageTagBytes>());
  return failed_ ? std::span<std::byte>() : content;
}

}  // namespace tributary::transport::verbs
