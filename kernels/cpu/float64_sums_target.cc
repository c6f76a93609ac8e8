// The kernels of Float64SumKernels (partial_table.h) for one target; compiled once per target, see target-inl.h.
#include "kernels/cpu/target-inl.h"
//
#include <algorithm>

#include "kernels/cpu/partial_table.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Sums = hn::ScalableTag<double>;
using Numbers = hn::ScalableTag<std::int64_t>;
using Floats = hn::Rebind<float, Sums>;
using Bytes = hn::Repartition<std::uint8_t, Sums>;
using Words = hn::Repartition<std::int32_t, Sums>;

constexpr std::size_t kBlockBytes = 16;  // one instruction moves bytes only within such a part of a vector
constexpr std::size_t kSumBytesMax = HWY_MAX_BYTES, kSumsMax = HWY_MAX_BYTES / sizeof(double);

/// Added to a whole number n of less than 2^51, it makes a float64 whose lower 51 bits are those of n.
constexpr double kRaise = 0x1.8p52;
constexpr std::int64_t kRaiseBits = 0x4338000000000000;
constexpr std::int64_t kRaisedUnsigned = 0x4330000000000000;  // of 2^52; with the bits of n < 2^52 it is 2^52 + n

// ---- The bytes of as many numbers as a vector has sums. Two numbers belong to each block; the bytes of a block in
// memory may begin within a word, so they move by words first, and then by bytes.

struct Moves {
  alignas(64) std::int32_t words[kSumBytesMax / 4], more_words[kSumBytesMax / 4];
  alignas(64) std::uint8_t bytes[kSumBytesMax];
};
constexpr std::uint8_t kNoByte = 0x80;

/// Returns how the bytes of numbers become the lower bytes of the vector's elements; their other bytes become 0.
Moves moves_apart(unsigned width) noexcept {
  Moves moves{};
  const std::size_t all = hn::Lanes(Bytes());
  for (std::size_t block = 0; block < all / kBlockBytes; ++block) {
    const std::size_t first = 2 * width * block;
    for (std::size_t i = 0; i < 4; ++i)
      moves.words[4 * block + i] = static_cast<std::int32_t>(std::min(first / 4 + i, all / 4 - 1));
    for (std::size_t i = 0; i < kBlockBytes; ++i) {
      const std::size_t number = i / 8, byte = i % 8;
      moves.bytes[kBlockBytes * block + i] =
          byte < width ? static_cast<std::uint8_t>(first % 4 + number * width + byte) : kNoByte;
    }
  }
  return moves;
}

/// Returns how the lower bytes of the vector's elements come together: each block moves its bytes to where they lie
/// within words, with zeros around. A word then has bytes of one block, in `words`, or of two.
Moves moves_together(unsigned width) noexcept {
  Moves moves{};
  const std::size_t all = hn::Lanes(Bytes());
  const std::size_t blocks = all / kBlockBytes;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t first = 2 * width * block % 4;
    for (std::size_t i = 0; i < kBlockBytes; ++i) {
      const std::size_t at = i - first;  // wraps before the first byte, so it is no byte of a number
      moves.bytes[kBlockBytes * block + i] =
          at < 2 * width ? static_cast<std::uint8_t>(at / width * 8 + at % width) : kNoByte;
    }
  }
  constexpr std::size_t kZero = 3;  // a word of the first block, whose two numbers have at most 12 bytes
  const auto source = [&](std::size_t word, std::size_t block) {
    const std::size_t first = 2 * width * block / 4, last = (2 * width * (block + 1) - 1) / 4;
    const bool has = block < blocks && first <= word && word <= last;
    return static_cast<std::int32_t>(has ? 4 * block + word - first : kZero);
  };
  for (std::size_t word = 0; word < all / 4; ++word) {
    const std::size_t block = 4 * word / (2 * width);
    const std::size_t next = (4 * word + 3) / (2 * width);
    moves.words[word] = source(word, block);
    moves.more_words[word] = next == block ? static_cast<std::int32_t>(kZero) : source(word, next);
  }
  return moves;
}

