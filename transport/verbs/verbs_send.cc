// Sending: frames are gathered into messages, messages into lists that the device gets at once.
#include <arpa/inet.h>

#include <cstring>

#include "verbs/verbs_connection.h"

namespace tributary::transport::verbs {

bool VerbsConnection::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (!taking_frames() || queue_.borrowed() >= core_.settings().frames_queued_max) return false;
  FrameQueue::Frame& frame = queue_.push(header);
  frame.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  frame.payload = payload;
  frame.cookie = cookie;
  frame.borrowed = true;
  queue_.count_borrowed();
  if (state_ == State::open) core_.make_dirty(self());
  return true;
}

void VerbsConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!taking_frames()) return;
  FrameQueue::Frame& frame = queue_.push(header);
  frame.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  frame.copy.assign(payload.begin(), payload.end());
  frame.payload = frame.copy;
  if (state_ == State::open) core_.make_dirty(self());
}

/// See verbs_connection.h: the last place is for those that acknowledge something new.
bool VerbsConnection::may_send() const noexcept {
  if (!running() || last_posted_) return false;
  const std::uint32_t places = consumed_ != consumed_told_ ? peer_depth_ : peer_depth_ - 1;
  return sent_ - peer_consumed_ < places && posted_ - retired_ < 2 * depth_ + binds_max_;
}

bool VerbsConnection::has_news() noexcept {
  if (may_send_next() || fetched_count_ != fetched_told_) return true;
  if (consumed_ - consumed_told_ >= std::max(1U, depth_ / 2)) return true;
  if (places_.has_untold() || room_untold_) return true;
  if (landing_.is_open() && landing_.freed() - freed_told_ >= std::max(1U, landing_.cells() / 2)) return true;
  return state_ == State::flushing && queue_.all_done();
}

/// Whether there is a frame to send that need not wait for a memory window.
bool VerbsConnection::may_send_next() noexcept {
  const FrameQueue::Frame* const next = queue_.next();
  return next != nullptr && (!windows_.in_use() || windows_.has_free() || way_of(*next) != Way::fetched);
}

bool VerbsConnection::is_eager(std::size_t payload_bytes) const noexcept {
  return payload_bytes <= message_bytes_ - sizeof(MessagePrefix) - sizeof(RecordHead);
}

/// What the peer reads by itself always works, so nobody waits for room.
VerbsConnection::Way VerbsConnection::way_of(const FrameQueue::Frame& frame) const noexcept {
  if (is_eager(frame.payload.size())) return Way::in_message;
  if (places_there_.find(frame.header) != nullptr) return Way::to_place;
  return landing_there_.takes(frame.payload.size()) ? Way::to_cell : Way::fetched;
}

void VerbsConnection::send_turn() {
  if (!running() || queue_pair_ == nullptr) return;
  while (may_send() && has_news() && post_messages()) {
  }
}

std::uint64_t VerbsConnection::next_work(WorkKind kind) noexcept {
  return WorkId{number_, kind, ++posted_}.packed();
}

bool VerbsConnection::post(SendList& list) {
  ++core_.statistics.posts;
  if (const int error = list.post(queue_pair_); error != 0) {
    broken({Errc::io, "cannot send to " + peer_ + ": " + std::strerror(error) + "."});
    return false;
  }
  return true;
}

/// One list of messages, each behind the windows that it tells of. False: the connection is broken.
bool VerbsConnection::post_messages() {
  SendList list;
  const std::uint32_t sent_before = sent_;
  writes_in_list_ = false;
  while (list.room() >= 2 && may_send() && has_news()) {
    FrameQueue::Frame* const next = queue_.next();
    const Way way = next != nullptr ? way_of(*next) : Way::in_message;
    const bool ok = way == Way::to_place  ? add_place(*next, list)
                    : way == Way::to_cell ? add_cell(*next, list)
                                          : add_message(list);
    if (!ok) return false;
    ++sent_;
    if (last_posted_ || ++since_signal_ >= std::max(1U, depth_ / 4)) {
      list.last().send_flags |= IBV_SEND_SIGNALED;
      since_signal_ = 0;
    }
  }
  if (list.empty()) return true;
  if (writes_in_list_) {  // their memory is somebody's, who wants to hear when it is free
    list.last().send_flags |= IBV_SEND_SIGNALED;
    since_signal_ = 0;
  }
  core_.statistics.messages_sent += sent_ - sent_before;
  if (!post(list)) return false;
  core_.make_due(self());  // what has left is told
  return true;
}

