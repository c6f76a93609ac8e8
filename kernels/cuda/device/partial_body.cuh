#pragma once
// Partial sums on a device: the work of one thread block of 256 threads, one for each element of a form's block.
//
// A kernel takes the thread block as `Threads`: a device runs each step on all threads at once, and unit tests run it
// thread after thread. Threads::Local<T> is one T for each thread; each() runs a step; least(), most() and
// exclusive_sums() join the values of all threads.
//
// A block of a result is made of numbers of 64 bits, of 128 bits, or of as many as the type's range needs, by the range
// of its inputs, as on the host (kernels/cpu/partial_sum.cc).
#include <type_traits>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/device/whole_number.cuh"
#include "tributary/protocol/sum_form.h"

namespace tributary::kernels::cuda {

/// The facts of a sum that are no part of its number, as the bytes of marks in a form.
enum Marks : std::uint8_t { kNaN = 1, kPlusInfinity = 2, kMinusInfinity = 4, kMinusZero = 8, kAllMarks = 15 };

inline constexpr std::uint32_t kBlockElements = kFormBlockElements;
static_assert(kBlockElements == kThreadsPerBlock, "a thread makes one element of a form's block");
inline constexpr std::uint32_t kMarkedBit = 0x8000;  // of a width: a byte of marks for each element follows
inline constexpr std::uint32_t kFormRanksMax = 1U << 20;
inline constexpr int kNowhere = 1 << 20;  // no exponent of any type

TRIBUTARY_DEVICE std::uint32_t joined_marks(std::uint32_t a, std::uint32_t b) {
  return (a & b & kMinusZero) | ((a | b) & (kAllMarks & ~kMinusZero));
}

/// Reads `bytes` bytes, little-endian, at any alignment.
TRIBUTARY_DEVICE std::uint32_t load_bytes(const std::uint8_t* from, std::uint32_t bytes) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < bytes; ++i) value |= static_cast<std::uint32_t>(from[i]) << (8 * i);
  return value;
}
TRIBUTARY_DEVICE void store_bytes(std::uint8_t* to, std::uint32_t bytes, std::uint64_t value) {
  for (std::uint32_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// The head of a form's block.
struct BlockHead {
  int exponent;
  std::uint32_t width;
  bool marked;
  [[nodiscard]] TRIBUTARY_DEVICE std::uint64_t bytes(std::uint32_t count) const {
    return kFormBlockHeadBytes + std::uint64_t{count} * (width + (marked ? 1 : 0));
  }
};

TRIBUTARY_DEVICE BlockHead load_head(const std::uint8_t* block) {
  const std::uint32_t width = load_bytes(block + 2, 2);
  return {static_cast<std::int16_t>(load_bytes(block, 2)), width & ~kMarkedBit, (width & kMarkedBit) != 0};
}

TRIBUTARY_DEVICE std::uint64_t blocks_of(std::uint64_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}
TRIBUTARY_DEVICE std::uint32_t elements_of_block(std::uint64_t elements, std::uint64_t block) {
  const std::uint64_t left = elements - block * kBlockElements;
  return left < kBlockElements ? static_cast<std::uint32_t>(left) : kBlockElements;
}

TRIBUTARY_DEVICE bool is_form(const PartialArguments& arguments, std::uint32_t input) {
  return (arguments.forms >> input & 1) != 0;
}

/// Returns true if an input is no form; then no kernel writes a result.
template <class Threads>
TRIBUTARY_DEVICE bool any_fault(const PartialArguments& arguments, Threads& threads) {
  if (arguments.result == nullptr) return false;
  const int most = threads.most([&](std::uint32_t thread) {
    return thread < arguments.inputs_count && arguments.result->faults[thread] != 0 ? 1 : 0;
  });
  return most != 0;
}

/// Returns 1 + the index of the first input that is no form; 0 if there is none.
TRIBUTARY_DEVICE std::uint64_t first_fault(const PartialArguments& arguments) {
  for (std::uint32_t input = 0; input < arguments.inputs_count; ++input) {
    if (arguments.result->faults[input] != 0) return input + 1;
  }
  return 0;
}

// ---- The blocks of the inputs. The length of a form's block is known only from its head, so one thread of each input
// goes from head to head. Then all threads look at the marks.

/// Notes where each block of an input is. Returns false if the bytes are no form.
TRIBUTARY_DEVICE bool find_blocks(const PartialArguments& arguments, std::uint32_t input) {
  const auto* const form = static_cast<const std::uint8_t*>(arguments.inputs[input]);
  const std::uint64_t bytes = arguments.bytes[input];
  const std::uint64_t blocks = blocks_of(arguments.count);
  if (bytes < kFormHeadBytes || load_bytes(form, 4) != arguments.count) return false;
  const std::uint32_t ranks = load_bytes(form + 4, 4);
  if (ranks == 0 || ranks > kFormRanksMax) return false;
  std::uint64_t at = kFormHeadBytes;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    arguments.offsets[input * blocks + block] = at;
    if (bytes - at < kFormBlockHeadBytes) return false;
    const BlockHead head = load_head(form + at);
    const bool in_range = head.width == 0 || (head.exponent >= arguments.least &&
                                              head.exponent + 8 * static_cast<int>(head.width) <= arguments.end);
    const std::uint64_t length = head.bytes(elements_of_block(arguments.count, block));
    if (!in_range || bytes - at < length) return false;
    at += length;
  }
  return at == bytes;
}

/// Returns true if all marks of element `thread` of every block are known ones.
TRIBUTARY_DEVICE bool has_known_marks(const PartialArguments& arguments, std::uint32_t input, std::uint32_t thread) {
  const std::uint64_t blocks = blocks_of(arguments.count);
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint8_t* const at =
        static_cast<const std::uint8_t*>(arguments.inputs[input]) + arguments.offsets[input * blocks + block];
    if (thread >= elements_of_block(arguments.count, block) || !load_head(at).marked) continue;
    if (at[kFormBlockHeadBytes + thread] > kAllMarks) return false;
  }
  return true;
}

