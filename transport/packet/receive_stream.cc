#include "transport/packet/receive_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

std::unique_ptr<Chunk> ChunkPool::take() {
  if (!free_.empty()) {
    auto chunk = std::move(free_.back());
    free_.pop_back();
    return chunk;
  }
  if (made_ >= chunks_max_) return nullptr;
  free_.reserve(++made_);  // makes room, so that a later give-back allocates no memory
  return std::make_unique_for_overwrite<Chunk>();
}

void ChunkPool::give_back(std::unique_ptr<Chunk> chunk) {
  if (!chunk) return;
  TRIBUTARY_ASSERT(free_.size() < made_, "a chunk is given back, and all {} are free", made_);
  free_.push_back(std::move(chunk));
}

ReceiveStream::Outcome ReceiveStream::receive(std::uint64_t offset, std::span<const std::byte> bytes,
                                              std::size_t window, StreamReader& reader) {
  const std::uint64_t end = offset + bytes.size();
  if (end <= received_) return Outcome::in_order;
  if (offset > received_) {
    if (!store(offset, bytes, window) || !add_range(offset, end)) return Outcome::no_room;
    return Outcome::early;
  }
  std::span<const std::byte> fresh = bytes.subspan(static_cast<std::size_t>(received_ - offset));
  if (consumed_ == received_ && !reading_) {
    reading_ = true;
    const std::size_t taken = reader.take(fresh);
    reading_ = false;
    TRIBUTARY_ASSERT(taken <= fresh.size(), "a reader has taken {} of {} bytes", taken, fresh.size());
    if (over_) return Outcome::in_order;
    received_ += taken;
    consumed_to(received_);
    fresh = fresh.subspan(taken);
  }
  if (!fresh.empty() && !store(received_, fresh, window)) return Outcome::no_room;
  received_ = end;
  join_ranges();
  if (fresh.empty()) read_on(reader);
  return Outcome::in_order;
}

void ReceiveStream::read_on(StreamReader& reader) {
  if (reading_) return;
  reading_ = true;
  while (consumed_ < received_ && !chunks_.empty()) {
    const auto& chunk = chunk_of(consumed_);
    const std::size_t within = consumed_ % kChunkBytes;
    const std::size_t bytes = std::min<std::uint64_t>(received_ - consumed_, kChunkBytes - within);
    const std::size_t taken = reader.take(std::span<const std::byte>(*chunk).subspan(within, bytes));
    consumed_to(consumed_ + taken);
    if (taken < bytes) break;
  }
  reading_ = false;
}

/// Gives back chunks that were completely consumed since `before`. A chunk that holds later bytes stays.
void ReceiveStream::give_back_chunks(std::uint64_t before) noexcept {
  for (std::uint64_t index = before / kChunkBytes; index < consumed_ / kChunkBytes; ++index) {
    auto& chunk = chunks_[index % chunks_.size()];
    if (chunk) pool_.give_back(std::move(chunk));
  }
  const bool all = consumed_ == received_ && ranges_.empty();
  if (auto& chunk = chunk_of(consumed_); all && chunk) pool_.give_back(std::move(chunk));
}

/// Makes the ring large enough for a window, which grows when this connection's share of the memory grows.
void ReceiveStream::make_room(std::size_t window) {
  // The window may begin and end in the middle of chunks.
  const std::size_t wanted = window / kChunkBytes + 2;
  if (wanted <= chunks_.size()) return;
  std::vector<std::unique_ptr<Chunk>> larger(wanted);
  const std::uint64_t first = consumed_ / kChunkBytes;
  for (std::uint64_t index = first; index < first + chunks_.size(); ++index) {
    larger[index % wanted] = std::move(chunks_[index % chunks_.size()]);
  }
  chunks_ = std::move(larger);
}

bool ReceiveStream::store(std::uint64_t offset, std::span<const std::byte> bytes, std::size_t window) {
  make_room(window);
  if (offset + bytes.size() > consumed_ + (chunks_.size() - 1) * kChunkBytes) return false;
  while (!bytes.empty()) {
    auto& chunk = chunk_of(offset);
    if (!chunk) chunk = pool_.take();
    if (!chunk) return false;
    const std::size_t within = offset % kChunkBytes;
    const std::size_t some = std::min(bytes.size(), kChunkBytes - within);
    std::memcpy(chunk->data() + within, bytes.data(), some);
    bytes = bytes.subspan(some);
    offset += some;
  }
  return true;
}

bool ReceiveStream::add_range(std::uint64_t begin, std::uint64_t end) {
  TRIBUTARY_ASSERT(begin > received_ && begin < end, "bytes {} to {} came early, and {} are received", begin, end,
                   received_);
  const auto first = std::ranges::lower_bound(ranges_, begin, {}, &Range::end);  // the first range that touches it or
                                                                                 // lies behind it
  auto last = first;
  while (last != ranges_.end() && last->begin <= end) {
    begin = std::min(begin, last->begin);
    end = std::max(end, last->end);
    ++last;
  }
  if (first != last) {
    *first = {begin, end};
    ranges_.erase(first + 1, last);
    return true;
  }
  if (ranges_.size() >= kRangesMax) return false;
  ranges_.insert(first, {begin, end});
  return true;
}

void ReceiveStream::join_ranges() noexcept {
  auto last = ranges_.begin();
  while (last != ranges_.end() && last->begin <= received_) {
    received_ = std::max(received_, last->end);
    ++last;
  }
  ranges_.erase(ranges_.begin(), last);
}

bool ReceiveStream::has(std::uint64_t begin, std::uint64_t end) const noexcept {
  if (end <= received_) return true;
  const auto range = std::ranges::lower_bound(ranges_, end, {}, &Range::end);
  return range != ranges_.end() && range->begin <= std::max(begin, received_);
}

void ReceiveStream::clear() noexcept {
  over_ = true;
  for (auto& chunk : chunks_) pool_.give_back(std::move(chunk));
  chunks_.clear();
  ranges_.clear();
}

}  // namespace tributary::transport::packet
