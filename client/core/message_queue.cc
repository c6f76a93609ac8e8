#include "client/core/message_queue.h"

#include <algorithm>
#include <cstring>

namespace tributary::client {
namespace {

Signature signature_of(const Message& message) {
  return {.collective = Collective::all_to_all,
          .dtype = message.dtype,
          .op = ReduceOp::sum,
          .root = 0,
          .count = message.count};
}

std::string describe(const Message& message, std::uint32_t peer) {
  return std::string(message.sends ? "send" : "recv") + " of " + std::to_string(message.count) + " " +
         std::string(to_string(message.dtype)) + (message.sends ? " to" : " from") + " rank " + std::to_string(peer);
}

}  // namespace

void MessageQueue::send(std::uint32_t peer, Message message) {
  if (peer == rank_) {
    own_sends_.push_back(std::move(message));
    return match_own();
  }
  begin(peer, std::move(message), sends_[peer]++);
}

void MessageQueue::receive(std::uint32_t peer, Message message) {
  if (peer == rank_) {
    own_receives_.push_back(std::move(message));
    return match_own();
  }
  begin(peer, std::move(message), receives_[peer]++);
}

void MessageQueue::match_own() {
  while (!own_sends_.empty() && !own_receives_.empty()) {
    const Message from = std::move(own_sends_.front()), into = std::move(own_receives_.front());
    own_sends_.pop_front();
    own_receives_.pop_front();
    if (from.count != into.count || from.dtype != into.dtype) {
      const Status status = fail(Errc::mismatch, describe(from, rank_) + " met " + describe(into, rank_));
      from.on_done(status);
      into.on_done(status);
      continue;
    }
    if (from.count > 0) std::memmove(into.recv, from.send, from.count * size_of(from.dtype));
    from.on_done({});
    into.on_done({});
  }
}

void MessageQueue::begin(std::uint32_t peer, Message message, std::uint64_t number) {
  const std::uint64_t cookie = next_cookie_++;
  const std::uint64_t bytes = message.count * size_of(message.dtype);
  const bool sends = message.sends;
  const Signature signature = signature_of(message);
  const std::byte* from = message.send;
  std::byte* into = message.recv;
  // An empty message is one empty frame.
  const std::uint64_t frames = std::max<std::uint64_t>(1, (bytes + kPieceBytes - 1) / kPieceBytes);
  active_.emplace(cookie, Active{std::move(message), peer, frames});
  PeerLink& link = mesh_->link(PeerClass::message, peer);
  for (std::uint64_t frame = 0; frame < frames; ++frame) {
    const std::uint64_t offset = frame * kPieceBytes;
    const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPieceBytes, bytes - offset));
    if (sends) {
      FrameHeader header;
      header.type = FrameType::message;
      header.operation = number;
      header.sequence = frame;
      header.set_signature(signature);
      link.send(header, {from + offset, length}, cookie);
    } else {
      link.post({.type = FrameType::message,
                 .operation = number,
                 .tag = frame,
                 .signature = signature,
                 .bytes = length,
                 .into = into + offset,
                 .cookie = cookie});
    }
  }
}

void MessageQueue::finish_frame(std::uint64_t cookie) {
  const auto it = active_.find(cookie);
  if (it == active_.end() || --it->second.frames_left > 0) return;
  const auto done = std::move(it->second.message.on_done);
  active_.erase(it);
  done({});
}

void MessageQueue::sent(std::uint32_t, std::uint64_t cookie) {
  finish_frame(cookie);
}
void MessageQueue::received(std::uint32_t, const PostedReceive& receive) {
  finish_frame(receive.cookie);
}

void MessageQueue::fail_all(const Error& error) {
  auto active = std::move(active_);
  auto sends = std::move(own_sends_), receives = std::move(own_receives_);
  active_.clear();
  own_sends_.clear();
  own_receives_.clear();
  for (auto& [cookie, one] : active)
    one.message.on_done(fail(error.code, describe(one.message, one.peer) + ": " + error.message));
  for (auto& one : sends) one.on_done(std::unexpected(error));
  for (auto& one : receives) one.on_done(std::unexpected(error));
}

std::string MessageQueue::overdue(transport::TimePoint before) const {
  for (const auto& [cookie, one] : active_) {
    if (one.message.called_at < before) return describe(one.message, one.peer);
  }
  for (const auto* queue : {&own_sends_, &own_receives_}) {
    if (!queue->empty() && queue->front().called_at < before) return describe(queue->front(), rank_);
  }
  return {};
}

}  // namespace tributary::client
