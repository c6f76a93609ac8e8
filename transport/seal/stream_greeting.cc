#include "transport/seal/stream_greeting.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

static_assert(std::endian::native == std::endian::little);

std::span<const std::byte> label(std::string_view text) {
  return std::as_bytes(std::span(text));
}

GreetingBytes bytes_of(const StreamGreeting& greeting) noexcept {
  return std::bit_cast<GreetingBytes>(greeting);
}

Digest hello_tag(const LinkSecret& secret, std::span<const std::byte, kGreetingBytes> hello) noexcept {
  return hmac_sha256(hkdf_expand(secret, label("tributary stream hello")), hello.first(kGreetingTold));
}

/// The carrier of a greeting that read_greeting() has taken.
Carrier carrier_of(const GreetingBytes& greeting) noexcept {
  return std::bit_cast<StreamGreeting>(greeting).carrier;
}

}  // namespace

std::optional<StreamGreeting> read_greeting(std::span<const std::byte, kGreetingBytes> bytes, GreetingKind kind,
                                            Carrier carrier) noexcept {
  StreamGreeting greeting;
  std::memcpy(&greeting, bytes.data(), sizeof greeting);
  if (greeting.magic != kStreamMagic || greeting.kind != kind || greeting.carrier != carrier) return std::nullopt;
  return greeting;
}

RefuseReason refusal_in(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kGreetingTold) return RefuseReason::none;
  GreetingBytes whole{};
  std::copy_n(bytes.begin(), kGreetingTold, whole.begin());
  const auto refusal = read_greeting(whole, GreetingKind::refusal);
  if (!refusal || refusal->reason > static_cast<std::uint8_t>(RefuseReason::no_key_yet)) return RefuseReason::none;
  return static_cast<RefuseReason>(refusal->reason);
}

bool begins_sealed(std::span<const std::byte> bytes) noexcept {
  TRIBUTARY_ASSERT(bytes.size() >= sizeof kStreamMagic, "a stream is judged by {} bytes", bytes.size());
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kStreamMagic;
}

GreetingBytes hello_of(const LinkKeys::Link& link, const ExchangePublicKey& key, Carrier carrier) noexcept {
  const LinkName& name = link.link.name;
  StreamGreeting hello{.level = static_cast<std::uint8_t>(link.link.security),
                       .carrier = carrier,
                       .group = name.group,
                       .epoch = name.epoch,
                       .lane = name.lane,
                       .child = name.child,
                       .key = key};
  hello.tag = hello_tag(link.secret, bytes_of(hello));
  return bytes_of(hello);
}

GreetingBytes refusal_of(RefuseReason reason) noexcept {
  return bytes_of({.kind = GreetingKind::refusal, .reason = static_cast<std::uint8_t>(reason)});
}

bool hello_is_authentic(const LinkSecret& secret, std::span<const std::byte, kGreetingBytes> hello) noexcept {
  return same_bytes(hello_tag(secret, hello), hello.last<kDigestBytes>());
}

StreamSecrets::StreamSecrets(const LinkSecret& secret, const SharedSecret& agreed, const GreetingBytes& hello,
                             const GreetingBytes& answer) noexcept {
  std::array<std::byte, 2 * kGreetingTold> told;
  std::copy_n(hello.begin(), kGreetingTold, told.begin());
  std::copy_n(answer.begin(), kGreetingTold, told.begin() + kGreetingTold);
  std::array<std::byte, kLinkSecretBytes + sizeof(SharedSecret)> both;
  std::ranges::copy(agreed, std::ranges::copy(secret, both.begin()).out);
  master_ = hkdf_extract(told, both);
  OPENSSL_cleanse(both.data(), both.size());
}

StreamSecrets::~StreamSecrets() {
  OPENSSL_cleanse(master_.data(), master_.size());
}

Digest StreamSecrets::answer_tag() const noexcept {
  return hkdf_expand(master_, label("tributary stream answer"));
}

Digest StreamSecrets::key_of(bool from_client, std::uint64_t phase) const noexcept {
  constexpr std::string_view kLabel = "tributary stream records";
  std::array<std::byte, kLabel.size() + 1 + sizeof phase> info;
  std::memcpy(info.data(), kLabel.data(), kLabel.size());
  info[kLabel.size()] = from_client ? std::byte{1} : std::byte{0};
  std::memcpy(info.data() + kLabel.size() + 1, &phase, sizeof phase);
  return hkdf_expand(master_, info);
}

Result<StreamAnswer> answer_to(const GreetingBytes& hello, const LinkSecret& secret) {
  const Carrier carrier = carrier_of(hello);
  const auto asked = read_greeting(hello, GreetingKind::hello, carrier);
  TRIBUTARY_ASSERT(asked.has_value(), "bytes that are no hello are answered");
  const auto key = ExchangeKey::generate();
  if (!key) return std::unexpected(key.error());
  const auto agreed = key->agree(asked->key);
  if (!agreed) return std::unexpected(agreed.error());
  StreamGreeting answer{.kind = GreetingKind::answer, .carrier = carrier, .key = key->public_key()};
  const StreamSecrets secrets(secret, *agreed, hello, bytes_of(answer));
  answer.tag = secrets.answer_tag();
  return StreamAnswer{bytes_of(answer), secrets};
}

Result<StreamSecrets> secrets_of(const GreetingBytes& hello, const ExchangeKey& key, const GreetingBytes& answer,
                                 const LinkSecret& secret) {
  const auto told = read_greeting(answer, GreetingKind::answer, carrier_of(hello));
  if (!told) return fail(Errc::corrupt, "it is no answer to a sealed connection's hello");
  const auto agreed = key.agree(told->key);
  if (!agreed) return std::unexpected(agreed.error());
  StreamSecrets secrets(secret, *agreed, hello, answer);
  if (!same_bytes(secrets.answer_tag(), told->tag)) return fail(Errc::corrupt, "its HMAC is wrong");
  return secrets;
}

}  // namespace tributary::transport
