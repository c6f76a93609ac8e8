// Class VerbsConnection: sends. It gathers frames into messages, and messages into lists, which the device gets as a
// whole.
#include <arpa/inet.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <utility>

#include "transport/verbs/verbs_connection.h"
#include "transport/verbs/verbs_sealing.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

bool VerbsConnection::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (!taking_frames() || queue_.borrowed() >= core_.settings().frames_queued_max) return false;
  FrameQueue::Frame& frame = queue_.push(header);
  frame.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  frame.payload = payload;
  frame.cookie = cookie;
  frame.borrowed = true;
  queue_.count_borrowed();
  if (state_ == State::open) core_.make_dirty(*this);
  return true;
}

void VerbsConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!taking_frames()) return;
  FrameQueue::Frame& frame = queue_.push(header);
  frame.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  frame.copy.assign(payload.begin(), payload.end());
  frame.payload = frame.copy;
  if (state_ == State::open) core_.make_dirty(*this);
}

/// True if a message may be sent now; no message follows this side's last one.
bool VerbsConnection::may_send() const noexcept {
  return (state_ == State::open || state_ == State::flushing) && credit_.may_send() && (!seal_ || seal_->ready());
}

bool VerbsConnection::has_news() noexcept {
  if (may_send_next() || credit_.owes_word() || landing_.owes_word()) return true;
  if (places_.has_untold() || tellable_room() != 0) return true;
  return state_ == State::flushing && queue_.all_done() && others_quiet();
}

/// True if there is a frame that can be sent without waiting for a memory window.
bool VerbsConnection::may_send_next() noexcept {
  const FrameQueue::Frame* const next = queue_.next();
  return next != nullptr && (!windows_.in_use() || windows_.has_free() || travel_of(*next) != Travel::fetched);
}

bool VerbsConnection::is_eager(std::size_t payload_bytes) const noexcept {
  return payload_bytes <= message_bytes_ - sizeof(MessagePrefix) - sizeof(RecordHead);
}

/// Chooses the way of the payload. A payload that the peer fetches needs no room, so no frame waits for room.
VerbsConnection::Travel VerbsConnection::travel_of(const FrameQueue::Frame& frame) const noexcept {
  if (seal_ || is_eager(frame.payload.size())) return Travel::in_message;
  if (peer_places_.find(frame.header) != nullptr) return Travel::to_place;
  return peer_landing_.takes(frame.payload.size()) ? Travel::to_cell : Travel::fetched;
}

void VerbsConnection::send_turn() {
  if (!running() || pairs_.empty()) return;
  while (may_send() && has_news() && post_messages()) {
    if (!may_go(core_.round())) return core_.make_dirty(*this);
  }
}

std::uint64_t VerbsConnection::next_work(WorkKind kind, QueuePair& pair) noexcept {
  return WorkId{number_, kind, pair.index, ++pair.posted}.packed();
}

bool VerbsConnection::post(QueuePair& pair) {
  ++core_.statistics.posts;
  if (const int error = pair.post(); error != 0) {
    broken({Errc::io, "cannot send to " + peer_ + ": " + std::strerror(error) + "."});
    return false;
  }
  return true;
}

/// The queue pair for the next message or write.
QueuePair& VerbsConnection::pair_for(Travel travel, const FrameQueue::Frame* frame) noexcept {
  if (pairs_.size() == 1) return pairs_.front();
  if (travel == Travel::to_place) return pairs_[peer_places_.find(frame->header)->queue_pair];
  if (travel == Travel::to_cell) return pairs_[peer_landing_.next_queue_pair()];
  // Makes a message. The message tells the peer of the room for its own queue pair. Places are told on all queue pairs
  // in turn, so that the peer's writes to them spread, too. The accepting side does so only after the peer's first
  // message, which shows that the peer's queue pairs are ready.
  if (travel == Travel::fetched || !may_use_all()) return pairs_.front();
  if (room_untold_ != 0) return pairs_[static_cast<std::size_t>(std::countr_zero(room_untold_))];
  if (!places_.has_untold()) return pairs_.front();
  return pairs_[places_.next_queue_pair(pairs_.size())];
}