template <class Threads>
TRIBUTARY_DEVICE void check_input(const PartialArguments& arguments, std::uint32_t input, Threads& threads) {
  if (!is_form(arguments, input)) {
    threads.each([&](std::uint32_t thread) {
      if (thread == 0) arguments.result->faults[input] = 0;
    });
    return;
  }
  const bool broken =
      threads.most([&](std::uint32_t thread) { return thread == 0 && !find_blocks(arguments, input) ? 1 : 0; }) != 0;
  const bool strange = !broken && threads.most([&](std::uint32_t thread) {
    return has_known_marks(arguments, input, thread) ? 0 : 1;
  }) != 0;
  threads.each([&](std::uint32_t thread) {
    if (thread == 0) arguments.result->faults[input] = broken || strange ? 1 : 0;
  });
}

// ---- One block of the result.

template <DType kDType, class Threads>
class PartialBlock {
  using Layout = LayoutOf<kDType>;
  static constexpr FormRange kRange = form_range_of(kDType);
  static_assert(kRange.least == Layout::kLeast);
  static constexpr int kRangeEnd = kRange.end();
  /// The words of a sum of kInputsMax inputs anywhere in the range, with its sign.
  static constexpr int kWordsMax = (8 * static_cast<int>(kRange.width_max) + 7 + 63) / 64;
  template <class T>
  using Local = typename Threads::template Local<T>;

 public:
  TRIBUTARY_DEVICE PartialBlock(const PartialArguments& arguments, std::uint64_t block, Threads& threads)
      : arguments_(arguments), threads_(threads), block_(block), count_(elements_of_block(arguments.count, block)) {
    Local<Extent> reached;
    threads.each([&](std::uint32_t thread) { reached[thread] = look_at(thread); });
    low_ = threads.least([&](std::uint32_t thread) { return reached[thread].low; });
    high_ = threads.most([&](std::uint32_t thread) { return reached[thread].high; });
  }

  /// Notes the length of the block's form.
  TRIBUTARY_DEVICE void measure() {
    with_numbers([this](auto& numbers) {
      const std::uint64_t bytes = head_of(numbers).bytes(count_);
      threads_.each([&](std::uint32_t thread) {
        if (thread == 0) arguments_.places[block_] = bytes;
      });
    });
  }

  /// Writes the block's form to its place.
  TRIBUTARY_DEVICE void write() {
    with_numbers([this](auto& numbers) {
      const BlockHead head = head_of(numbers);
      auto* const out = static_cast<std::uint8_t*>(arguments_.out) + arguments_.places[block_];
      threads_.each([&](std::uint32_t thread) { write_element(out, head, numbers[thread], thread); });
    });
  }