/// The moves of numbers of each width. They are made once: to make them takes as long as to move a whole block.
struct MovesOfWidths {
  MovesOfWidths() noexcept {
    for (unsigned width = 1; width <= kFloat64SumWidthMax; ++width) {
      spread[width - 1] = moves_apart(width);
      gather[width - 1] = moves_together(width);
    }
  }
  Moves spread[kFloat64SumWidthMax], gather[kFloat64SumWidthMax];
};
const MovesOfWidths& all_moves() noexcept {
  static const MovesOfWidths moves;
  return moves;
}

void add_floats(const std::byte* values, std::size_t count, double* sums) noexcept {
  const Sums tag;
  const hn::Repartition<std::uint8_t, Floats> bytes;
  const auto* const from = reinterpret_cast<const std::uint8_t*>(values);
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::BitCast(Floats(), hn::LoadU(bytes, from + i * sizeof(float)));
    hn::StoreU(hn::Add(hn::LoadU(tag, sums + i), hn::PromoteTo(tag, value)), tag, sums + i);
  }
  for (; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, values + i * sizeof(float), sizeof(value));
    sums[i] += static_cast<double>(value);
  }
}

void add_numbers(const std::byte* numbers, std::size_t count, unsigned width, double factor, double* sums) noexcept {
  const Sums tag;
  const Numbers wide;
  const Bytes bytes;
  const Words words;
  const Moves& moves = all_moves().spread[width - 1];
  const auto word_moves = hn::SetTableIndices(words, moves.words);
  const auto byte_moves = hn::Load(bytes, moves.bytes);
  // A number n of two's complement, with its sign's bit turned, is n + 2^(bits - 1).
  const std::int64_t half = std::int64_t{1} << (8 * width - 1);
  const auto raise = hn::Set(wide, kRaisedUnsigned | half);
  const auto raised_by = hn::Set(tag, 0x1p52 + static_cast<double>(half));
  const auto by = hn::Set(tag, factor);
  const std::size_t lanes = hn::Lanes(tag);
  const auto add = [&](const std::uint8_t* from, double* to) HWY_ATTR {
    const auto spread_words = hn::TableLookupLanes(hn::BitCast(words, hn::LoadU(bytes, from)), word_moves);
    const auto unsigned_number = hn::TableLookupBytesOr0(hn::BitCast(bytes, spread_words), byte_moves);
    const auto raised = hn::BitCast(tag, hn::Xor(hn::BitCast(wide, unsigned_number), raise));
    const auto number = hn::Mul(hn::Sub(raised, raised_by), by);
    hn::StoreU(hn::Add(hn::LoadU(tag, to), number), tag, to);
  };
  const auto* const from = reinterpret_cast<const std::uint8_t*>(numbers);
  const std::size_t whole = hn::Lanes(bytes);  // a load reads so many bytes, of which lanes * width count
  std::size_t i = 0;
  for (; i + lanes <= count && i * width + whole <= count * width; i += lanes) add(from + i * width, sums + i);
  for (; i < count; i += lanes) {
    const std::size_t rest = std::min(lanes, count - i);
    alignas(64) std::uint8_t padded[kSumBytesMax] = {};
    alignas(64) double to[kSumsMax] = {};
    std::memcpy(padded, from + i * width, rest * width);
    std::memcpy(to, sums + i, rest * sizeof(double));
    add(padded, to);
    std::memcpy(sums + i, to, rest * sizeof(double));
  }
}