bool VerbsConnection::add_message(SendList& list) {
  const auto message = rings_.send(sent_ % depth_).first(message_bytes_);
  const auto used = fill_message(message, list);
  if (!used) return false;
  ibv_send_wr& work = list.add(next_work(last_posted_ ? WorkKind::last_send : WorkKind::send), message.first(*used),
                               rings_.local_key());
  work.opcode = IBV_WR_SEND;
  if (*used <= inline_bytes_) work.send_flags = IBV_SEND_INLINE;
  return true;
}

/// The frame's message and its payload, gathered into the peer's next cell.
bool VerbsConnection::add_cell(FrameQueue::Frame& frame, SendList& list) {
  if (!register_local(frame)) return false;
  const auto message = rings_.send(sent_ % depth_).first(std::min<std::size_t>(message_bytes_, kCellMessageBytes));
  auto used = write_news(message, sizeof(RecordHead), list);
  if (!used) return false;
  RecordHead head{.kind = RecordKind::landed, .payload_bytes = frame.header.payload_bytes, .header = {}};
  encode(frame.header, head.header);
  std::memcpy(message.data() + *used, &head, sizeof head);
  *used += sizeof head;
  write_prefix(message, *used, 0);
  ibv_send_wr& work = list.add(next_work(WorkKind::write), message.first(*used), rings_.local_key());
  list.gather(work, frame.payload, frame.registration->local_key());
  landing_there_.write_next(work, static_cast<std::uint32_t>(*used));
  queue_.written(posted_);
  return true;
}

/// The payload alone, to where the peer wants it: the number says which it is.
bool VerbsConnection::add_place(FrameQueue::Frame& frame, SendList& list) {
  if (!register_local(frame)) return false;
  const RemotePayload* const there = places_there_.find(frame.header);
  ibv_send_wr& work = list.add(next_work(WorkKind::write), frame.payload, frame.registration->local_key());
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.wr.rdma = {.remote_addr = there->address, .rkey = there->key};
  consumed_told_ = consumed_;
  freed_told_ = landing_.freed();
  work.imm_data =
      htonl(packed(PlaceImmediate{.number = there->number, .consumed = consumed_told_, .freed = freed_told_}));
  places_there_.taken(there);
  queue_.written(posted_);
  return true;
}

/// Our own device reads it.
bool VerbsConnection::register_local(FrameQueue::Frame& frame) {
  auto local = domain_->registrations().acquire(frame.payload, Access::local);
  if (!local) {
    broken(std::move(local.error()));
    return false;
  }
  frame.registration = std::move(*local);
  writes_in_list_ = true;
  core_.statistics.bytes_written += frame.payload.size();
  ++core_.statistics.frames_sent;
  return true;
}

/// The peer has fetched so many payloads. Their memory is free when it cannot read it any more.
void VerbsConnection::end_offers(std::uint32_t count) {
  if (!windows_.in_use()) {
    for (; count > 0; --count) queue_.fetched();
    return;
  }
  while (count > 0) {
    SendList list;
    for (; count > 0 && list.room() > 0; --count) {
      ibv_send_wr& work = list.add(next_work(WorkKind::revoke));
      windows_.revoke(work, posted_);
    }
    list.last().send_flags = IBV_SEND_SIGNALED;
    if (!post(list)) return;
  }
}