  /// Writes the block's values, rounded.
  TRIBUTARY_DEVICE void round() {
    with_numbers([this](auto& numbers) {
      threads_.each([&](std::uint32_t thread) {
        if (thread >= count_) return;
        const std::uint64_t bits = value_of(numbers[thread], marks_[thread]);
        store_element<typename Layout::Stored>(arguments_.out, block_ * kBlockElements + thread,
                                               static_cast<typename Layout::Stored>(bits));
      });
    });
  }

 private:
  /// All inputs of an element are multiples of 2^low and less than 2^high.
  struct Extent {
    int low = kNowhere;
    int high = -kNowhere;
  };

  [[nodiscard]] TRIBUTARY_DEVICE std::uint64_t value_bits(std::uint32_t input, std::uint32_t thread) const {
    return load_element<typename Layout::Stored>(arguments_.inputs[input], block_ * kBlockElements + thread);
  }
  [[nodiscard]] TRIBUTARY_DEVICE const std::uint8_t* block_of_input(std::uint32_t input) const {
    return static_cast<const std::uint8_t*>(arguments_.inputs[input]) +
           arguments_.offsets[input * blocks_of(arguments_.count) + block_];
  }

  /// A value's mantissa is a whole number times 2^(field - 1 + kLeast), where the field is at least 1.
  static TRIBUTARY_DEVICE int field_of(std::uint64_t magnitude) {
    const int field = static_cast<int>(magnitude >> Layout::kFraction);
    return field > 0 ? field : 1;
  }
  static TRIBUTARY_DEVICE std::uint64_t mantissa_of(std::uint64_t magnitude) {
    constexpr std::uint64_t kLeading = std::uint64_t{1} << Layout::kFraction;
    return (magnitude & (kLeading - 1)) | (magnitude >= kLeading ? kLeading : 0);
  }
  static TRIBUTARY_DEVICE std::uint32_t marks_of(std::uint64_t bits) {
    const std::uint64_t magnitude = bits & (Layout::kSign - 1);
    const bool negative = (bits & Layout::kSign) != 0;
    if (magnitude == 0) return negative ? kMinusZero : 0;
    if (magnitude < Layout::kBeyond) return 0;
    if (!Layout::kInfinity || magnitude > Layout::kBeyond) return kNaN;
    return negative ? kMinusInfinity : kPlusInfinity;
  }

  /// Joins the marks of all inputs of an element. Returns the range of their numbers.
  TRIBUTARY_DEVICE Extent look_at(std::uint32_t thread) {
    Extent extent;
    std::uint32_t marks = kMinusZero;
    if (thread < count_) {
      for (std::uint32_t input = 0; input < arguments_.inputs_count; ++input)
        look_at_input(input, thread, marks, extent);
    }
    marks_[thread] = marks;
    return extent;
  }
  TRIBUTARY_DEVICE void look_at_input(std::uint32_t input, std::uint32_t thread, std::uint32_t& marks, Extent& extent) {
    int low = kNowhere, high = -kNowhere;
    if (is_form(arguments_, input)) {
      const std::uint8_t* const block = block_of_input(input);
      const BlockHead head = load_head(block);
      marks = joined_marks(marks, head.marked ? block[kFormBlockHeadBytes + thread] : 0);
      if (head.width > 0) {
        low = head.exponent;
        high = head.exponent + 8 * static_cast<int>(head.width);
      }
    } else {
      const std::uint64_t bits = value_bits(input, thread);
      const std::uint64_t magnitude = bits & (Layout::kSign - 1);
      marks = joined_marks(marks, marks_of(bits));
      if (magnitude != 0 && magnitude < Layout::kBeyond) {
        low = field_of(magnitude) - 1 + Layout::kLeast;
        high = low + Layout::kFraction + 1;
      }
    }
    extent.low = low < extent.low ? low : extent.low;
    extent.high = high > extent.high ? high : extent.high;
  }

  [[nodiscard]] TRIBUTARY_DEVICE bool is_finite(std::uint32_t thread) {
    return (marks_[thread] & ~static_cast<std::uint32_t>(kMinusZero)) == 0;
  }