/// Makes lists of messages, each behind the binds of the windows whose keys it carries. Returns false if there is no
/// room now, or the connection is broken.
bool VerbsConnection::post_messages() {
  const std::uint32_t sent_before = credit_.number();
  bool ok = true;
  while (ok && may_send() && has_news()) {
    FrameQueue::Frame* const next = may_send_next() ? queue_.next() : nullptr;
    const Travel travel = next != nullptr ? travel_of(*next) : Travel::in_message;
    QueuePair& pair = pair_for(travel, next);
    if (pair.list.room() < 2 || pair.posted - pair.retired >= 2 * credit_.depth() + binds_max_) {
      if (pair.list.empty() && credit_.number() == sent_before)
        return false;  // posting goes on when outstanding
                       // work is complete
      break;
    }
    ok = travel == Travel::to_place  ? add_place(*next, pair)
         : travel == Travel::to_cell ? add_cell(*next, pair)
                                     : add_message(pair);
    if (!ok) break;
    credit_.send();
    // Further queue pairs report the end of all their work, which others_quiet() needs.
    if (pair.index != 0) pair.tells_end = true;
    if (state_ == State::last_words || ++pair.since_signal >= std::max(1U, credit_.depth() / 4)) {
      pair.list.last().send_flags |= IBV_SEND_SIGNALED;
      pair.since_signal = 0;
    }
  }
  core_.statistics.messages_sent += credit_.number() - sent_before;
  if (!post_lists() || !ok) return false;
  core_.make_due(*this);  // a turn is due to report frames that are done
  return true;
}

/// Rings one doorbell for each queue pair with a list.
bool VerbsConnection::post_lists() {
  bool ok = true;
  for (QueuePair& pair : pairs_) {
    if (pair.list.empty()) continue;
    if (std::exchange(pair.tells_end, false)) {  // a payload's owner waits for the end of the write
      pair.list.last().send_flags |= IBV_SEND_SIGNALED;
      pair.since_signal = 0;
    }
    ok = post(pair) && ok;
  }
  return ok;
}

bool VerbsConnection::add_message(QueuePair& pair) {
  const auto message = rings_.send(credit_.number() % credit_.depth()).first(message_bytes_);
  auto used = fill_message(message, pair);
  TRIBUTARY_ASSERT(!used || *used <= message.size(), "a message to {} has {} bytes, of at most {}", peer_, *used,
                   message.size());
  if (used && seal_) used = VerbsSealing::seal(*this, message.first(*used));
  if (!used) return false;
  ibv_send_wr& work = pair.list.add(next_work(state_ == State::last_words ? WorkKind::last_send : WorkKind::send, pair),
                                    {message.data(), *used}, rings_.local_key());
  work.opcode = IBV_WR_SEND;
  if (*used <= inline_bytes_) work.send_flags = IBV_SEND_INLINE;
  return true;
}

/// Writes the frame's message and its payload, gathered, into the peer's next cell.
bool VerbsConnection::add_cell(FrameQueue::Frame& frame, QueuePair& pair) {
  if (!register_local(frame, pair)) return false;
  const auto message =
      rings_.send(credit_.number() % credit_.depth()).first(std::min<std::size_t>(message_bytes_, kCellMessageBytes));
  auto used = write_news(message, sizeof(RecordHead), pair);
  if (!used) return false;
  TRIBUTARY_ASSERT(*used + sizeof(RecordHead) <= message.size(), "a message in a cell of {} has {} bytes and a frame",
                   peer_, *used);
  RecordHead head{.kind = RecordKind::landed, .payload_bytes = frame.header.payload_bytes, .header = {}};
  encode(frame.header, head.header);
  std::memcpy(message.data() + *used, &head, sizeof head);
  *used += sizeof head;
  write_prefix(message, *used, 0);
  ibv_send_wr& work = pair.list.add(next_work(WorkKind::write, pair), message.first(*used), rings_.local_key());
  pair.list.gather(work, frame.payload, frame.registration->local_key());
  peer_landing_.write_next(work, pair.index, static_cast<std::uint32_t>(*used), credit_.number());
  queue_.written(pair.index, pair.posted);
  return true;
}

