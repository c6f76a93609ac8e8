// Receiving: messages in their order, frames in theirs; large payloads are fetched straight to their place.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/record.h"
#include "verbs/verbs_connection.h"

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
    case IBV_WC_REM_ACCESS_ERR:  // of a READ: it took back what it had offered, as one that is killed does
    case IBV_WC_REM_OP_ERR:      // likewise, in the middle
      return Errc::peer_gone;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_LOC_LEN_ERR:
      return Errc::corrupt;
    default:
      return Errc::io;
  }
}

}  // namespace

/// Marks what has happened. No callback: that is turn()'s.
void VerbsConnection::completed(const ibv_wc& completion) {
  heard_ = true;
  const WorkId work = WorkId::of(completion.wr_id);
  if (work.queue_pair >= pairs_.size()) return;  // of one that the peer did not want, or that is gone
  if (work.kind == WorkKind::read) --reading_;
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
      last_sent_ = true;
      return core_.make_due(*this);
    case WorkKind::read:
      if (asked_ < reader_.payload().size()) {
        fetch_more();
      } else if (reading_ == 0) {
        core_.make_due(*this);
      }
      return;
    case WorkKind::probe:
      probing_ = false;
      return;
    default:
      core_.make_due(*this);  // what was written is done
      return core_.make_dirty(*this);
  }
}

/// What was posted before it is done too.
void VerbsConnection::retire(QueuePair& pair, std::uint32_t index) {
  pair.retired += (index - pair.retired) & kIndexMask;
  const std::uint32_t revoked = pair.index == 0 ? windows_.done_to(pair.retired) : 0;
  for (std::uint32_t i = 0; i < revoked; ++i) queue_.fetched();
  if (places_.done_to(pair.index, pair.retired) || revoked > 0) core_.make_due(*this);
}

/// A connection that has failed gives the peer nothing to read any more.
bool VerbsConnection::awaits_revocation() const noexcept {
  return serving() && !reader_.in_frame() && !failed_ && !arrived_.empty() &&
         !windows_.is_revoked(arrived_.front().revoking);
}

void VerbsConnection::completion_failed(const ibv_wc& completion) {
  failed_ = true;  // whichever request it was: none that follows it has done anything
  const std::string what =
      completion.status == IBV_WC_WR_FLUSH_ERR ? "its queue pair was closed" : ibv_wc_status_str(completion.status);
  broken({code_of(completion.status), "the connection to " + peer_ + " is broken: " + what + "."});
}

void VerbsConnection::take(const Came& what) {
  ++came_;
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
  last_arrived_ = (prefix.flags & kLastMessage) != 0;
  arrived({.where = Arrived::Where::ring,
           .queue_pair = what.queue_pair,
           .index = what.index,
           .bytes = prefix.bytes,
           .revoking = windows_.revoking()});
}

/// What a message of so many bytes, or a write instead of one, tells of the other direction. Taken at once, so that a
/// handler that says NotYet does not hold up our own sending. False: it cannot be.
bool VerbsConnection::take_news(const MessagePrefix& prefix, std::size_t bytes) {
  const std::uint32_t consumed = prefix.consumed - peer_consumed_;
  const std::uint32_t fetched = prefix.fetched - peer_fetched_;
  if (prefix.bytes < sizeof prefix || prefix.bytes > bytes) return corrupt("a message of a wrong length");
  if (consumed > sent_ - peer_consumed_ || fetched > fetch_offered_ - peer_fetched_ ||
      !landing_there_.freed_to(prefix.freed)) {
    return corrupt("an acknowledgement of what was not sent");
  }
  peer_consumed_ = prefix.consumed;
  peer_fetched_ = prefix.fetched;
  end_offers(fetched);
  if (last_arrived_) return corrupt("a message after the last");
  if (consumed > 0) core_.make_dirty(*this);
  return true;
}

void VerbsConnection::arrived(const Arrived& what) {
  arrived_.push_back(what);
  spoken_early_ = state_ == State::accepting;
  core_.make_due(*this);
}

