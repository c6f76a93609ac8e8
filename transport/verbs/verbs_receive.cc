// Class VerbsConnection: receives. It serves messages in their order, and in each message the frames in their order;
// large payloads are fetched directly to their place.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/verbs/record.h"
#include "transport/verbs/verbs_connection.h"
#include "transport/verbs/verbs_sealing.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

constexpr std::size_t kPostedAtOnce = 32;
constexpr std::uint32_t kIndexMask = 0xFFFFFF;

template <class T>
T read_as(std::span<const std::byte> from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

Errc code_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_ACCESS_ERR:  // a READ failed: the peer took its offer back, as a process that is killed does
    case IBV_WC_REM_OP_ERR:      // the peer took its offer back in the middle of a READ
      return Errc::peer_gone;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_LOC_LEN_ERR:
      return Errc::corrupt;
    default:
      return Errc::io;
  }
}

}  // namespace

/// Marks a completed request. Runs no callback: turn() runs them.
void VerbsConnection::completed(const ibv_wc& completion) {
  keepalive_.heard = true;
  const WorkId work = WorkId::of(completion.wr_id);
  if (work.queue_pair >= pairs_.size())
    return;  // work of a queue pair that the peer did not want, or that is
             // gone
  if (work.kind == WorkKind::read) fetch_.read_over();
  if (completion.status != IBV_WC_SUCCESS) return completion_failed(completion);
  if (work.kind == WorkKind::receive) {
    return came({.here = true,
                 .written = completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM,
                 .queue_pair = work.queue_pair,
                 .index = work.index,
                 .immediate = ntohl(completion.imm_data),
                 .bytes = completion.byte_len});
  }
  retire(pairs_[work.queue_pair], work.index);
  switch (work.kind) {
    case WorkKind::last_send:
      TRIBUTARY_ASSERT(state_ == State::last_words, "the last message to {} has arrived in state {}", peer_, state_);
      state_ = State::said;
      return make_due();
    case WorkKind::read:
      if (!fetch_.all_asked()) return fetch_more();
      if (fetch_.all_read()) make_due();
      return;
    case WorkKind::probe:
      keepalive_.probing = false;
      return;
    default:
      core_.make_due(*this);  // a write is done, or a window revoked
      return core_.make_dirty(*this);
  }
}

/// Notes that a request is done, and with it all earlier requests.
void VerbsConnection::retire(QueuePair& pair, std::uint32_t index) {
  pair.retired += (index - pair.retired) & kIndexMask;
  TRIBUTARY_ASSERT(static_cast<std::int32_t>(pair.posted - pair.retired) >= 0, "request {} is done, and {} were posted",
                   pair.retired, pair.posted);
  const std::uint32_t revoked = pair.index == 0 ? windows_.done_to(pair.retired) : 0;
  for (std::uint32_t i = 0; i < revoked; ++i) queue_.fetched();
  if (places_.done_to(pair.index, pair.retired) || revoked > 0) core_.make_due(*this);
}

/// True if the first message waits until windows are revoked. After a failure of the connection, the peer can no longer
/// read.
bool VerbsConnection::awaits_revocation() const noexcept {
  return serving() && !reader_.in_frame() && !failed_ && !inbox_.empty() &&
         !windows_.is_revoked(inbox_.first().revoking);
}

void VerbsConnection::completion_failed(const ibv_wc& completion) {
  failed_ = true;  // no request after the failed one has had any effect
  const std::string what =
      completion.status == IBV_WC_WR_FLUSH_ERR ? "its queue pair was closed" : ibv_wc_status_str(completion.status);
  broken({code_of(completion.status), "the connection to " + peer_ + " is broken: " + what + "."});
}

void VerbsConnection::take(const Came& what) {
  inbox_.take_next();
  ++core_.statistics.messages_received;
  if (what.written) {
    written(what);
  } else {
    received(what);
  }
}

void VerbsConnection::received(const Came& what) {
  const auto prefix = read_as<MessagePrefix>(receive(what.queue_pair, what.index));
  if (!take_news(prefix, what.bytes)) return;
  if ((prefix.flags & kLastMessage) != 0) inbox_.note_last();
  arrived({.where = Arrived::Where::ring,
           .queue_pair = what.queue_pair,
           .index = what.index,
           .bytes = prefix.bytes,
           .revoking = windows_.revoking()});
}

