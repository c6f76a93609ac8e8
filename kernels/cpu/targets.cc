#include "tributary/kernels/target.h"

#include <array>
#include <cstddef>

#include "kernels/cpu/exact_table.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/partial_table.h"
#include "kernels/cpu/scalar_tables.h"

// A build with TRIBUTARY_VECTOR_KERNELS=OFF has only the scalar kernels.
#if !defined(TRIBUTARY_NO_VECTOR_KERNELS) && defined(__x86_64__)
#define TRIBUTARY_X86_KERNELS 1
#elif !defined(TRIBUTARY_NO_VECTOR_KERNELS) && defined(__aarch64__)
#define TRIBUTARY_ARM_KERNELS 1
#endif

#if TRIBUTARY_ARM_KERNELS
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace tributary::kernels {

#if TRIBUTARY_X86_KERNELS
namespace sse4 {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace sse4
namespace avx2 {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace avx2
namespace avx3 {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace avx3
namespace avx3_bf16 {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace avx3_bf16
namespace avx3_fp16 {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace avx3_fp16
#elif TRIBUTARY_ARM_KERNELS
namespace neon {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace neon
namespace sve {
extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;
extern const PartialTable kPartialTable;
}  // namespace sve
#endif

namespace {

struct TargetList {
  std::array<Target, 6> targets{Target::scalar};
  std::size_t count = 1;
  Target active = Target::scalar;

  void add(Target target, bool available) noexcept {
    if (!available) return;
    targets[count++] = target;
    active = target;
  }
};

#if TRIBUTARY_X86_KERNELS
// __builtin_cpu_supports() also checks that the operating system saves the registers.
TargetList detect() noexcept {
  TargetList list;
  list.add(Target::sse4, __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2"));
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  list.add(Target::avx2, avx2);
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  list.add(Target::avx3, avx3);
  const bool bf16 = avx3 && __builtin_cpu_supports("avx512bf16");
  list.add(Target::avx3_bf16, bf16);
  list.add(Target::avx3_fp16, bf16 && __builtin_cpu_supports("avx512fp16"));
  return list;
}
#elif TRIBUTARY_ARM_KERNELS
constexpr unsigned long kNeonBytes = 16;

TargetList detect() noexcept {
  TargetList list;
  list.add(Target::neon, true);
  const bool sve = (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
  list.add(Target::sve, sve);
  // The low 16 bits of the result are the vector length in bytes.
  if (sve && (static_cast<unsigned long>(prctl(PR_SVE_GET_VL)) & 0xFFFF) <= kNeonBytes) list.active = Target::neon;
  return list;
}
#else
TargetList detect() noexcept {
  return {};
}
#endif

const TargetList& list() noexcept {
  static const TargetList detected = detect();
  return detected;
}

}  // namespace

std::string_view to_string(Target target) noexcept {
  switch (target) {
    case Target::scalar:
      return "scalar";
    case Target::sse4:
      return "sse4";
    case Target::avx2:
      return "avx2";
    case Target::avx3:
      return "avx3";
    case Target::avx3_bf16:
      return "avx3_bf16";
    case Target::avx3_fp16:
      return "avx3_fp16";
    case Target::neon:
      return "neon";
    case Target::sve:
      return "sve";
  }
  return "unknown";
}

std::span<const Target> available_targets() noexcept {
  return {list().targets.data(), list().count};
}

Target active_target() noexcept {
  return list().active;
}

const ReduceTable& reduce_table(Target target) noexcept {
  switch (target) {
#if TRIBUTARY_X86_KERNELS
    case Target::sse4:
      return sse4::kReduceTable;
    case Target::avx2:
      return avx2::kReduceTable;
    case Target::avx3:
      return avx3::kReduceTable;
    case Target::avx3_bf16:
      return avx3_bf16::kReduceTable;
    case Target::avx3_fp16:
      return avx3_fp16::kReduceTable;
#elif TRIBUTARY_ARM_KERNELS
    case Target::neon:
      return neon::kReduceTable;
    case Target::sve:
      return sve::kReduceTable;
#endif
    default:
      return scalar::kReduceTable;
  }
}

const ConvertTable& convert_table(Target target) noexcept {
  switch (target) {
#if TRIBUTARY_X86_KERNELS
    case Target::sse4:
      return sse4::kConvertTable;
    case Target::avx2:
      return avx2::kConvertTable;
    case Target::avx3:
      return avx3::kConvertTable;
    case Target::avx3_bf16:
      return avx3_bf16::kConvertTable;
    case Target::avx3_fp16:
      return avx3_fp16::kConvertTable;
#elif TRIBUTARY_ARM_KERNELS
    case Target::neon:
      return neon::kConvertTable;
    case Target::sve:
      return sve::kConvertTable;
#endif
    default:
      return scalar::kConvertTable;
  }
}

const ExactTable& exact_table(Target target) noexcept {
  switch (target) {
#if TRIBUTARY_X86_KERNELS
    case Target::sse4:
      return sse4::kExactTable;
    case Target::avx2:
      return avx2::kExactTable;
    case Target::avx3:
      return avx3::kExactTable;
    case Target::avx3_bf16:
      return avx3_bf16::kExactTable;
    case Target::avx3_fp16:
      return avx3_fp16::kExactTable;
#elif TRIBUTARY_ARM_KERNELS
    case Target::neon:
      return neon::kExactTable;
    case Target::sve:
      return sve::kExactTable;
#endif
    default:
      return scalar::kExactTable;
  }
}

const PartialTable& partial_table(Target target) noexcept {
  switch (target) {
#if TRIBUTARY_X86_KERNELS
    case Target::sse4:
      return sse4::kPartialTable;
    case Target::avx2:
      return avx2::kPartialTable;
    case Target::avx3:
      return avx3::kPartialTable;
    case Target::avx3_bf16:
      return avx3_bf16::kPartialTable;
    case Target::avx3_fp16:
      return avx3_fp16::kPartialTable;
#elif TRIBUTARY_ARM_KERNELS
    case Target::neon:
      return neon::kPartialTable;
    case Target::sve:
      return sve::kPartialTable;
#endif
    default:
      return scalar::kPartialTable;
  }
}

}  // namespace tributary::kernels