/// Writes only the payload, to its place at the peer; the immediate has the place's number.
bool VerbsConnection::add_place(FrameQueue::Frame& frame, QueuePair& pair) {
  if (!register_local(frame, pair)) return false;
  const PeerPlaces::Place* const there = peer_places_.find(frame.header);
  TRIBUTARY_ASSERT(there != nullptr && there->queue_pair == pair.index, "a payload is written on queue pair {}",
                   pair.index);
  ibv_send_wr& work = pair.list.add(next_work(WorkKind::write, pair), frame.payload, frame.registration->local_key());
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.wr.rdma = {.remote_addr = there->where.address, .rkey = there->where.key};
  work.imm_data = htonl(packed(PlaceImmediate{.place = there->where.number,
                                              .number = credit_.number(),
                                              .consumed = credit_.tell_consumed(),
                                              .freed = landing_.tell_freed()}));
  peer_places_.taken(there);
  queue_.written(pair.index, pair.posted);
  return true;
}

/// Read-only memory (a file that is mapped for reading, a program's constants) cannot be registered as other memory
/// is, so this code sends a copy of it. The kernel makes the copy, so that memory that does not exist is still an
/// error.
Result<RegistrationPtr> VerbsConnection::register_payload(FrameQueue::Frame& frame, Access access) {
  auto made = domain_->registrations().acquire(frame.payload, access);
  if (made || made.error().code != Errc::bad_argument || frame.payload.data() == frame.copy.data()) return made;
  frame.copy.resize(frame.payload.size());
  const iovec to{.iov_base = frame.copy.data(), .iov_len = frame.copy.size()};
  const iovec from{.iov_base = const_cast<std::byte*>(frame.payload.data()), .iov_len = frame.payload.size()};
  const auto copied = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
  if (copied < 0 || static_cast<std::size_t>(copied) != frame.copy.size()) return made;
  frame.payload = frame.copy;
  return domain_->registrations().acquire(frame.payload, access);
}

/// Registers a payload that this side's device reads.
bool VerbsConnection::register_local(FrameQueue::Frame& frame, QueuePair& pair) {
  auto local = register_payload(frame, Access::local);
  if (!local) {
    broken(std::move(local.error()));
    return false;
  }
  frame.registration = std::move(*local);
  pair.tells_end = true;
  core_.statistics.bytes_written += frame.payload.size();
  ++core_.statistics.frames_sent;
  spend(frame.payload.size(), kTurnBytesOfPacket);
  return true;
}

/// Notes that the peer has fetched this number of payloads. Their memory is free when the peer can no longer read it.
void VerbsConnection::end_offers(std::uint32_t count) {
  if (!windows_.in_use()) {
    for (; count > 0; --count) queue_.fetched();
    return;
  }
  QueuePair& pair = pairs_.front();
  while (count > 0) {
    for (; count > 0 && pair.list.room() > 0; --count) {
      ibv_send_wr& work = pair.list.add(next_work(WorkKind::revoke, pair));
      windows_.revoke(work, pair.posted);
    }
    pair.list.last().send_flags = IBV_SEND_SIGNALED;
    if (!post(pair)) return;
  }
}