/// Takes the counts that a message or a write brings about the other direction. It does so at once, so that a handler
/// that answers NotYet does not stop this side's sending. `bytes` is the message's length. Returns false if the counts
/// are impossible.
bool VerbsConnection::take_news(const MessagePrefix& prefix, std::size_t bytes) {
  if (prefix.bytes < sizeof prefix || prefix.bytes > bytes) return corrupt("a message of a wrong length");
  const auto heard = credit_.hear(prefix.consumed, prefix.fetched);
  if (!heard || !peer_landing_.freed_to(prefix.freed))
    return corrupt("an acknowledgement of messages that were not sent");
  end_offers(heard->fetched);
  if (inbox_.has_last()) return corrupt("a message after the last");
  if (heard->consumed > 0) core_.make_dirty(*this);
  return true;
}

void VerbsConnection::arrived(const Arrived& what) {
  inbox_.push(what);
  core_.make_due(*this);
}

void VerbsConnection::serve() {
  if (!serving()) return discard_arrived();
  reader_.begin_turn();
  if (reader_.in_frame() && !seal_) {
    if (!fetch_.all_read() || failed_) return;
    if (!fetched()) return;
  }
  while (serving() && !reader_.stalled() && (seal_ || !reader_.in_frame()) && !inbox_.empty() && !awaits_revocation() &&
         may_go(core_.round()) && serve_record()) {
  }
  if (!inbox_.empty() && !may_go(core_.round())) make_due();  // the other side gets no credit for more meanwhile
}

bool VerbsConnection::corrupt(const std::string& why) {
  broken({Errc::corrupt, peer_ + " sent " + why + "."});
  return false;
}

std::span<const std::byte> VerbsConnection::message_of(const Arrived& message) const noexcept {
  return message.where == Arrived::Where::cell
             ? landing_.message(message.index, message.bytes)
             : std::span<const std::byte>(receive(message.queue_pair, message.index)).first(message.bytes);
}

/// Serves one frame, one record about places or room, or the end of a message. Returns false if reading must stop.
bool VerbsConnection::serve_record() {
  const Arrived& message = inbox_.first();
  if (message.where == Arrived::Where::place) return serve_place();
  const auto bytes = message_of(message);
  if (inbox_.read_to() >= bytes.size()) return message_over();
  const auto record = read_record(bytes, inbox_.read_to());
  if (!record) return corrupt(std::string(record.error()));
  const RecordKind kind = record->head.kind;
  if (seal_ ? is_remote(kind) : is_in_parts(kind))
    return corrupt(seal_ ? "an offer on a sealed connection" : "a payload in parts on a connection without a seal");
  inbox_.begin_record(record->end);
  if (kind == RecordKind::part) return VerbsSealing::serve_part(*this, record->body);
  if (kind == RecordKind::place || kind == RecordKind::room)
    return learn_place(record->head, read_as<RemotePayload>(record->body));
  return serve_frame(record->head, record->body);
}

bool VerbsConnection::message_over() {
  if (inbox_.first().payload_bytes != 0) return corrupt("a payload without its frame");
  const bool last = inbox_.first_is_last();
  const Arrived message = inbox_.pop();
  if (message.where == Arrived::Where::ring) pairs_[message.queue_pair].to_receive.push_back(message.index);
  if (!last) return true;
  tell_sent();  // frames that the peer has taken are reported before its end
  if (state_ != State::closed) tell_closed({Errc::peer_gone, peer_ + " closed the connection."});
  return false;
}

bool VerbsConnection::serve_frame(const RecordHead& head, std::span<const std::byte> body) {
  const auto header = decode(head.header);
  if (!header) {
    ++core_.statistics.rejects[static_cast<std::size_t>(header.error())];
    return corrupt("a corrupt frame: " + std::string(to_string(header.error())));
  }
  const bool in_parts = head.kind == RecordKind::begin;
  if (in_parts ? header->payload_bytes <= head.payload_bytes : header->payload_bytes != head.payload_bytes)
    return corrupt("a frame whose payload has another length than it says");
  if (reader_.in_frame()) return corrupt("a frame within another");
  if (opening_.claimed_by_peer && opening_.claimed_group != 0 && header->group != opening_.claimed_group) {
    return corrupt("a first frame of another group than it claimed");
  }
  opening_.claimed_by_peer = false;
  if (awaits_withdrawal(*header)) return false;
  if (head.kind == RecordKind::landed) {
    const Arrived& message = inbox_.first();
    if (message.where != Arrived::Where::cell || message.payload_bytes != head.payload_bytes ||
        head.payload_bytes == 0 || inbox_.record_end() != message.bytes) {
      return corrupt("a frame whose payload has not come with it");
    }
    return serve_cell(*header);
  }
  if (head.kind == RecordKind::fetch && inbox_.first().queue_pair != 0)
    return corrupt("an offer through a further queue pair");
  if (!reader_.place(*this, *header)) return false;
  if (in_parts) return VerbsSealing::serve_part(*this, body);
  if (head.kind == RecordKind::fetch) return fetch(read_as<RemotePayload>(body));
  return copy_and_deliver(body.data());
}