  /// Sums all inputs of an element, if it is finite.
  template <int kWords>
  TRIBUTARY_DEVICE WholeNumber<kWords> sum_of(std::uint32_t thread) {
    auto sum = zero_number<kWords>();
    if (thread >= count_ || low_ > high_ || !is_finite(thread)) return sum;
    for (std::uint32_t input = 0; input < arguments_.inputs_count; ++input) {
      if (is_form(arguments_, input)) {
        const std::uint8_t* const block = block_of_input(input);
        const BlockHead head = load_head(block);
        if (head.width == 0) continue;
        const std::uint8_t* const numbers = block + kFormBlockHeadBytes + (head.marked ? count_ : 0);
        sum.add_bytes(numbers + thread * head.width, head.width, head.exponent - low_);
      } else {
        const std::uint64_t bits = value_bits(input, thread);
        const std::uint64_t magnitude = bits & (Layout::kSign - 1);
        if (magnitude == 0) continue;
        sum.add(mantissa_of(magnitude), (bits & Layout::kSign) != 0, field_of(magnitude) - 1 + Layout::kLeast - low_);
      }
    }
    return sum;
  }

  template <int kWords, class Function>
  TRIBUTARY_DEVICE void with_words(Function& function) {
    Local<WholeNumber<kWords>> numbers;
    threads_.each([&](std::uint32_t thread) { numbers[thread] = sum_of<kWords>(thread); });
    function(numbers);
  }
  /// Calls the function with the sums, in numbers of as many words as these inputs need.
  template <class Function>
  TRIBUTARY_DEVICE void with_numbers(Function function) {
    const int bits = low_ > high_ ? 0 : high_ - low_ + static_cast<int>(arguments_.inputs_log2) + 1;
    if constexpr (kWordsMax > 1) {
      if (bits > 64) {
        if constexpr (kWordsMax > 2) {
          if (bits > 128) return with_words<kWordsMax>(function);
        }
        return with_words<2>(function);
      }
    }
    with_words<1>(function);
  }

  /// Returns the head of the block's form: its least exponent, and the fewest bytes that hold every number.
  template <class Numbers>
  TRIBUTARY_DEVICE BlockHead head_of(Numbers& numbers) {
    const auto numbered = [&](std::uint32_t thread) { return thread < count_ && !numbers[thread].zero(); };
    const int lowest = threads_.least(
        [&](std::uint32_t thread) { return numbered(thread) ? numbers[thread].lowest_bit() : kNowhere; });
    const int bits =
        threads_.most([&](std::uint32_t thread) { return numbered(thread) ? numbers[thread].width() : -kNowhere; });
    const bool marked =
        threads_.most([&](std::uint32_t thread) { return thread < count_ && marks_[thread] != 0 ? 1 : 0; }) != 0;
    if (bits < 0) return {0, 0, marked};
    const BlockHead head{low_ + lowest, static_cast<std::uint32_t>(bits - lowest + 1 + 7) / 8, marked};
    if (head.exponent + 8 * static_cast<int>(head.width) <= kRangeEnd) return head;
    // Only a process that lies sends such numbers.
    threads_.each([&](std::uint32_t thread) { marks_[thread] = kNaN; });
    return {0, 0, true};
  }

  template <int kWords>
  TRIBUTARY_DEVICE void write_element(std::uint8_t* out, const BlockHead& head, const WholeNumber<kWords>& number,
                                      std::uint32_t thread) {
    if (thread == 0) {
      store_bytes(out, 2, static_cast<std::uint64_t>(head.exponent));
      store_bytes(out + 2, 2, head.width | (head.marked ? kMarkedBit : 0));
    }
    if (thread >= count_) return;
    out += kFormBlockHeadBytes;
    if (head.marked) {
      out[thread] = static_cast<std::uint8_t>(marks_[thread]);
      out += count_;
    }
    const int zeros = head.exponent - low_;
    for (std::uint32_t done = 0; done < head.width; done += 8) {
      const std::uint32_t some = head.width - done < 8 ? head.width - done : 8;
      store_bytes(out + thread * head.width + done, some, number.bits_from(zeros + static_cast<int>(8 * done)));
    }
  }

