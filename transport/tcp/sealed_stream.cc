#include "transport/tcp/sealed_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport {

Result<std::unique_ptr<SealedStream>> SealedStream::of_client(const LinkKeys::Link& link) {
  const auto key = ExchangeKey::generate();
  if (!key) return std::unexpected(key.error());
  std::unique_ptr<SealedStream> stream(new SealedStream);
  stream->link_ = link;
  stream->exchange_ = *key;
  stream->ours_ = hello_of(link, stream->exchange_->public_key());
  stream->unsent_.assign(stream->ours_.begin(), stream->ours_.end());
  return stream;
}

std::unique_ptr<SealedStream> SealedStream::of_listener(std::shared_ptr<const LinkKeys> keys) {
  TRIBUTARY_ASSERT(keys != nullptr, "a listener without keys awaits a sealed stream");
  std::unique_ptr<SealedStream> stream(new SealedStream);
  const RefuseReason demand = reason_to_refuse(PacketSecurity::off, keys->least());
  stream->keys_ = std::move(keys);
  if (demand == RefuseReason::none) return stream;
  const GreetingBytes told = refusal_of(demand);
  stream->unsent_.assign(told.begin(), told.end());
  return stream;
}

// ---- The greeting

SealedStream::Greeted SealedStream::greet(std::size_t bytes, const std::string& peer) {
  TRIBUTARY_ASSERT(!ready() && bytes <= greeting_room().size(), "{} bytes of a greeting come to {} of {}", bytes,
                   theirs_bytes_, theirs_.size());
  theirs_bytes_ += bytes;
  if (theirs_bytes_ < sizeof kStreamMagic) return Greeted::more;
  if (!begins_sealed(greeting())) {
    if (keys_ == nullptr) return refuse(refused_by(peer, RefuseReason::never_seals));  // it has begun in clear
    const RefuseReason reason = reason_to_refuse(PacketSecurity::off, keys_->least());
    if (reason == RefuseReason::none) return Greeted::in_clear;
    return refuse({Errc::denied, peer + " connects without security, and this side demands '" +
                                     std::string(to_string(keys_->least())) + "'."},
                  reason);
  }
  if (theirs_bytes_ < theirs_.size()) return Greeted::more;
  return keys_ == nullptr ? take_answer(peer) : take_hello(peer);
}

SealedStream::Greeted SealedStream::refuse(Error error, RefuseReason reason) {
  error_ = std::move(error);
  refusal_ = reason;
  return Greeted::refused;
}

/// Checks the HMAC before all work that costs more.
SealedStream::Greeted SealedStream::take_hello(const std::string& peer) {
  const auto hello = read_greeting(theirs_, GreetingKind::hello);
  const auto level = hello ? static_cast<PacketSecurity>(hello->level) : PacketSecurity::off;
  if (level != PacketSecurity::authenticate && level != PacketSecurity::encrypt) {
    return refuse({Errc::corrupt, peer + " sends an impossible hello for a sealed stream."});
  }
  if (const auto reason = reason_to_refuse(level, keys_->least()); reason != RefuseReason::none) {
    return refuse({Errc::denied, peer + " connects with security '" + std::string(to_string(level)) +
                                     "', and this side demands '" + std::string(to_string(keys_->least())) + "'."},
                  reason);
  }
  const auto secret = keys_->of(hello->name());
  if (!secret && secret.error() == NoSecret::not_yet) {
    if (!waits_for_key()) key_until_ = Clock::now() + kKeyLimit;
    if (Clock::now() < key_until_) return Greeted::waits;
    return refuse(
        {Errc::denied, peer + " seals its connection, and this side has not reached its manager, so it has no secret."},
        RefuseReason::no_key_yet);
  }
  key_until_ = TimePoint::max();
  if (!secret || !hello_is_authentic(*secret, theirs_)) {
    return refuse({Errc::denied, peer + " seals its connection with a secret that this side does not know."},
                  RefuseReason::unknown_secret);
  }
  const auto answer = answer_to(theirs_, *secret);
  if (!answer) return refuse({Errc::corrupt, peer + " sends a hello that is wrong: " + answer.error().message + "."});
  link_ = {{hello->name(), level}, *secret};
  unsent_.insert(unsent_.end(), answer->bytes.begin(), answer->bytes.end());
  start(answer->secrets, false);
  return Greeted::sealed;
}

SealedStream::Greeted SealedStream::look_for_key(const std::string& peer) {
  TRIBUTARY_ASSERT(waits_for_key() && theirs_bytes_ == theirs_.size(), "{} bytes of a hello wait for a key",
                   theirs_bytes_);
  return take_hello(peer);
}

SealedStream::Greeted SealedStream::take_answer(const std::string& peer) {
  if (const RefuseReason reason = refusal_in(theirs_); reason != RefuseReason::none) {
    const auto demanded =
        reason == RefuseReason::wants_encryption ? PacketSecurity::encrypt : PacketSecurity::authenticate;
    const bool demands = reason == RefuseReason::wants_encryption || reason == RefuseReason::wants_authentication;
    if (!demands || link_.link.security < demanded) return refuse(refused_by(peer, reason));
    theirs_bytes_ = 0;  // the listener's demand, which this side meets; the answer follows
    return Greeted::more;
  }
  const auto secrets = secrets_of(ours_, *exchange_, theirs_, link_.secret);
  if (!secrets) {
    return refuse({Errc::denied, "cannot connect to " + peer +
                                     ": its answer does not prove that it knows the connection's secret: " +
                                     secrets.error().message + "."});
  }
  start(*secrets, true);
  return Greeted::sealed;
}

