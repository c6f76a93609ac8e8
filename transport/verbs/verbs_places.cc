// Class VerbsConnection: handles the peer's writes. Payloads of expected frames go to their places, other payloads into
// the room that was made for them.
#include <arpa/inet.h>

#include <cstring>
#include <new>

#include "transport/verbs/verbs_connection.h"

namespace tributary::transport::verbs {

// ---- Hints of the user

void VerbsConnection::expect(const FrameHeader& header, std::span<std::byte> place) {
  if (!serving() || seal_ || place.size() != header.payload_bytes || is_eager(place.size())) return;
  if (places_.expect(header, place)) core_.make_dirty(*this);
}

void VerbsConnection::make_room(std::uint32_t payloads, std::uint32_t payload_bytes) {
  if (!serving() || seal_ || landing_.made() || !device_->writes_tell() || payloads == 0 || payload_bytes == 0) return;
  if (room_bytes_for(payloads, payload_bytes) > core_.settings().room_bytes_max || payload_bytes > kSegmentBytesMax)
    return;
  try {
    landing_.make(std::min(payloads, kCellsMax), payload_bytes);
  } catch (const std::bad_alloc&) {
    return;  // without room, payloads come in other ways
  }
  room_untold_ = (1U << pairs_.size()) - 1;
  core_.make_dirty(*this);
}

void VerbsConnection::give_back(std::span<const std::byte> payload) {
  if (landing_.free(payload.data()) && running()) core_.make_dirty(*this);
}

// ---- Messages to the peer about places and room

namespace {

template <class T>
void put(std::span<std::byte> to, const T& what) {
  std::memcpy(to.data(), &what, sizeof what);
}
constexpr std::size_t kToldBytes = sizeof(RecordHead) + sizeof(RemotePayload);

}  // namespace

/// Writes a record, and adds the work that must be done before it is sent. Returns the record's bytes; 0 if it does not
/// fit; none if the connection is broken.
std::optional<std::size_t> VerbsConnection::tell_room(std::span<std::byte> rest, QueuePair& pair) {
  if (rest.size() < kToldBytes || pair.list.room() < 2) return 0;
  ibv_send_wr* const bind = binds_max_ > 0 ? &pair.list.add(next_work(WorkKind::bind, pair)) : nullptr;
  const auto where = landing_.open(domain_->registrations(), landing_windows_[pair.index], bind);
  if (!where) {
    broken(where.error());
    return std::nullopt;
  }
  put(rest, RecordHead{.kind = RecordKind::room, .payload_bytes = landing_.payload_bytes(), .header = {}});
  put(rest.subspan(sizeof(RecordHead)), *where);
  room_untold_ &= ~(1U << pair.index);
  return kToldBytes;
}

std::optional<std::size_t> VerbsConnection::tell_place(std::span<std::byte> rest, QueuePair& pair) {
  if (rest.size() < kToldBytes || pair.list.room() < 2) return 0;
  ibv_send_wr* const bind = places_.takes_work() ? &pair.list.add(next_work(WorkKind::bind, pair)) : nullptr;
  const auto told = places_.tell(domain_->registrations(), pair.index, bind);
  if (!told) {
    broken(told.error());
    return std::nullopt;
  }
  RecordHead head{.kind = RecordKind::place, .payload_bytes = told->header.payload_bytes, .header = {}};
  encode(told->header, head.header);
  put(rest, head);
  put(rest.subspan(sizeof head), told->where);
  return kToldBytes;
}

/// Takes a place or room that the peer has announced.
bool VerbsConnection::learn_place(const RecordHead& head, const RemotePayload& where) {
  inbox_.end_record();
  const std::uint32_t by = inbox_.first().queue_pair;
  if (head.kind == RecordKind::room)
    return peer_landing_.open(where, head.payload_bytes, by) || corrupt("of an impossible room");
  const auto header = decode(head.header);
  if (!header || header->payload_bytes != head.payload_bytes || !peer_places_.add({*header, where, by}))
    return corrupt("of an impossible place");
  return true;
}

// ---- Written payloads

/// Marks a payload that the peer has written, as a part of completed(). The write used a receive, but not its buffer.
void VerbsConnection::written(const Came& what) {
  pairs_[what.queue_pair].to_receive.push_back(what.index);
  if ((what.immediate & kCellFlag) != 0) {
    cell_written(cell_of(what.immediate), what);
  } else {
    place_written(place_of(what.immediate), what);
  }
}

void VerbsConnection::cell_written(const CellImmediate& said, const Came& what) {
  const auto cell = landing_.written(said, what.bytes);
  if (!cell) return static_cast<void>(corrupt("a payload where it has no room"));
  MessagePrefix prefix;
  std::memcpy(&prefix, landing_.message(cell->number, said.message_bytes).data(), sizeof prefix);
  if (!take_news(prefix, said.message_bytes)) return;
  arrived({.where = Arrived::Where::cell,
           .queue_pair = what.queue_pair,
           .index = cell->number,
           .bytes = prefix.bytes,
           .payload_bytes = cell->payload_bytes,
           .revoking = windows_.revoking()});
}

void VerbsConnection::place_written(const PlaceImmediate& said, const Came& what) {
  if (!places_.written(said.place, what.queue_pair, what.bytes))
    return static_cast<void>(corrupt("a payload to a place that it does not have"));
  const MessagePrefix news{.consumed = credit_.whole_consumed(said.consumed, kConsumedMask),
                           .fetched = credit_.peer_fetched(),
                           .freed = peer_landing_.whole_count(said.freed, kFreedMask),
                           .bytes = sizeof(MessagePrefix)};
  if (!take_news(news, sizeof news)) return;
  arrived({.where = Arrived::Where::place,
           .queue_pair = what.queue_pair,
           .index = said.place,
           .revoking = windows_.revoking()});
}

/// Ends the rights to places that were written, before this side serves their payloads.
void VerbsConnection::revoke_places() {
  for (QueuePair& pair : pairs_) revoke_places(pair);
}

void VerbsConnection::revoke_places(QueuePair& pair) {
  while (places_.has_to_revoke(pair.index)) {
    while (places_.has_to_revoke(pair.index) && pair.list.room() > 0) {
      ibv_send_wr& work = pair.list.add(next_work(WorkKind::revoke, pair));
      places_.revoke(pair.index, work, pair.posted);
    }
    pair.list.last().send_flags = IBV_SEND_SIGNALED;
    if (!post(pair)) return;
  }
}

/// Makes a frame that has not come to its place wait until the peer can no longer write to the place.
bool VerbsConnection::awaits_withdrawal(const FrameHeader& header) {
  if (!withdrawing_) withdrawing_ = places_.withdraw(header);
  if (!withdrawing_) return false;
  revoke_places();
  if (places_.is_revoking(*withdrawing_) && !failed_) return true;
  withdrawing_.reset();
  return false;
}

// ---- Serving written payloads

/// Serves a payload at its place. Returns false if reading must stop.
bool VerbsConnection::serve_place() {
  const std::uint32_t number = inbox_.first().index;
  if (places_.is_revoking(number) && !failed_) return false;
  const auto written = places_.memory(number);
  if (!reader_.place(*this, places_.header(number))) return false;
  const bool moved = reader_.payload().data() != written.data();  // the handler now wants the payload elsewhere
  if (moved && !copy_payload(reader_.payload(), written.data())) {
    reader_.forget();
    return false;
  }
  reader_.land(written.size());
  if (!places_.is_revoking(number)) places_.free(number);
  inbox_.pop();
  return deliver();
}

/// Serves a payload in a cell. The payload stays there if the handler takes it in place. Returns false if reading must
/// stop.
bool VerbsConnection::serve_cell(const FrameHeader& header) {
  Arrived& message = inbox_.first();
  const std::uint32_t cell = message.index;
  const auto payload = landing_.payload(cell, message.payload_bytes);
  core_.count_callback();
  const bool stays = handler_->takes_in_place(*channel_, header);
  if (!serving()) return false;
  if (stays) {
    message.payload_bytes = 0;
    reader_.take(header, payload);
    ++core_.statistics.frames_in_place;
    return deliver();
  }
  if (!reader_.place(*this, header)) return false;
  message.payload_bytes = 0;
  if (!copy_payload(reader_.payload(), payload.data())) {
    reader_.forget();
    return false;
  }
  reader_.land(payload.size());
  landing_.free(cell);
  return deliver();
}

}  // namespace tributary::transport::verbs
