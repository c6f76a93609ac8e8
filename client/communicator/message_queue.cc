#include "client/communicator/message_queue.h"

#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client {

MessageQueue::MessageQueue(std::uint32_t rank, MessageEvents events)
    : rank_(rank), events_(std::move(events)), tagged_(rank, under_way_, events_.disagree) {}

void MessageQueue::use(PeerMesh& mesh) {
  TRIBUTARY_ASSERT(mesh_ == nullptr, "rank {} takes a second mesh for its messages", rank_);
  mesh_ = &mesh;
  tagged_.use(mesh);
  mesh.set_user(PeerClass::message, *this);
  mesh.set_user(PeerClass::tagged, *this);
}

void MessageQueue::send(std::uint32_t peer, Message message) {
  TRIBUTARY_ASSERT(message.sends, "rank {} sends a receive to rank {}", rank_, peer);
  if (message.tag != 0) return tagged_.send(peer, std::move(message));
  if (peer != rank_)
    return under_way_.begin(mesh_->link(PeerClass::message, peer), peer, std::move(message), sends_[peer]++);
  own_sends_.push_back(std::move(message));
  if (!own_receives_.empty()) return match_own();
  early_.add(rank_);
  serve_waiting();
}

void MessageQueue::receive(std::optional<std::uint32_t> source, Message message) {
  TRIBUTARY_ASSERT(!message.sends, "rank {} receives a message that it sends", rank_);
  if (!source) connect_to_all(message.tag == 0 ? PeerClass::message : PeerClass::tagged);
  if (message.tag != 0) return tagged_.receive(source, std::move(message));
  if (source && waiting_.empty() && !serving_) return take(*source, std::move(message));
  waiting_.push_back({source, std::move(message)});
  serve_waiting();
}

/// Connects to all lower ranks, because each of them may be the sender. The higher of two ranks always connects.
void MessageQueue::connect_to_all(PeerClass peer_class) {
  if (std::exchange(connected_[static_cast<std::size_t>(peer_class)], true)) return;
  for (std::uint32_t peer = 0; peer < rank_; ++peer) static_cast<void>(mesh_->link(peer_class, peer));
}

/// Posts the receive. The caller has checked that no earlier receive waits for this peer's message.
void MessageQueue::take(std::uint32_t peer, Message message) {
  if (peer == rank_) {
    own_receives_.push_back(std::move(message));
    return match_own();
  }
  early_.erase(peer);
  if (message.on_source) message.on_source(peer);
  under_way_.begin(mesh_->link(PeerClass::message, peer), peer, std::move(message), receives_[peer]++);
}

/// Serves the waiting receives as long as the first receive in the queue names its source, or a message for it has
/// come. A callback may call receive() meanwhile: the new receive joins the end of the queue.
void MessageQueue::serve_waiting() {
  if (std::exchange(serving_, true)) return;
  while (!waiting_.empty()) {
    const auto source = waiting_.front().source ? waiting_.front().source : early_.first();
    if (!source) break;
    Message message = std::move(waiting_.front().message);
    waiting_.pop_front();
    take(*source, std::move(message));
  }
  serving_ = false;
}

void MessageQueue::match_own() {
  while (!own_sends_.empty() && !own_receives_.empty()) {
    const Message from = std::move(own_sends_.front()), into = std::move(own_receives_.front());
    own_sends_.pop_front();
    own_receives_.pop_front();
    TRIBUTARY_ASSERT(from.sends && !into.sends && from.tag == 0 && into.tag == 0, "tag {} meets tag {} without tags",
                     from.tag, into.tag);
    early_.erase(rank_);
    if (!own_sends_.empty()) early_.add(rank_);  // after the ranks whose messages came earlier
    finish_own(from, into, rank_);
  }
}

void MessageQueue::peer_received(std::uint32_t, PeerClass, const PostedReceive& receive, std::span<std::byte>) {
  events_.arrived();
  under_way_.frame_done(receive.cookie);
  events_.ended();
}

void MessageQueue::peer_sent(std::uint32_t, PeerClass, std::uint64_t cookie) {
  under_way_.frame_done(cookie);
  events_.ended();
}

void MessageQueue::peer_waits(std::uint32_t peer, PeerClass) {
  early_.add(peer);
  serve_waiting();
}

Status MessageQueue::peer_noted(std::uint32_t peer, const FrameHeader& note) {
  if (note.type == FrameType::want) events_.arrived();  // an offer is no progress: perhaps no receive takes it
  return tagged_.noted(peer, note);
}

void MessageQueue::peer_failed(std::uint32_t peer, PeerClass, const std::string& reason) {
  events_.lost(peer, reason);
}

void MessageQueue::peer_mismatch(std::uint32_t peer, PeerClass, const PostedReceive& expected,
                                 const FrameHeader& arrived) {
  events_.disagree(disagreement(peer, arrived.signature(), rank_, expected.signature, 0));
}

void MessageQueue::fail_all(const Error& error) {
  auto sends = std::exchange(own_sends_, {}), receives = std::exchange(own_receives_, {});
  auto waiting = std::exchange(waiting_, {});
  under_way_.fail_all(error);
  for (auto& one : sends) one.on_done(std::unexpected(error));
  for (auto& one : receives) one.on_done(std::unexpected(error));
  for (auto& [source, message] : waiting)
    message.on_done(fail(error.code, describe(message, source) + ": " + error.message));
  tagged_.fail_all(error);
}

std::string MessageQueue::overdue(transport::TimePoint before) const {
  if (std::string message = under_way_.overdue(before); !message.empty()) return message;
  for (const auto* queue : {&own_sends_, &own_receives_}) {
    if (!queue->empty() && queue->front().called_at < before) return describe(queue->front(), rank_);
  }
  if (!waiting_.empty() && waiting_.front().message.called_at < before)
    return describe(waiting_.front().message, waiting_.front().source);
  return tagged_.overdue(before);
}

}  // namespace tributary::client
