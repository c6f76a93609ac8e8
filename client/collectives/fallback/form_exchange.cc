#include "client/collectives/fallback/form_exchange.h"

#include <algorithm>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

void FormExchange::start(const Operation& operation, const Shape& shape) {
  operation_ = &operation;
  shape_ = shape;
  own_ = nullptr;
  made_count_ = 0;
  const std::uint64_t most = elements_max(operation.signature.dtype);
  pieces_ = (shape.part + most - 1) / most;
  taken_.clear();
  index_.assign(shape.ranks * pieces_, {});
}

// In a short all_reduce every rank gets the same form, so it is made once.
std::span<const std::byte> FormExchange::form(const std::byte* from, std::uint64_t count) {
  const auto end = made_.begin() + static_cast<std::ptrdiff_t>(made_count_);
  const auto same =
      std::find_if(made_.begin(), end, [&](const Made& it) { return it.from == from && it.count == count; });
  if (same != end) return {same->memory.get(), same->bytes};
  if (made_count_ == made_.size())
    made_.push_back({.memory = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes)});
  Made& made = made_[made_count_++];
  made.from = from;
  made.count = count;
  made.bytes = forms_.make(*operation_, from, count, {made.memory.get(), kPieceBytes});
  return {made.memory.get(), made.bytes};
}

void FormExchange::take(std::uint64_t at, std::uint64_t count, std::span<const std::byte> form) {
  const std::uint64_t most = elements_max(operation_->signature.dtype);
  const auto rank = static_cast<std::uint32_t>(at / shape_.part);
  const std::uint64_t element = at % shape_.part;
  TRIBUTARY_ASSERT(rank < shape_.ranks && rank != shape_.rank && element % most == 0 && element + count <= shape_.part,
                   "a form of elements {} to {} of rank {}, in parts of {}", element, element + count, rank,
                   shape_.part);
  Taken& it = taken(rank, element / most);
  TRIBUTARY_ASSERT(it.bytes == 0, "the form of element {} of rank {} comes twice", element, rank);
  it = {.at = taken_.size(), .bytes = form.size()};
  taken_.insert(taken_.end(), form.begin(), form.end());
}

void FormExchange::reduce(std::byte* into) {
  const Signature& s = operation_->signature;
  const std::uint64_t most = elements_max(s.dtype);
  const std::size_t element = size_of(s.dtype);
  for (std::uint64_t piece = 0; piece < pieces_; ++piece) {
    const std::uint64_t begin = piece * most, count = std::min(most, shape_.part - begin);
    inputs_.clear();
    add_rank_inputs(*operation_, own_ + begin * element, count, inputs_);
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      if (rank == shape_.rank) continue;
      const Taken& it = taken(rank, piece);
      TRIBUTARY_ASSERT(it.bytes > 0, "an exact sum lacks the form of rank {} of {}", rank, shape_.ranks);
      inputs_.push_back({.bytes = std::span(taken_).subspan(it.at, it.bytes), .is_form = true});
    }
    std::uint64_t ranks = 0;
    for (const kernels::PartialInput& input : inputs_) ranks += kernels::ranks_of(s.dtype, input);
    const auto divisor = s.op == kExactAverageOfHosts ? std::min<std::uint64_t>(ranks, kRanksMax) : 1;
    sums_.round(s.dtype, inputs_, into + begin * element, count, static_cast<std::uint32_t>(divisor));
  }
}

}  // namespace tributary::client
