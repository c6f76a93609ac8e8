#pragma once
// The first message of each side of a sealed stream or RDMA connection, and the secrets that both sides derive from the
// two messages.
//
//   client                                        listener
//     | -- hello: level, place, key, HMAC ---------> |   knows the place's link secret: checks the HMAC
//     | <------------- answer: key, HMAC ----------- |   knows the link secret, and has read this very hello
//     | -- records ... ----------------------------> |   the first record proves that the client made the hello's key
//     | <----------------------------- records ... - |
//
// The keys are X25519 keys that live for one connection: a process that learns the link secret later cannot read a
// recording. All secrets of the connection are derived from the link secret, the agreed X25519 secret and both
// messages, so nothing in a message can be changed without notice. docs/protocol.md draws the bytes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include "transport/seal/aead_key.h"
#include "transport/seal/refusal.h"
#include "tributary/transport/link_keys.h"

namespace tributary::transport {

inline constexpr std::uint32_t kStreamMagic = 0x31535254;  // "TRS1"
inline constexpr std::size_t kGreetingBytes = 96;
inline constexpr std::size_t kGreetingTold = 64;  // the bytes of a greeting that its HMAC covers

enum class GreetingKind : std::uint8_t { hello = 1, answer = 2, refusal = 3 };
/// The way of the greeting, and then of the records. A greeting is of no use on the other way.
enum class Carrier : std::uint8_t { stream = 0, rdma = 1 };

/// Both messages, and the listener's refusal, which has no HMAC. All numbers are little-endian.
struct StreamGreeting {
  std::uint32_t magic = kStreamMagic;
  GreetingKind kind = GreetingKind::hello;
  std::uint8_t level = 0;   // hello: PacketSecurity; otherwise 0
  std::uint8_t reason = 0;  // refusal: RefuseReason; otherwise 0
  Carrier carrier = Carrier::stream;
  std::uint64_t group = 0;  // hello: the place; otherwise 0
  std::uint32_t epoch = 0;
  std::uint32_t lane = 0;
  std::uint16_t child = 0;
  std::array<std::uint8_t, 6> unused{};
  ExchangePublicKey key{};
  Digest tag{};

  [[nodiscard]] LinkName name() const noexcept { return {group, epoch, lane, child}; }
};
static_assert(sizeof(StreamGreeting) == kGreetingBytes && offsetof(StreamGreeting, group) == 8 &&
              offsetof(StreamGreeting, child) == 24 && offsetof(StreamGreeting, key) == 32 &&
              offsetof(StreamGreeting, tag) == kGreetingTold);

using GreetingBytes = std::array<std::byte, kGreetingBytes>;

/// Reads a greeting of this kind. Empty: the bytes are no greeting. Checks no HMAC.
[[nodiscard]] std::optional<StreamGreeting> read_greeting(std::span<const std::byte, kGreetingBytes> bytes,
                                                          GreetingKind kind,
                                                          Carrier carrier = Carrier::stream) noexcept;
/// The reason of a refusal that begins with these bytes, 64 or more; none: they are no refusal.
[[nodiscard]] RefuseReason refusal_in(std::span<const std::byte> bytes) noexcept;
/// True if a stream that begins with these bytes, 4 or more, is sealed.
[[nodiscard]] bool begins_sealed(std::span<const std::byte> bytes) noexcept;

[[nodiscard]] GreetingBytes hello_of(const LinkKeys::Link& link, const ExchangePublicKey& key,
                                     Carrier carrier = Carrier::stream) noexcept;
[[nodiscard]] GreetingBytes refusal_of(RefuseReason reason) noexcept;
/// Compares in constant time.
[[nodiscard]] bool hello_is_authentic(const LinkSecret& secret,
                                      std::span<const std::byte, kGreetingBytes> hello) noexcept;

/// The secrets of one connection.
class StreamSecrets {
 public:
  /// `hello` and `answer` are the two messages; their HMACs do not count.
  StreamSecrets(const LinkSecret& secret, const SharedSecret& agreed, const GreetingBytes& hello,
                const GreetingBytes& answer) noexcept;
  ~StreamSecrets();
  StreamSecrets(const StreamSecrets&) = default;
  StreamSecrets& operator=(const StreamSecrets&) = default;

  /// The answer's HMAC.
  [[nodiscard]] Digest answer_tag() const noexcept;
  /// The key of one direction and phase.
  [[nodiscard]] Digest key_of(bool from_client, std::uint64_t phase) const noexcept;

 private:
  Digest master_{};
};

/// The listener's answer to a hello of either carrier, made with a new key, and the connection's secrets.
/// Errc::corrupt: the hello's key is one that no honest process makes.
struct StreamAnswer {
  GreetingBytes bytes{};
  StreamSecrets secrets;
};
[[nodiscard]] Result<StreamAnswer> answer_to(const GreetingBytes& hello, const LinkSecret& secret);
/// The connection's secrets on the client's side, from its own hello and key. Errc::corrupt: the answer is not
/// authentic.
[[nodiscard]] Result<StreamSecrets> secrets_of(const GreetingBytes& hello, const ExchangeKey& key,
                                               const GreetingBytes& answer, const LinkSecret& secret);

}  // namespace tributary::transport