bool VerbsConnection::deliver() {
  inbox_.end_record();
  ++core_.statistics.frames_received;
  spend(reader_.payload().size(), kTurnBytesOfPacket);
  return reader_.deliver(*this);
}

/// Copies a payload that came in the message to its place.
bool VerbsConnection::copy_and_deliver(const std::byte* from) {
  const std::span<std::byte> place = reader_.rest();
  if (!copy_payload(place, from)) {
    reader_.forget();
    return false;
  }
  reader_.land(place.size());
  return deliver();
}

bool VerbsConnection::fetch(const RemotePayload& from) {
  auto sink = domain_->registrations().acquire(reader_.payload(), Access::local);
  if (!sink) {
    reader_.forget();
    broken(std::move(sink.error()));
    return false;
  }
  fetch_.begin(reader_.payload(), std::move(*sink), from);
  fetch_more();
  return false;  // the next frame must wait for this frame
}

void VerbsConnection::fetch_more() {
  QueuePair& pair = pairs_.front();  // the peer's right to read is bound to it
  while (const auto read = fetch_.next(core_.settings().read_bytes_max)) {
    ibv_send_wr& work = pair.list.add(next_work(WorkKind::read, pair), read->to, fetch_.local_key());
    work.opcode = IBV_WR_RDMA_READ;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma = {.remote_addr = read->from, .rkey = read->key};
  }
  if (!pair.list.empty()) static_cast<void>(post(pair));
}

/// Hands the whole payload to the handler. Returns false if reading must stop.
bool VerbsConnection::fetched() {
  TRIBUTARY_ASSERT(fetch_.all_read(), "a payload from {} is served before it is whole", peer_);
  fetch_.end();
  credit_.fetch();
  core_.statistics.bytes_fetched += reader_.payload().size();
  reader_.land(reader_.payload().size());
  core_.make_dirty(*this);
  return deliver();
}

/// Drops messages after close_after_flush(). The handler does not get them, but this side posts their receives again,
/// because the messages carry the peer's acknowledgements.
void VerbsConnection::discard_arrived() {
  const bool last = inbox_.has_last();
  while (!inbox_.empty()) {
    const Arrived one = inbox_.pop();
    if (one.where == Arrived::Where::ring) pairs_[one.queue_pair].to_receive.push_back(one.index);
    if (one.where == Arrived::Where::cell) landing_.free(one.index);
  }
  if (last) close();  // the peer will fetch no more payloads
}

/// Posts receives again, and only then counts their messages as consumed.
void VerbsConnection::post_receives() {
  for (QueuePair& pair : pairs_) {
    if (!pair.to_receive.empty()) credit_.consume(post_receives(pair));
  }
}

/// Returns the number of receives that were posted: all, unless the connection is broken.
std::uint32_t VerbsConnection::post_receives(QueuePair& pair) {
  TRIBUTARY_ASSERT(pair.to_receive.size() <= credit_.depth(), "{} receives are posted again, of {}",
                   pair.to_receive.size(), credit_.depth());
  std::uint32_t posted = 0;
  std::array<ibv_recv_wr, kPostedAtOnce> works;
  std::array<ibv_sge, kPostedAtOnce> places;
  while (!pair.to_receive.empty()) {
    const std::size_t count = std::min(pair.to_receive.size(), works.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t index = pair.to_receive[pair.to_receive.size() - 1 - i];
      const auto place = receive(pair.index, index);
      places[i] = {.addr = reinterpret_cast<std::uintptr_t>(place.data()),
                   .length = static_cast<std::uint32_t>(place.size()),
                   .lkey = rings_.local_key()};
      works[i] = {.wr_id = WorkId{number_, WorkKind::receive, pair.index, index}.packed(),
                  .next = i + 1 < count ? &works[i + 1] : nullptr,
                  .sg_list = &places[i],
                  .num_sge = 1};
    }
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv(pair.get(), works.data(), &refused); error != 0) {
      broken({Errc::io, "cannot receive from " + peer_ + ": " + std::strerror(error) + "."});
      return posted;
    }
    pair.to_receive.resize(pair.to_receive.size() - count);
    posted += static_cast<std::uint32_t>(count);
  }
  return posted;
}

}  // namespace tributary::transport::verbs