  template <int kWords>
  TRIBUTARY_DEVICE std::uint64_t value_of(const WholeNumber<kWords>& number, std::uint32_t marks) {
    constexpr std::uint32_t kBoth = kPlusInfinity | kMinusInfinity;
    if ((marks & kNaN) != 0 || (marks & kBoth) == kBoth) return Layout::kNaN;
    if ((marks & kBoth) != 0)
      return (marks & kMinusInfinity) != 0 && Layout::kInfinity ? Layout::kBeyond | Layout::kSign : Layout::kBeyond;
    if (number.zero()) return marks != 0 ? Layout::kSign : 0;
    return quotient<Layout>(number, low_, arguments_.divisor);
  }

  const PartialArguments& arguments_;
  Threads& threads_;
  std::uint64_t block_;
  std::uint32_t count_;
  Local<std::uint32_t> marks_;
  int low_, high_;
};

// ---- The places of all blocks.

TRIBUTARY_DEVICE std::uint32_t ranks_of(const PartialArguments& arguments, std::uint32_t input) {
  if (!is_form(arguments, input)) return 1;
  return load_bytes(static_cast<const std::uint8_t*>(arguments.inputs[input]) + 4, 4);
}

/// Turns the lengths of the result's blocks into their offsets, and writes the head of the form. One thread block does
/// this; each of its threads takes a part of the blocks.
template <class Threads>
TRIBUTARY_DEVICE void place_blocks(const PartialArguments& arguments, Threads& threads) {
  const bool faulty = any_fault(arguments, threads);
  const std::uint64_t blocks = blocks_of(arguments.count);
  const std::uint64_t part = (blocks + kThreadsPerBlock - 1) / kThreadsPerBlock;
  const auto begin_of = [&](std::uint64_t thread) { return thread * part < blocks ? thread * part : blocks; };
  typename Threads::template Local<std::uint64_t> sums;
  threads.each([&](std::uint32_t thread) {
    std::uint64_t sum = 0;
    for (std::uint64_t block = begin_of(thread); block < begin_of(thread + 1) && !faulty; ++block)
      sum += arguments.places[block];
    sums[thread] = sum;
  });
  const std::uint64_t total = threads.exclusive_sums(sums);
  threads.each([&](std::uint32_t thread) {
    std::uint64_t at = kFormHeadBytes + sums[thread];
    for (std::uint64_t block = begin_of(thread); block < begin_of(thread + 1) && !faulty; ++block) {
      const std::uint64_t bytes = arguments.places[block];
      arguments.places[block] = at;
      at += bytes;
    }
    if (thread != 0) return;
    arguments.result->bytes = faulty ? 0 : kFormHeadBytes + total;
    arguments.result->fault = first_fault(arguments);
    if (faulty) return;
    std::uint64_t ranks = 0;
    for (std::uint32_t input = 0; input < arguments.inputs_count; ++input) ranks += ranks_of(arguments, input);
    auto* const out = static_cast<std::uint8_t*>(arguments.out);
    store_bytes(out, 4, arguments.count);
    store_bytes(out + 4, 4, ranks < kFormRanksMax ? ranks : kFormRanksMax);
  });
}

// ---- The kernels' work for each block of the result that this thread block takes.

enum class PartialStep { measure, write, round };

template <DType kDType, PartialStep kStep, class Threads>
TRIBUTARY_DEVICE void partial_block(const PartialArguments& arguments, std::uint64_t block, Threads& threads) {
  PartialBlock<kDType, Threads> sum(arguments, block, threads);
  if constexpr (kStep == PartialStep::measure) sum.measure();
  if constexpr (kStep == PartialStep::write) sum.write();
  if constexpr (kStep == PartialStep::round) sum.round();
}

/// Thread blocks `first`, `first + apart`, ... of the result.
template <DType kDType, PartialStep kStep, class Threads>
TRIBUTARY_DEVICE void partial_blocks(const PartialArguments& arguments, std::uint64_t first, std::uint64_t apart,
                                     Threads& threads) {
  if (kStep == PartialStep::round && first == 0 && arguments.result != nullptr) {
    threads.each([&](std::uint32_t thread) {
      if (thread == 0) arguments.result->fault = first_fault(arguments);
    });
  }
  if (any_fault(arguments, threads)) return;
  const std::uint64_t blocks = blocks_of(arguments.count);
  for (std::uint64_t block = first; block < blocks; block += apart)
    partial_block<kDType, kStep>(arguments, block, threads);
}

}  // namespace tributary::kernels::cuda
