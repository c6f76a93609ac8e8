// reduce for one target; compiled once per target, see target-inl.h.
#include "cpu/target-inl.h"

#include "cpu/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace tributary::kernels::TRIBUTARY_TARGET {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// In order of dependency.
#include "cpu/lanes-inl.h"
//
#include "cpu/arithmetic-inl.h"
#include "cpu/elements-inl.h"

struct Sum {
  template <class T>
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) {
    return hn::Add(a, b);
  }
};
struct Product {
  template <class T>
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) {
    return multiply<T>(a, b);
  }
};
struct Minimum {
  template <class T>
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) {
    return hn::Min(a, b);
  }
};
struct Maximum {
  template <class T>
  static HWY_INLINE Vec<T> combine(Vec<T> a, Vec<T> b) {
    return hn::Max(a, b);
  }
};

template <class Element>
HWY_INLINE std::size_t group_bytes() {
  return Element::kGroupVectors * vector_bytes();
}

inline constexpr std::size_t kGroupBytesMax = 4 * HWY_MAX_BYTES;

// Where a group of input k lies: in place, or copied to scratch when the array ends before the group does.
struct WholeGroup {
  HWY_INLINE const std::uint8_t* operator()(const std::uint8_t* group) const { return group; }
};
struct PartialGroup {
  std::uint8_t* scratch;
  std::size_t bytes;
  HWY_INLINE const std::uint8_t* operator()(const std::uint8_t* group) const {
    std::memcpy(scratch, group, bytes);
    return scratch;
  }
};

/// Combines one group of every input, in their order, and stores it. `out` may be the group of one of the inputs:
/// nothing is stored before all are read.
template <class Element, class Op, bool kStream, class Locate>
HWY_INLINE void reduce_group(const ReduceArgs& args, std::size_t offset, Locate locate, std::uint8_t* out) {
  using T = typename Element::Lane;
  const auto group_of = [&](std::size_t input)
                            HWY_ATTR { return locate(static_cast<const std::uint8_t*>(args.inputs[input]) + offset); };
  Vec<T> a, b, c, d;
  Element::load(group_of(0), a, b, c, d);
  for (std::size_t input = 1; input < args.inputs_count; ++input) {
    Vec<T> x, y, z, w;
    Element::load(group_of(input), x, y, z, w);
    a = Op::template combine<T>(a, x);
    b = Op::template combine<T>(b, y);
    c = Op::template combine<T>(c, z);
    d = Op::template combine<T>(d, w);
  }
  if constexpr (std::is_same_v<Op, Sum>) {
    if (args.divisor != 1) {
      const Divider<T> divide(args.divisor);
      a = divide(a);
      b = divide(b);
      c = divide(c);
      d = divide(d);
    }
  }
  Element::template store<kStream>(a, b, c, d, out);
}

/// Less than a group, by way of scratch memory, so that it takes the same arithmetic as a whole one and gives the same
/// bits.
template <class Element, class Op>
void reduce_partial(const ReduceArgs& args, std::size_t offset, std::size_t bytes) {
  alignas(64) std::uint8_t scratch[kGroupBytesMax] = {};
  alignas(64) std::uint8_t result[kGroupBytesMax];
  reduce_group<Element, Op, false>(args, offset, PartialGroup{scratch, bytes}, result);
  std::memcpy(static_cast<std::uint8_t*>(args.out) + offset, result, bytes);
}

/// [offset, end) in whole groups and one partial one.
template <class Element, class Op, bool kStream>
HWY_INLINE void reduce_range(const ReduceArgs& args, std::size_t offset, std::size_t end) {
  const std::size_t step = group_bytes<Element>();
  std::uint8_t* const out = static_cast<std::uint8_t*>(args.out);
  for (; end - offset >= step; offset += step)
    reduce_group<Element, Op, kStream>(args, offset, WholeGroup{}, out + offset);
  if (offset < end) reduce_partial<Element, Op>(args, offset, end - offset);
}

