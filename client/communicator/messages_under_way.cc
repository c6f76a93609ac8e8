#include "client/communicator/messages_under_way.h"

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client {

void MessagesUnderWay::begin(PeerLink& link, std::uint32_t peer, Message message, std::uint64_t number) {
  const std::uint64_t cookie = next_cookie_++;
  const std::uint64_t bytes = message.count * size_of(message.dtype);
  const bool sends = message.sends;
  const Signature signature = signature_of(message);
  const std::byte* from = message.send;
  std::byte* into = message.recv;
  // An empty message is one empty frame.
  const std::uint64_t frames = std::max<std::uint64_t>(1, (bytes + kPieceBytes - 1) / kPieceBytes);
  TRIBUTARY_ASSERT((frames - 1) * kPieceBytes <= bytes && bytes <= frames * kPieceBytes, "{} bytes in {} frames", bytes,
                   frames);
  const bool is_new = active_.emplace(cookie, Active{std::move(message), peer, frames}).second;
  TRIBUTARY_ASSERT(is_new, "cookie {} is in use", cookie);
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

void MessagesUnderWay::frame_done(std::uint64_t cookie) {
  const auto it = active_.find(cookie);
  if (it == active_.end()) return;
  TRIBUTARY_ASSERT(it->second.frames_left > 0, "a message with rank {} has no frame left", it->second.peer);
  if (--it->second.frames_left > 0) return;
  const auto done = std::move(it->second.message.on_done);
  active_.erase(it);
  done({});
}

void MessagesUnderWay::fail_all(const Error& error) {
  for (auto& [cookie, one] : std::exchange(active_, {}))
    one.message.on_done(fail(error.code, describe(one.message, one.peer) + ": " + error.message));
}

std::string MessagesUnderWay::overdue(transport::TimePoint before) const {
  const auto it =
      std::ranges::find_if(active_, [before](const auto& e) { return e.second.message.called_at < before; });
  return it == active_.end() ? std::string() : describe(it->second.message, it->second.peer);
}

}  // namespace tributary::client