void VerbsConnection::serve() {
  if (!serving()) return discard_arrived();
  reader_.begin_turn();
  if (reader_.in_frame()) {
    if (reading_ > 0 || asked_ < reader_.payload().size() || failed_) return;
    if (!fetched()) return;
  }
  while (serving() && !reader_.stalled() && !reader_.in_frame() && !arrived_.empty() && !awaits_revocation() &&
         serve_record()) {
  }
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

/// One frame, one word about places, or the end of a message. False: reading must stop.
bool VerbsConnection::serve_record() {
  const Arrived& message = arrived_.front();
  if (message.where == Arrived::Where::place) return serve_place();
  const auto bytes = message_of(message);
  if (read_to_ == 0) read_to_ = sizeof(MessagePrefix);
  if (read_to_ >= bytes.size()) return message_over();
  const auto record = read_record(bytes, read_to_);
  if (!record) return corrupt(std::string(record.error()));
  record_end_ = record->end;
  if (record->head.kind == RecordKind::place || record->head.kind == RecordKind::room)
    return learn_place(record->head, read_as<RemotePayload>(record->body));
  return serve_frame(record->head, record->body);
}

bool VerbsConnection::message_over() {
  const Arrived message = arrived_.front();
  if (message.payload_bytes != 0) return corrupt("a payload without its frame");
  if (message.where == Arrived::Where::ring) pairs_[message.queue_pair].to_receive.push_back(message.index);
  const bool last = last_arrived_ && arrived_.size() == 1;
  arrived_.pop_front();
  read_to_ = 0;
  if (!last) return true;
  tell_sent();  // what it has taken is told before its end
  if (state_ != State::closed) tell_closed({Errc::peer_gone, peer_ + " closed the connection."});
  return false;
}

bool VerbsConnection::serve_frame(const RecordHead& head, std::span<const std::byte> body) {
  const auto header = decode(head.header);
  if (!header) {
    ++core_.statistics.rejects[static_cast<std::size_t>(header.error())];
    return corrupt("a corrupt frame: " + std::string(to_string(header.error())));
  }
  if (header->payload_bytes != head.payload_bytes)
    return corrupt("a frame whose payload has another length than it says");
  if (claimed_by_peer_ && claimed_group_ != 0 && header->group != claimed_group_) {
    return corrupt("a first frame of another group than it claimed");
  }
  claimed_by_peer_ = false;
  if (awaits_withdrawal(*header)) return false;
  if (head.kind == RecordKind::landed) {
    const Arrived& message = arrived_.front();
    if (message.where != Arrived::Where::cell || message.payload_bytes != head.payload_bytes ||
        head.payload_bytes == 0 || record_end_ != message.bytes) {
      return corrupt("a frame whose payload has not come with it");
    }
    return serve_cell(*header);
  }
  if (head.kind == RecordKind::fetch && arrived_.front().queue_pair != 0)
    return corrupt("an offer through a further queue pair");
  if (!reader_.place(*this, *header)) return false;
  if (head.kind == RecordKind::fetch) return fetch(read_as<RemotePayload>(body));
  return copy_and_deliver(body.data());
}

bool VerbsConnection::deliver() {
  read_to_ = record_end_;
  ++core_.statistics.frames_received;
  return reader_.deliver(*this);
}

/// A payload that is here already goes to its place.
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
  sink_ = std::move(*sink);
  remote_ = from;
  asked_ = 0;
  fetch_more();
  return false;  // the next frame after this one
}

void VerbsConnection::fetch_more() {
  QueuePair& pair = pairs_.front();  // whose other end has the right to
  const std::span<std::byte> place = reader_.payload();
  while (asked_ < place.size() && reading_ < reads_max_) {
    const std::size_t piece = std::min<std::size_t>(core_.settings().read_bytes_max, place.size() - asked_);
    ibv_send_wr& work =
        pair.list.add(next_work(WorkKind::read, pair), place.subspan(asked_, piece), sink_->local_key());
    work.opcode = IBV_WR_RDMA_READ;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma = {.remote_addr = remote_.address + asked_, .rkey = remote_.key};
    ++reading_;
    asked_ += piece;
  }
  if (!pair.list.empty()) static_cast<void>(post(pair));
}

/// The payload is whole. False: reading must stop.
bool VerbsConnection::fetched() {
  sink_.reset();
  ++fetched_count_;
  core_.statistics.bytes_fetched += reader_.payload().size();
  reader_.land(reader_.payload().size());
  core_.make_dirty(*this);
  return deliver();
}

/// After our own close: what still comes is read by nobody, but its receives are posted again, because the peer's
/// acknowledgements come with it.
void VerbsConnection::discard_arrived() {
  for (const Arrived& one : arrived_) {
    if (one.where == Arrived::Where::ring) pairs_[one.queue_pair].to_receive.push_back(one.index);
    if (one.where == Arrived::Where::cell) landing_.free(one.index);
  }
  arrived_.clear();
  read_to_ = 0;
  if (last_arrived_) close();  // and nobody will fetch what we still had
}

/// Posted first, and counted as consumed after that.
void VerbsConnection::post_receives() {
  for (QueuePair& pair : pairs_) {
    if (!pair.to_receive.empty()) post_receives(pair);
  }
}

void VerbsConnection::post_receives(QueuePair& pair) {
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
      return broken({Errc::io, "cannot receive from " + peer_ + ": " + std::strerror(error) + "."});
    }
    pair.to_receive.resize(pair.to_receive.size() - count);
    consumed_ += static_cast<std::uint32_t>(count);
  }
}

}  // namespace tributary::transport::verbs