template <class Element, class Op>
void reduce_cached(const ReduceArgs& args) noexcept {
  reduce_range<Element, Op, false>(args, 0, args.count * Element::kElementBytes);
}

/// Streaming stores go past the caches in whole aligned vectors: the first bytes up to that alignment are written in
/// the ordinary way.
template <class Element, class Op>
void reduce_streamed(const ReduceArgs& args) noexcept {
  const std::size_t bytes = args.count * Element::kElementBytes;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(args.out) % vector_bytes();
  const std::size_t head = misaligned == 0 ? 0 : vector_bytes() - misaligned;
  if (head > bytes || head % Element::kElementBytes != 0) return reduce_range<Element, Op, false>(args, 0, bytes);
  if (head > 0) reduce_partial<Element, Op>(args, 0, head);
  reduce_range<Element, Op, true>(args, head, bytes);
  hwy::FlushStream();  // pairs with whatever hands the result to another core
}

template <class Cached, class Streamed, class Op>
void run(const ReduceArgs& args) noexcept {
  args.stream ? reduce_streamed<Streamed, Op>(args) : reduce_cached<Cached, Op>(args);
}

// Out of cache less at a time is faster: on a Zen 4, two float32 inputs 31 GB/s by 128 bytes of each in turn, 27 by
// 256.
inline constexpr int kStreamVectors = HWY_MAX_BYTES == 64 ? 2 : 4;

template <class T, class Op>
inline constexpr ReduceFunction plain = run<Plain<T, 4>, Plain<T, kStreamVectors>, Op>;

template <class T, T kLargest, T kQuiet, bool kMin, class Op = std::conditional_t<kMin, Minimum, Maximum>>
inline constexpr ReduceFunction ordered =
    run<Ordered<T, kLargest, kQuiet, kMin, 4>, Ordered<T, kLargest, kQuiet, kMin, kStreamVectors>, Op>;

template <class Element, class Op>
inline constexpr ReduceFunction widened = run<Element, Element, Op>;

#define TRIBUTARY_INTEGER(T) {plain<T, Sum>, plain<T, Product>, plain<T, Minimum>, plain<T, Maximum>, plain<T, Sum>}
#define TRIBUTARY_SMALL(Element, T, largest, quiet)                                    \
  {widened<Element, Sum>, widened<Element, Product>, ordered<T, largest, quiet, true>, \
   ordered<T, largest, quiet, false>, widened<Element, Sum>}
#define TRIBUTARY_FLOAT(F, T, largest, quiet) \
  {plain<F, Sum>, plain<F, Product>, ordered<T, largest, quiet, true>, ordered<T, largest, quiet, false>, plain<F, Sum>}

}  // namespace

// In the order of DType and ReduceOp. avg is sum with a divisor.
extern const ReduceTable kReduceTable;
const ReduceTable kReduceTable = {{
    TRIBUTARY_INTEGER(std::int8_t),
    TRIBUTARY_INTEGER(std::uint8_t),
    TRIBUTARY_INTEGER(std::int32_t),
    TRIBUTARY_INTEGER(std::uint32_t),
    TRIBUTARY_INTEGER(std::int64_t),
    TRIBUTARY_INTEGER(std::uint64_t),
    TRIBUTARY_SMALL(Float16, std::int16_t, 0x7C00, 0x0200),
    TRIBUTARY_SMALL(BFloat16, std::int16_t, 0x7F80, 0x0040),
    TRIBUTARY_FLOAT(float, std::int32_t, 0x7F800000, 0x00400000),
    TRIBUTARY_FLOAT(double, std::int64_t, 0x7FF0000000000000, 0x0008000000000000),
    TRIBUTARY_SMALL(Float8<E4M3>, std::int8_t, 0x7E, 0),
    TRIBUTARY_SMALL(Float8<E5M2>, std::int8_t, 0x7C, 0x02),
}};

}  // namespace tributary::kernels::TRIBUTARY_TARGET
HWY_AFTER_NAMESPACE();
