// Sending: frames are gathered into messages, messages into lists that the device gets at once.
#include <cstring>

#include "verbs/verbs_connection.h"

namespace tributary::transport::verbs {

constexpr std::size_t kPostedAtOnce = 16;

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
  return sent_ - peer_consumed_ < places && posted_ - retired_ < 2 * depth_;
}

bool VerbsConnection::has_news() noexcept {
  if (queue_.next() != nullptr || fetched_count_ != fetched_told_) return true;
  if (consumed_ - consumed_told_ >= std::max(1U, depth_ / 2)) return true;
  return state_ == State::flushing && queue_.all_done();
}

void VerbsConnection::send_turn() {
  if (!running() || queue_pair_ == nullptr) return;
  while (may_send() && has_news() && post_messages()) {
  }
}

/// One list of messages. False: the connection is broken.
bool VerbsConnection::post_messages() {
  std::array<ibv_send_wr, kPostedAtOnce> works;
  std::array<ibv_sge, kPostedAtOnce> places;
  std::size_t count = 0;
  while (count < works.size() && may_send() && has_news()) {
    const auto message = rings_.send(sent_ % depth_).first(message_bytes_);
    const auto used = fill_message(message);
    if (!used) return false;
    const bool last = last_posted_;
    const bool signal = last || ++since_signal_ >= std::max(1U, depth_ / 4);
    if (signal) since_signal_ = 0;
    ++sent_;
    ++posted_;
    places[count] = {.addr = reinterpret_cast<std::uintptr_t>(message.data()),
                     .length = static_cast<std::uint32_t>(*used),
                     .lkey = rings_.local_key()};
    ibv_send_wr& work = works[count];
    work = {};
    work.wr_id = WorkId{number_, last ? WorkKind::last_send : WorkKind::send, posted_}.packed();
    work.sg_list = &places[count];
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    work.send_flags = (signal ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
                      (*used <= inline_bytes_ ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
    if (count > 0) works[count - 1].next = &work;
    ++count;
  }
  if (count == 0) return true;
  ibv_send_wr* refused = nullptr;
  ++core_.statistics.posts;
  core_.statistics.messages_sent += count;
  if (const int error = ibv_post_send(queue_pair_, works.data(), &refused); error != 0) {
    broken({Errc::io, "cannot send to " + peer_ + ": " + std::strerror(error) + "."});
    return false;
  }
  core_.make_due(self());  // what has left is told
  return true;
}

/// As many frames as it holds. Nothing: the connection is broken.
std::optional<std::size_t> VerbsConnection::fill_message(std::span<std::byte> message) {
  MessagePrefix prefix;
  std::size_t used = sizeof prefix;
  while (FrameQueue::Frame* frame = queue_.next()) {
    const auto written = write_frame(*frame, message.subspan(used));
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
std::optional<std::size_t> VerbsConnection::write_frame(FrameQueue::Frame& frame, std::span<std::byte> rest) {
  const bool here = frame.payload.size() <= message_bytes_ - sizeof(MessagePrefix) - sizeof(RecordHead);
  const std::size_t body = here ? frame.payload.size() : sizeof(RemotePayload);
  if (rest.size() < sizeof(RecordHead) + aligned(body)) return 0;
  RecordHead head{.kind = here ? RecordKind::here : RecordKind::fetch, .payload_bytes = frame.header.payload_bytes};
  encode(frame.header, head.header);
  std::memcpy(rest.data(), &head, sizeof head);
  std::byte* const after = rest.data() + sizeof head;
  if (here) {
    if (body > 0) std::memcpy(after, frame.payload.data(), body);
    core_.statistics.bytes_copied += body;
  } else {
    auto source = domain_->registrations().acquire(frame.payload, Access::source);
    if (!source) {
      broken(std::move(source.error()));
      return std::nullopt;
    }
    frame.registration = std::move(*source);
    const RemotePayload remote{.address = reinterpret_cast<std::uintptr_t>(frame.payload.data()),
                               .key = frame.registration->remote_key()};
    std::memcpy(after, &remote, sizeof remote);
    ++fetch_offered_;
  }
  queue_.sent(!here);
  return sizeof head + aligned(body);
}

}  // namespace tributary::transport::verbs
