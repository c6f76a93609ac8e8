#include "client/api/spare_meetings.h"

#include <string>

#include "client/api/meeting.h"
#include "transport/seal/aead_key.h"
#include "tributary/protocol/credential.h"

namespace tributary::client {
namespace {

/// Sets the key of one sealed id. Each nonce gives another key, which seals one message.
bool set_key(transport::AeadKey& key, const Secret& old, const Secret& nonce, bool sealing) {
  const Secret secret = derived(old, "a grown group, nonce " + to_hex(nonce), 0);
  return key.set(std::span(secret).first<transport::AeadKey::kMaterialBytes>(), sealing) && key.begin(0);
}

}  // namespace

Result<UniqueId> id_of_members(const Secret& old, std::string_view purpose, const MeetingOffer& offer,
                               const Members& members, std::uint32_t attempt) {
  const auto told = decode_unique_id(offer.bytes);
  if (!told) return told;
  std::string text = std::string(purpose) + ", nonce " + to_hex(told->secret) + ", ranks";
  for (const std::size_t rank : members) text += " " + std::to_string(rank);
  return UniqueId{told->root, derived(old, text, attempt)};
}

OwnMeeting& OwnMeeting::operator=(OwnMeeting&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

Result<MeetingOffer> OwnMeeting::offer() const {
  if (!id_) return MeetingOffer{};
  const auto nonce = random_secret();
  if (!nonce) return std::unexpected(nonce.error());
  const auto bytes = encode({id_->root, *nonce});
  if (!bytes) return std::unexpected(bytes.error());
  return MeetingOffer{.made = 1, .bytes = *bytes};
}

void OwnMeeting::admit(const Secret& secret) {
  if (!id_) return;
  change_secret(id_->secret, secret);
  id_->secret = secret;
}

void OwnMeeting::close() noexcept {
  if (id_) take_meeting(*id_).reset();
}

Result<UniqueId> SpareMeetings::next(const Secret& old, const Members& members) {
  const std::size_t leader = members.front();
  const std::size_t attempt = used_.at(leader);
  if (attempt == kShrinkAttempts) {
    return fail(Errc::exhausted, "rank " + std::to_string(leader) + " was the lowest rank of " +
                                     std::to_string(kShrinkAttempts) +
                                     " calls already: make a new communicator with a new unique id");
  }
  ++used_[leader];
  auto id =
      id_of_members(old, "a shrunk group", offers_[leader][attempt], members, static_cast<std::uint32_t>(attempt));
  if (id && leader == rank_) own_[attempt].admit(id->secret);
  return id;
}

Result<SealedId> seal_id(const Secret& old, const UniqueIdBytes& id) {
  const auto nonce = random_secret();
  if (!nonce) return std::unexpected(nonce.error());
  SealedId sealed{.nonce = *nonce};
  transport::AeadKey key;
  if (!set_key(key, old, *nonce, true) || !key.pass(std::as_bytes(std::span(id)), sealed.bytes.data()) ||
      !key.end(sealed.tag))
    return fail(Errc::io, "OpenSSL could not seal the unique id");
  return sealed;
}

Result<UniqueIdBytes> open_id(const Secret& old, const SealedId& sealed) {
  SealedId copy = sealed;
  UniqueIdBytes id{};
  transport::AeadKey key;
  if (!set_key(key, old, copy.nonce, false) || !key.pass(copy.bytes, std::as_writable_bytes(std::span(id)).data()) ||
      !key.matches(copy.tag))
    return fail(Errc::denied, "the unique id that rank 0 has sent is not authentic");
  return id;
}

}  // namespace tributary::client
