#include "bench/kernels/direct_loop.h"

#include <array>
#include <cstdint>

// This file is compiled for this machine, like all yardsticks, so that Highway's static target is the best for this
// machine.
#define HWY_COMPILE_ONLY_STATIC
#include "hwy/highway.h"

namespace tributary::bench {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Types whose elements are added without a conversion.
template <class T>
struct Same {
  using Stored = T;
  static constexpr hn::ScalableTag<T> kTag{};
  static constexpr std::size_t kStep = hn::MaxLanes(kTag);
  using Sum = hn::Vec<hn::ScalableTag<T>>;
  static Sum load(const T* from) { return hn::LoadU(kTag, from); }
  static Sum add(Sum a, Sum b) { return hn::Add(a, b); }
  static void store(Sum sum, T* to) { hn::StoreU(sum, kTag, to); }
};

/// For these types, each vector becomes two vectors of float32: one of the even elements, one of the odd elements.
struct Brain {
  using Stored = std::uint16_t;
  static constexpr hn::ScalableTag<std::uint16_t> kTag{};
  static constexpr hn::ScalableTag<std::uint32_t> kWords{};
  static constexpr hn::ScalableTag<float> kFloats{};
  static constexpr std::size_t kStep = hn::MaxLanes(kTag);
  struct Sum {
    hn::Vec<hn::ScalableTag<float>> even, odd;
  };
  static Sum load(const std::uint16_t* from) {
    const auto words = hn::BitCast(kWords, hn::LoadU(kTag, from));
    return {hn::BitCast(kFloats, hn::ShiftLeft<16>(words)),
            hn::BitCast(kFloats, hn::And(words, hn::Set(kWords, 0xFFFF0000U)))};
  }
  static Sum add(Sum a, Sum b) { return {hn::Add(a.even, b.even), hn::Add(a.odd, b.odd)}; }
  static auto rounded(hn::Vec<hn::ScalableTag<float>> value) {
    const auto bits = hn::BitCast(kWords, value);
    const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(kWords, 1));
    return hn::Add(bits, hn::Add(last, hn::Set(kWords, 0x7FFF)));
  }
  static void store(Sum sum, std::uint16_t* to) {
    const auto low = hn::BitCast(kTag, hn::ShiftRight<16>(rounded(sum.even)));
    hn::StoreU(hn::OddEven(hn::BitCast(kTag, rounded(sum.odd)), low), kTag, to);
  }
};

struct Half {
  using Stored = hwy::float16_t;
  static constexpr hn::ScalableTag<float> kFloats{};
  static constexpr hn::Rebind<hwy::float16_t, hn::ScalableTag<float>> kHalves{};
  static constexpr std::size_t kStep = hn::MaxLanes(kFloats);
  using Sum = hn::Vec<hn::ScalableTag<float>>;
  static Sum load(const hwy::float16_t* from) { return hn::PromoteTo(kFloats, hn::LoadU(kHalves, from)); }
  static Sum add(Sum a, Sum b) { return hn::Add(a, b); }
  static void store(Sum sum, hwy::float16_t* to) { hn::StoreU(hn::DemoteTo(kHalves, sum), kHalves, to); }
};

template <class Format, std::size_t kInputs>
void sum(std::span<const void* const> inputs, void* out, std::size_t count) {
  using Stored = Format::Stored;
  std::array<const Stored*, kInputs> in;
  for (std::size_t k = 0; k < kInputs; ++k) in[k] = static_cast<const Stored*>(inputs[k]);
  auto* const to = static_cast<Stored*>(out);
  for (std::size_t i = 0; i + Format::kStep <= count; i += Format::kStep) {
    auto total = Format::load(in[0] + i);
    for (std::size_t k = 1; k < kInputs; ++k) total = Format::add(total, Format::load(in[k] + i));
    Format::store(total, to + i);
  }
}

template <class Format>
DirectSum for_inputs(std::size_t inputs) {
  switch (inputs) {
    case 2:
      return sum<Format, 2>;
    case 4:
      return sum<Format, 4>;
    case 8:
      return sum<Format, 8>;
    default:
      return nullptr;
  }
}

}  // namespace

DirectSum direct_sum(DType dtype, std::size_t inputs) {
  switch (dtype) {
    case DType::float32:
      return for_inputs<Same<float>>(inputs);
    case DType::int32:
      return for_inputs<Same<std::int32_t>>(inputs);
    case DType::bfloat16:
      return for_inputs<Brain>(inputs);
    case DType::float16:
      return for_inputs<Half>(inputs);
    default:
      return nullptr;
  }
}

}  // namespace tributary::bench
