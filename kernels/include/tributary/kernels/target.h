#pragma once
// Returns the instruction set that the kernels use. Programs need not call it: reduce() and convert() choose by
// themselves.
#include <cstdint>
#include <span>
#include <string_view>

namespace tributary::kernels {

enum class Target : std::uint8_t {
  scalar,     // plain C++, the reference: for a CPU without the other targets
  sse4,       // x86-64 with SSE4.2
  avx2,       // x86-64 with AVX2, FMA, F16C and BMI2 (x86-64-v3)
  avx3,       // x86-64 with AVX-512 F, BW, DQ and VL (x86-64-v4)
  avx3_bf16,  // avx3 with AVX512_BF16, for its conversions to bfloat16
  avx3_fp16,  // avx3_bf16 with AVX512_FP16, for its float16 arithmetic
  neon,       // arm64
  sve,        // arm64 with the Scalable Vector Extension, of any vector length
};

/// Returns the names above: "scalar", "sse4", ...
[[nodiscard]] std::string_view to_string(Target target) noexcept;

/// Returns the targets that this machine can run and this build holds, slowest first; never empty. Any thread may call
/// it; the result does not change.
[[nodiscard]] std::span<const Target> available_targets() noexcept;

/// Returns the target that the kernels use: the fastest available. SVE is chosen if its vectors are longer than NEON's
/// 16 bytes.
[[nodiscard]] Target active_target() noexcept;

}  // namespace tributary::kernels
