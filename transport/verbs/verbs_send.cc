// Sending: frames are gathered into messages, messages into lists that the device gets at once.
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
  return sent_ - peer_consumed_ < places && posted_ - retired_ < 2 * depth_ + windows_max_;
}

bool VerbsConnection::has_news() noexcept {
  if (may_send_next() || fetched_count_ != fetched_told_) return true;
  if (consumed_ - consumed_told_ >= std::max(1U, depth_ / 2)) return true;
  return state_ == State::flushing && queue_.all_done();
}

/// Whether there is a frame to send that need not wait for a memory window.
bool VerbsConnection::may_send_next() noexcept {
  const FrameQueue::Frame* const next = queue_.next();
  return next != nullptr && (!windows_.in_use() || windows_.has_free() || is_eager(*next));
}

bool VerbsConnection::is_eager(const FrameQueue::Frame& frame) const noexcept {
  return frame.payload.size() <= message_bytes_ - sizeof(MessagePrefix) - sizeof(RecordHead);
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
  std::uint32_t messages = 0;
  while (list.room() >= 2 && may_send() && has_news()) {
    const auto message = rings_.send(sent_ % depth_).first(message_bytes_);
    const auto used = fill_message(message, list);
    if (!used) return false;
    const bool last = last_posted_;
    const bool signal = last || ++since_signal_ >= std::max(1U, depth_ / 4);
    if (signal) since_signal_ = 0;
    ++sent_;
    ++messages;
    ibv_send_wr& work =
        list.add(next_work(last ? WorkKind::last_send : WorkKind::send), message.first(*used), rings_.local_key());
    work.opcode = IBV_WR_SEND;
    work.send_flags = (signal ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
                      (*used <= inline_bytes_ ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
  }
  if (list.empty()) return true;
  core_.statistics.messages_sent += messages;
  if (!post(list)) return false;
  core_.make_due(self());  // what has left is told
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
  MessagePrefix prefix;
  std::size_t used = sizeof prefix;
  while (may_send_next()) {
    const auto written = write_frame(*queue_.next(), message.subspan(used), list);
    if (!written) return std::nullopt;
    if (*written == 0) break;
    used += *written;
    ++core_.statistics.frames_sent;
  }
  if (state_ == State::flushing && queue_.all_done()) {
    prefix.flags = kLastMessage;
    last_posted_ = true;
    state_ = State::last_words;
  }
  prefix.consumed = consumed_told_ = consumed_;
  prefix.fetched = fetched_told_ = fetched_count_;
  prefix.bytes = static_cast<std::uint32_t>(used);
  std::memcpy(message.data(), &prefix, sizeof prefix);
  return used;
}

/// So many bytes; 0: it does not fit any more. Nothing: the connection is broken.
std::optional<std::size_t> VerbsConnection::write_frame(FrameQueue::Frame& frame, std::span<std::byte> rest,
                                                        SendList& list) {
  const bool here = is_eager(frame);
  const std::size_t body = here ? frame.payload.size() : sizeof(RemotePayload);
  if (rest.size() < sizeof(RecordHead) + aligned(body)) return 0;
  if (!here && list.room() < 2) return 0;  // a window's place, and the message's
  RecordHead head{.kind = here ? RecordKind::here : RecordKind::fetch, .payload_bytes = frame.header.payload_bytes};
  encode(frame.header, head.header);
  std::memcpy(rest.data(), &head, sizeof head);
  std::byte* const after = rest.data() + sizeof head;
  if (here) {
    if (body > 0) std::memcpy(after, frame.payload.data(), body);
    core_.statistics.bytes_copied += body;
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
