#pragma once
// The seal of one RDMA connection: the greeting, then the messages of both directions. It knows no queue pair.
//
//   client                                     listener
//     | -- request of the connection manager, with the claimed place and the level ---> |   proved (verbs/proof.h)
//     | <---------------------------------------------------------------------- reply - |
//     | -- message 0: hello (seal/stream_greeting.h) ---------------------------------> |   of the same place and level
//     | <---------------------------------------------------------- message 0: answer - |
//     | -- sealed messages ... -------------------------------------------------------> |
#include <memory>
#include <optional>
#include <span>

#include "transport/seal/record_key.h"
#include "transport/verbs/wire.h"

namespace tributary::transport::verbs {

static_assert(AeadKey::kTagBytes == kMessageTagBytes);
static_assert(kGreetingBytes <= message_bytes_for(sizeof(RemotePayload)), "a greeting is a message");

class SealedMessages {
 public:
  /// The client's side of a connection for `link`. Errc::unsupported: OpenSSL makes no key.
  [[nodiscard]] static Result<std::unique_ptr<SealedMessages>> of_client(const LinkKeys::Link& link);
  /// The listener's side, after the request has claimed and proved this link.
  [[nodiscard]] static std::unique_ptr<SealedMessages> of_listener(const LinkKeys::Link& link);

  /// The link that both sides have agreed to seal, at the latest when the first message is sealed.
  [[nodiscard]] const SealedLink& link() const noexcept { return link_.link; }
  [[nodiscard]] bool is_client() const noexcept { return client_; }
  /// True once both sides have agreed on keys.
  [[nodiscard]] bool ready() const noexcept { return sending_.has_value(); }

  /// This side's greeting. The listener has one only when it is ready.
  [[nodiscard]] const GreetingBytes& ours() const noexcept { return ours_; }
  /// Takes the other side's greeting, once. The error says why it is not believed, without the other side's name. Then
  /// no message is believed, either.
  [[nodiscard]] Status greet(std::span<const std::byte> theirs);

  /// Seals a message in place. `message` ends with room for the authenticator. False: OpenSSL fails.
  [[nodiscard]] bool seal(std::span<std::byte> message) noexcept;
  /// Opens a message in place, and returns it without its authenticator. Empty: it is not authentic; then no later
  /// message is, either.
  [[nodiscard]] std::span<std::byte> open(std::span<std::byte> message) noexcept;
  [[nodiscard]] std::uint64_t opened() const noexcept { return receiving_ ? receiving_->next() : 0; }
  /// True once this side no longer believes the other side's messages.
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  void fail() noexcept { failed_ = true; }

 private:
  SealedMessages(const LinkKeys::Link& link, bool client) noexcept : link_(link), client_(client) {}
  [[nodiscard]] Status take_hello(const GreetingBytes& hello);
  [[nodiscard]] Status take_answer(const GreetingBytes& answer);
  void start(const StreamSecrets& secrets);

  LinkKeys::Link link_;
  const bool client_;
  std::optional<ExchangeKey> exchange_;  // the client's key, until the answer
  GreetingBytes ours_{};
  std::optional<RecordKey> sending_;
  std::optional<RecordKey> receiving_;
  bool failed_ = false;
};

}  // namespace tributary::transport::verbs