Float64SumKernels::Seen see(const double* sums, std::size_t count, double factor) noexcept {
  const Sums tag;
  const Numbers wide;
  const auto by = hn::Set(tag, factor), raise = hn::Set(tag, kRaise);
  const auto raise_bits = hn::Set(wide, kRaiseBits);
  auto most = hn::Zero(tag), least = hn::Zero(tag);
  auto any = hn::Zero(wide);
  const auto look = [&](const double* at) HWY_ATTR {
    const auto number = hn::Mul(hn::LoadU(tag, at), by);
    most = hn::Max(most, number);
    least = hn::Min(least, number);
    any = hn::Or(any, hn::Xor(hn::BitCast(wide, hn::Add(number, raise)), raise_bits));
  };
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) look(sums + i);
  alignas(64) double rest[kSumsMax] = {};
  if (i < count) {
    std::memcpy(rest, sums + i, (count - i) * sizeof(double));
    look(rest);
  }
  alignas(64) double mosts[kSumsMax];
  alignas(64) double leasts[kSumsMax];
  alignas(64) std::int64_t bits[kSumsMax];
  hn::Store(most, tag, mosts);
  hn::Store(least, tag, leasts);
  hn::Store(any, wide, bits);
  Float64SumKernels::Seen seen;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    seen.any |= bits[lane];
    seen.magnitude = std::max(
        {seen.magnitude, static_cast<std::int64_t>(mosts[lane]), -static_cast<std::int64_t>(leasts[lane]) - 1});
  }
  return seen;
}

void put_numbers(const double* sums, std::size_t count, double factor, unsigned width, std::byte* numbers) noexcept {
  const Sums tag;
  const Bytes bytes;
  const Words words;
  const Moves& moves = all_moves().gather[width - 1];
  const auto byte_moves = hn::Load(bytes, moves.bytes);
  const auto word_moves = hn::SetTableIndices(words, moves.words);
  const auto more_moves = hn::SetTableIndices(words, moves.more_words);
  const auto by = hn::Set(tag, factor), raise = hn::Set(tag, kRaise);
  const auto put = [&](const double* from, std::uint8_t* to) HWY_ATTR {
    const auto raised = hn::Add(hn::Mul(hn::LoadU(tag, from), by), raise);
    const auto in_blocks = hn::BitCast(words, hn::TableLookupBytesOr0(hn::BitCast(bytes, raised), byte_moves));
    const auto together =
        hn::Or(hn::TableLookupLanes(in_blocks, word_moves), hn::TableLookupLanes(in_blocks, more_moves));
    hn::StoreU(hn::BitCast(bytes, together), bytes, to);
  };
  auto* const to = reinterpret_cast<std::uint8_t*>(numbers);
  const std::size_t lanes = hn::Lanes(tag);
  const std::size_t whole =
      hn::Lanes(bytes);  // a store writes so many bytes; those that do not count are written again
  std::size_t i = 0;
  for (; i + lanes <= count && i * width + whole <= count * width; i += lanes) put(sums + i, to + i * width);
  for (; i < count; i += lanes) {
    const std::size_t rest = std::min(lanes, count - i);
    alignas(64) double from[kSumsMax] = {};
    alignas(64) std::uint8_t padded[kSumBytesMax];
    std::memcpy(from, sums + i, rest * sizeof(double));
    put(from, padded);
    std::memcpy(to + i * width, padded, rest * width);
  }
}

void round(const double* sums, std::size_t count, double factor, std::byte* values) noexcept {
  const Sums tag;
  const Floats narrow;
  const hn::Repartition<std::uint8_t, Floats> bytes;
  const auto by = hn::Set(tag, factor);
  auto* const to = reinterpret_cast<std::uint8_t*>(values);
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::DemoteTo(narrow, hn::Mul(hn::LoadU(tag, sums + i), by));
    hn::StoreU(hn::BitCast(bytes, value), bytes, to + i * sizeof(float));
  }
  for (; i < count; ++i) {
    const auto value = static_cast<float>(sums[i] * factor);
    std::memcpy(to + i * sizeof(float), &value, sizeof(value));
  }
}

}  // namespace

extern const Float64SumKernels kFloat64SumKernels;

const Float64SumKernels kFloat64SumKernels = {
    .add_floats = add_floats, .add_numbers = add_numbers, .see = see, .put_numbers = put_numbers, .round = round};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
