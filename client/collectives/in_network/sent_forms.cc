#include "client/collectives/in_network/sent_forms.h"

#include "tributary/protocol/assert.h"

namespace tributary::client {

std::span<const std::byte> SentForms::make(std::uint64_t sequence, const Operation& operation, const Segment& segment) {
  const std::size_t index = sequence % places_.size();
  Place& place = places_[index];
  if (place.sequence == sequence) return of(sequence);
  TRIBUTARY_ASSERT(form_bytes_max(operation.signature.dtype, segment.count) <= lane_.segment_bytes,
                   "a form of {} elements in a segment of {} bytes", segment.count, lane_.segment_bytes);
  if (!memory_) {
    memory_.emplace(places_.size() * lane_.segment_bytes);
    if (transport_ != nullptr) kept_ = transport_->keep_registered(memory_->bytes());
  }
  const auto out = memory_->bytes().subspan(index * lane_.segment_bytes, lane_.segment_bytes);
  place = {.sequence = sequence, .bytes = forms_.make(operation, operation.input_of(segment), segment.count, out)};
  return of(sequence);
}

std::span<const std::byte> SentForms::of(std::uint64_t sequence) const noexcept {
  const std::size_t index = sequence % places_.size();
  TRIBUTARY_ASSERT(places_[index].sequence == sequence, "the form of sequence {} is gone, {} is in its place", sequence,
                   places_[index].sequence);
  return std::span<const std::byte>(memory_->bytes()).subspan(index * lane_.segment_bytes, places_[index].bytes);
}

}  // namespace tributary::client
