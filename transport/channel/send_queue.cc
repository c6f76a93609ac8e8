#include "transport/channel/send_queue.h"

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

/// Size in bytes. A copy buffer that is larger is freed after its control frame was sent.
constexpr std::size_t kCopyBytesKept = 65536;

iovec vector_of(const std::byte* from, std::size_t bytes) {
  return {const_cast<std::byte*>(from), bytes};  // iovec has no const form; sendmsg only reads
}

}  // namespace

void SendQueue::grow() {
  TRIBUTARY_ASSERT(tail_ - told_ == frames_.size(), "a queue of {} frames grows with {} in it", frames_.size(),
                   tail_ - told_);
  std::vector<Frame> larger(frames_.empty() ? 8 : frames_.size() * 2);
  for (std::uint64_t i = told_; i < tail_; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
  frames_ = std::move(larger);
}

SendQueue::Frame& SendQueue::push(const FrameHeader& header, std::span<const std::byte> payload) {
  TRIBUTARY_ASSERT(payload.size() <= UINT32_MAX, "a payload of {} bytes is queued as one frame", payload.size());
  if (tail_ - told_ == frames_.size()) grow();
  Frame& frame = at(tail_++);
  FrameHeader complete = header;
  complete.payload_bytes = static_cast<std::uint32_t>(payload.size());
  encode(complete, frame.header);
  frame.payload = payload.data();
  frame.payload_bytes = payload.size();
  return frame;
}

void SendQueue::push_borrowed(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  Frame& frame = push(header, payload);
  frame.cookie = cookie;
  frame.borrowed = true;
  ++borrowed_;
}

void SendQueue::push_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  Frame& frame = push(header, payload);
  frame.borrowed = false;
  frame.copy.assign(payload.begin(), payload.end());
  frame.payload = frame.copy.data();
}

SendQueue::Gathered SendQueue::gather(std::span<iovec> out, std::size_t bytes_max) noexcept {
  Gathered gathered;
  const auto add = [&](const std::byte* from, std::size_t bytes) {
    bytes = std::min(bytes, bytes_max - gathered.bytes);
    if (bytes == 0) return;
    out[gathered.vectors++] = vector_of(from, bytes);
    gathered.bytes += bytes;
  };
  std::size_t skip = offset_;
  TRIBUTARY_ASSERT(written_ < tail_ || skip == 0, "{} bytes of a frame are written, and there is none", skip);
  for (std::uint64_t i = written_; i < tail_ && gathered.vectors + 2 <= out.size() && gathered.bytes < bytes_max;
       ++i, skip = 0) {
    const Frame& frame = at(i);
    const std::size_t header_done = std::min(skip, kFrameHeaderBytes);
    const std::size_t payload_done = skip - header_done;
    add(frame.header.data() + header_done, kFrameHeaderBytes - header_done);
    add(frame.payload + payload_done, frame.payload_bytes - payload_done);
  }
  TRIBUTARY_ASSERT(gathered.vectors <= out.size() && gathered.bytes <= bytes_max,
                   "{} bytes in {} parts are gathered, where {} in {} fit", gathered.bytes, gathered.vectors, bytes_max,
                   out.size());
  return gathered;
}

std::size_t SendQueue::consume(std::size_t bytes) noexcept {
  std::size_t completed = 0;
  offset_ += bytes;
  while (written_ < tail_) {
    Frame& frame = at(written_);
    const std::size_t whole = kFrameHeaderBytes + frame.payload_bytes;
    if (offset_ < whole) break;
    offset_ -= whole;
    if (frame.copy.capacity() > kCopyBytesKept) std::vector<std::byte>().swap(frame.copy);
    ++written_;
    ++completed;
  }
  TRIBUTARY_ASSERT(written_ < tail_ || offset_ == 0, "{} bytes more were written than were queued", offset_);
  return completed;
}

std::optional<std::uint64_t> SendQueue::next_sent() noexcept {
  TRIBUTARY_ASSERT(told_ <= written_ && written_ <= tail_, "{} frames are reported, {} written, {} queued", told_,
                   written_, tail_);
  while (told_ < written_) {
    const Frame& frame = at(told_++);
    if (!frame.borrowed) continue;
    TRIBUTARY_ASSERT(borrowed_ > 0, "frame {} is reported as sent, and none is borrowed", told_ - 1);
    --borrowed_;
    return frame.cookie;
  }
  return std::nullopt;
}

void SendQueue::clear() noexcept {
  frames_.clear();
  told_ = written_ = tail_ = 0;
  offset_ = 0;
  borrowed_ = 0;
}

}  // namespace tributary::transport