void SealedStream::start(const StreamSecrets& secrets, bool client) {
  sending_.emplace(secrets, link_.link.security, client, RecordKey::Use::seals);
  receiving_.emplace(secrets, link_.link.security, !client, RecordKey::Use::opens);
  exchange_.reset();
  link_.secret = {};
}

// ---- Bytes to write

void SealedStream::note_sent(std::size_t bytes) noexcept {
  TRIBUTARY_ASSERT(bytes <= unsent().size(), "{} bytes are sent, and {} wait", bytes, unsent().size());
  unsent_begin_ += bytes;
  if (unsent_begin_ < unsent_.size()) return;
  unsent_.clear();
  unsent_begin_ = 0;
}

void SealedStream::keep_unsent(std::span<const std::byte> bytes) {
  TRIBUTARY_ASSERT(unsent().empty(), "{} bytes are kept before {} unsent bytes", bytes.size(), unsent().size());
  unsent_.assign(bytes.begin(), bytes.end());
}

/// Copies headers and short payloads of the queue. Returns their bytes, of which there is at least one.
std::size_t SealedStream::gather_frames(SendQueue& queue, std::span<std::byte> into, Filled& filled) noexcept {
  std::size_t used = 0;
  const auto copy = [&](std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(into.data() + used, bytes.data(), bytes.size());
    used += bytes.size();
  };
  while (!queue.empty()) {
    const SendQueue::Next next = queue.next();
    const auto header = next.header.subspan(std::min(next.offset, next.header.size()));
    const auto payload = next.payload.subspan(next.offset - (next.header.size() - header.size()));
    if (header.size() > into.size() - used) break;
    copy(header);
    const bool fits = payload.size() <= into.size() - used;
    if (fits) copy(payload);
    filled.frames += queue.consume(header.size() + (fits ? payload.size() : 0));
    if (!fits) break;
  }
  TRIBUTARY_ASSERT(used > 0 && used <= into.size(), "{} bytes of frames are gathered into {}", used, into.size());
  return used;
}

SealedStream::Filled SealedStream::fill(SendQueue& queue, std::span<std::byte> room, std::size_t content_max) noexcept {
  TRIBUTARY_ASSERT(ready(), "frames are sealed before the two sides have agreed on keys");
  Filled filled;
  while (!queue.empty() && filled.content < content_max) {
    const SendQueue::Next next = queue.next();
    const bool in_payload = next.offset >= next.header.size();
    const std::size_t left = in_payload ? next.payload.size() - (next.offset - next.header.size()) : 0;
    const bool payload = left > kFramesBytesMax;
    std::size_t content = payload ? std::min(left, kPayloadBytesMax) : kFramesBytesMax;
    if (content + kRecordExtraBytes > room.size() - filled.bytes) break;
    const auto at = room.subspan(filled.bytes);
    std::span<const std::byte> from;
    if (payload) {
      from = next.payload.last(left).first(content);
    } else {
      content = gather_frames(queue, at.subspan(kRecordHeadBytes, content), filled);
      from = at.subspan(kRecordHeadBytes, content);
    }
    if (!sending_->seal(payload, from, at.first(content + kRecordExtraBytes))) {
      filled.failed = true;
      return filled;
    }
    if (payload) filled.frames += queue.consume(content);  // only now, because it may free the payload
    filled.bytes += content + kRecordExtraBytes;
    filled.content += content;
  }
  return filled;
}

// ---- Records that were read

SealedStream::Next SealedStream::next() noexcept {
  if (opening_.size() < kRecordHeadBytes) return Next::none;
  const auto head = record_head(opening_);
  if (!head) return Next::senseless;
  head_ = *head;
  return opening_.size() < head_.record_bytes() ? Next::none : Next::record;
}

bool SealedStream::open(std::span<std::byte> content) noexcept {
  TRIBUTARY_ASSERT(content.size() == head_.content_bytes && opening_.size() >= head_.record_bytes(),
                   "a record of {} bytes is opened into {}", head_.content_bytes, content.size());
  const auto record = opening_.first(head_.record_bytes());
  opening_ = opening_.subspan(record.size());
  return receiving_->open(record, content);
}

void SealedStream::begin_opening(std::span<std::byte> bytes) noexcept {
  opening_ = bytes;
  kept_.clear();
  keeps_record_ = false;
}

void SealedStream::end_opening() {
  if (opening_.empty()) return;
  kept_.assign(opening_.begin(), opening_.end());
  keeps_record_ = next() != Next::none;
  opening_ = {};
}

std::size_t SealedStream::take_kept(std::span<std::byte> room) const noexcept {
  TRIBUTARY_ASSERT(kept_.size() < room.size(), "{} kept bytes fill a room of {}", kept_.size(), room.size());
  std::ranges::copy(kept_, room.begin());
  return kept_.size();
}

}  // namespace tributary::transport