/// Fills a message with as many frames as it holds. Returns none if the connection is broken.
std::optional<std::size_t> VerbsConnection::fill_message(std::span<std::byte> message, QueuePair& pair) {
  auto news = write_news(message, 0, pair);
  if (!news) return std::nullopt;
  std::size_t used = *news;
  while (may_send_next()) {
    const Travel travel = travel_of(*queue_.next());
    if (travel != Travel::in_message && (travel != Travel::fetched || pair.index != 0)) break;
    const auto written = write_frame(*queue_.next(), message.subspan(used), pair);
    if (!written) return std::nullopt;
    if (*written == 0) break;
    used += *written;
  }
  std::uint32_t flags = 0;
  if (state_ == State::flushing && queue_.all_done() && pair.index == 0 && others_quiet()) {
    flags = kLastMessage;
    state_ = State::last_words;
  }
  write_prefix(message, used, flags);
  return used;
}

/// Writes the records about this side's room and places, behind the bytes for the prefix; `kept` bytes stay free.
/// Returns the bytes of prefix and records; none if the connection is broken.
std::optional<std::size_t> VerbsConnection::write_news(std::span<std::byte> message, std::size_t kept,
                                                       QueuePair& pair) {
  std::size_t used = sizeof(MessagePrefix);
  while (has_untold_room(pair) || places_.has_untold()) {
    const auto rest = message.subspan(used, message.size() - kept - used);
    const auto written = has_untold_room(pair) ? tell_room(rest, pair) : tell_place(rest, pair);
    if (!written) return std::nullopt;
    if (*written == 0) break;
    used += *written;
  }
  return used;
}

void VerbsConnection::write_prefix(std::span<std::byte> message, std::size_t used, std::uint32_t flags) noexcept {
  MessagePrefix prefix;
  prefix.consumed = credit_.tell_consumed();
  prefix.fetched = credit_.tell_fetched();
  prefix.freed = landing_.tell_freed();
  prefix.bytes = static_cast<std::uint32_t>(used);
  prefix.flags = flags;
  prefix.number = credit_.number();
  std::memcpy(message.data(), &prefix, sizeof prefix);
}

/// Writes a frame's record. Returns its bytes; 0 if it does not fit; none if the connection is broken.
std::optional<std::size_t> VerbsConnection::write_frame(FrameQueue::Frame& frame, std::span<std::byte> rest,
                                                        QueuePair& pair) {
  const bool here = is_eager(frame.payload.size());
  if (!here && seal_) return VerbsSealing::write_part(*this, frame, rest);
  const std::size_t body = here ? frame.payload.size() : sizeof(RemotePayload);
  if (rest.size() < sizeof(RecordHead) + aligned(body)) return 0;
  if (!here && pair.list.room() < 2) return 0;  // one request for a window, and one for the message
  RecordHead head{.kind = here ? RecordKind::here : RecordKind::fetch, .payload_bytes = frame.header.payload_bytes};
  encode(frame.header, head.header);
  std::memcpy(rest.data(), &head, sizeof head);
  std::byte* const after = rest.data() + sizeof head;
  if (here) {
    if (!copy_payload({after, body}, frame.payload.data())) return std::nullopt;
  } else {
    const auto key = offer(frame, pair);
    if (!key) {
      broken(key.error());
      return std::nullopt;
    }
    const RemotePayload remote{.address = reinterpret_cast<std::uintptr_t>(frame.payload.data()), .key = *key};
    std::memcpy(after, &remote, sizeof remote);
    credit_.offer();
  }
  spend(frame.payload.size(), kTurnBytesOfPacket);
  queue_.sent(!here);
  ++core_.statistics.frames_sent;
  return sizeof head + aligned(body);
}

/// Lets the peer read this frame's payload with the returned key, until end_offers().
Result<std::uint32_t> VerbsConnection::offer(FrameQueue::Frame& frame, QueuePair& pair) {
  TRIBUTARY_ASSERT(pair.index == 0, "a payload is offered on queue pair {}", pair.index);
  auto source = register_payload(frame, Access::source);
  if (!source) return std::unexpected(source.error());
  frame.registration = std::move(*source);
  if (!windows_.in_use()) return frame.registration->remote_key();
  return windows_.bind(frame.payload, *frame.registration, pair.list.add(next_work(WorkKind::bind, pair)));
}

}  // namespace tributary::transport::verbs
