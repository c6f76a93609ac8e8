#include "transport/packet/send_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

/// Size in bytes. A copy buffer that is larger is freed after its control frame was sent.
constexpr std::size_t kCopyBytesKept = 65536;

}  // namespace

void SendStream::grow() {
  std::vector<Frame> larger(frames_.empty() ? 8 : frames_.size() * 2);
  for (std::uint64_t i = told_; i < tail_; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
  frames_ = std::move(larger);
}

SendStream::Frame& SendStream::push(const FrameHeader& header, std::span<const std::byte> payload) {
  TRIBUTARY_ASSERT(payload.size() <= UINT32_MAX, "a payload of {} bytes is queued as one frame", payload.size());
  if (tail_ - told_ == frames_.size()) grow();
  Frame& frame = at(tail_++);
  encode(header, frame.header);
  const auto payload_bytes = static_cast<std::uint32_t>(payload.size());
  std::memcpy(frame.header.data() + offsetof(FrameHeader, payload_bytes), &payload_bytes, sizeof payload_bytes);
  frame.payload = payload.data();
  frame.payload_bytes = payload.size();
  frame.begin = end_;
  end_ = frame.end();
  return frame;
}

void SendStream::push_borrowed(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  Frame& frame = push(header, payload);
  frame.cookie = cookie;
  frame.borrowed = true;
  ++borrowed_;
}

void SendStream::push_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  Frame& frame = push(header, payload);
  frame.borrowed = false;
  frame.copy.assign(payload.begin(), payload.end());
  frame.payload = frame.copy.data();
}

bool SendStream::holds(std::uint64_t number, std::uint64_t offset) const noexcept {
  return number >= done_ && number < tail_ && at(number).begin <= offset && offset < at(number).end();
}

/// The frame in which `offset` lies; tail_ for the end of the stream. It is mostly the frame after the one that the
/// last call has found.
std::uint64_t SendStream::frame_of(std::uint64_t offset) const noexcept {
  if (holds(last_part_ + 1, offset)) return last_part_ + 1;
  if (holds(last_part_, offset)) return last_part_;
  std::uint64_t low = done_;
  std::uint64_t high = tail_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (at(middle).end() <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

SendStream::Part SendStream::part(std::uint64_t offset, std::size_t bytes_max,
                                  std::span<std::byte> place) const noexcept {
  Part part;
  TRIBUTARY_ASSERT(offset >= acknowledged_ && offset <= end_, "byte {} is read, of a stream from {} to {}", offset,
                   acknowledged_, end_);
  for (std::uint64_t number = frame_of(offset); number < tail_ && part.copied < bytes_max; ++number) {
    const Frame& frame = at(number);
    last_part_ = number;
    auto within = static_cast<std::size_t>(offset + part.copied - frame.begin);
    if (within < kFrameHeaderBytes) {
      const std::size_t bytes =
          std::min({kFrameHeaderBytes - within, bytes_max - part.copied, place.size() - part.copied});
      std::memcpy(place.data() + part.copied, frame.header.data() + within, bytes);
      part.copied += bytes;
      within += bytes;
      if (within < kFrameHeaderBytes) break;
    }
    const std::byte* from = frame.payload + (within - kFrameHeaderBytes);
    const std::size_t bytes = std::min(frame.payload_bytes - (within - kFrameHeaderBytes), bytes_max - part.copied);
    if (bytes == 0) continue;
    if (bytes > kSmallBytes || bytes > place.size() - part.copied) {
      part.rest = {from, bytes};
      break;
    }
    std::memcpy(place.data() + part.copied, from, bytes);
    part.copied += bytes;
  }
  return part;
}

std::size_t SendStream::acknowledge(std::uint64_t to) noexcept {
  acknowledged_ = std::max(acknowledged_, std::min(to, end_));
  std::size_t completed = 0;
  while (done_ < tail_ && at(done_).end() <= acknowledged_) {
    Frame& frame = at(done_++);
    if (frame.copy.capacity() > kCopyBytesKept) std::vector<std::byte>().swap(frame.copy);
    ++completed;
  }
  return completed;
}

std::optional<std::uint64_t> SendStream::next_sent() noexcept {
  TRIBUTARY_ASSERT(told_ <= done_ && done_ <= tail_, "{} frames are reported, {} acknowledged, {} queued", told_, done_,
                   tail_);
  while (told_ < done_) {
    const Frame& frame = at(told_++);
    if (!frame.borrowed) continue;
    TRIBUTARY_ASSERT(borrowed_ > 0, "frame {} is reported as sent, and none is borrowed", told_ - 1);
    --borrowed_;
    return frame.cookie;
  }
  return std::nullopt;
}

std::optional<FrameHeader> SendStream::first() const noexcept {
  if (done_ == tail_) return std::nullopt;
  FrameHeader fields;
  std::memcpy(static_cast<void*>(&fields), at(done_).header.data(), sizeof fields);
  return fields;
}

bool SendStream::needs_borrowed() const noexcept {
  for (std::uint64_t i = done_; i < tail_; ++i) {
    if (at(i).borrowed) return true;
  }
  return false;
}

void SendStream::clear() noexcept {
  frames_.clear();
  told_ = done_ = tail_ = 0;
  acknowledged_ = end_;
  borrowed_ = 0;
}

}  // namespace tributary::transport::packet