/// As many frames as it holds. Nothing: the connection is broken.
std::optional<std::size_t> VerbsConnection::fill_message(std::span<std::byte> message, SendList& list) {
  auto news = write_news(message, 0, list);
  if (!news) return std::nullopt;
  std::size_t used = *news;
  while (may_send_next()) {
    const Way way = way_of(*queue_.next());
    if (way != Way::in_message && way != Way::fetched) break;
    const auto written = write_frame(*queue_.next(), message.subspan(used), list);
    if (!written) return std::nullopt;
    if (*written == 0) break;
    used += *written;
    ++core_.statistics.frames_sent;
  }
  std::uint32_t flags = 0;
  if (state_ == State::flushing && queue_.all_done()) {
    flags = kLastMessage;
    last_posted_ = true;
    state_ = State::last_words;
  }
  write_prefix(message, used, flags);
  return used;
}

/// Behind the prefix's place, what the peer must know of room and places here; `kept` bytes stay free. So many bytes,
/// or nothing: the connection is broken.
std::optional<std::size_t> VerbsConnection::write_news(std::span<std::byte> message, std::size_t kept, SendList& list) {
  std::size_t used = sizeof(MessagePrefix);
  while (room_untold_ || places_.has_untold()) {
    const auto rest = message.subspan(used, message.size() - kept - used);
    const auto written = room_untold_ ? tell_room(rest, list) : tell_place(rest, list);
    if (!written) return std::nullopt;
    if (*written == 0) break;
    used += *written;
  }
  return used;
}

void VerbsConnection::write_prefix(std::span<std::byte> message, std::size_t used, std::uint32_t flags) noexcept {
  MessagePrefix prefix;
  prefix.consumed = consumed_told_ = consumed_;
  prefix.fetched = fetched_told_ = fetched_count_;
  prefix.freed = freed_told_ = landing_.freed();
  prefix.bytes = static_cast<std::uint32_t>(used);
  prefix.flags = flags;
  std::memcpy(message.data(), &prefix, sizeof prefix);
}

/// So many bytes; 0: it does not fit any more. Nothing: the connection is broken.
std::optional<std::size_t> VerbsConnection::write_frame(FrameQueue::Frame& frame, std::span<std::byte> rest,
                                                        SendList& list) {
  const bool here = is_eager(frame.payload.size());
  const std::size_t body = here ? frame.payload.size() : sizeof(RemotePayload);
  if (rest.size() < sizeof(RecordHead) + aligned(body)) return 0;
  if (!here && list.room() < 2) return 0;  // a window's place, and the message's
  RecordHead head{.kind = here ? RecordKind::here : RecordKind::fetch, .payload_bytes = frame.header.payload_bytes};
  encode(frame.header, head.header);
  std::memcpy(rest.data(), &head, sizeof head);
  std::byte* const after = rest.data() + sizeof head;
  if (here) {
    if (!copy_payload({after, body}, frame.payload.data())) return std::nullopt;
  } else {
    const auto key = offer(frame, list);
    if (!key) {
      broken(key.error());
      return std::nullopt;
    }
    const RemotePayload remote{.address = reinterpret_cast<std::uintptr_t>(frame.payload.data()), .key = *key};
    std::memcpy(after, &remote, sizeof remote);
    ++fetch_offered_;
  }
  queue_.sent(!here);
  return sizeof head + aligned(body);
}

/// The peer may read this frame's payload with the key; after end_offers() not any more.
Result<std::uint32_t> VerbsConnection::offer(FrameQueue::Frame& frame, SendList& list) {
  auto source = domain_->registrations().acquire(frame.payload, Access::source);
  if (!source) return std::unexpected(source.error());
  frame.registration = std::move(*source);
  if (!windows_.in_use()) return frame.registration->remote_key();
  return windows_.bind(frame.payload, *frame.registration, list.add(next_work(WorkKind::bind)));
}

}  // namespace tributary::transport::verbs
