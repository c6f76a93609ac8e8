// Opens one target: sets Highway to it and names its namespace. The build compiles each *_target.cc once per target,
// with
//   TRIBUTARY_TARGET             the target's name in this project: sse4, avx2, avx3, avx3_bf16, avx3_fp16, neon, sve
//   TRIBUTARY_HWY_TARGET         the Highway target whose operations it uses
//   TRIBUTARY_BF16_INSTRUCTIONS  1 for avx3_bf16 and avx3_fp16: AVX-512 with its bfloat16 conversions, for which
//                                Highway 1.0.3 has no target
//   TRIBUTARY_FP16_INSTRUCTIONS  1 for avx3_fp16: AVX-512's float16 arithmetic, too
// One object per target keeps each compilation short. As in Highway's own foreach_target.h, a pragma turns the
// instruction set on only for the target's namespace. A compiler flag must not do it: an inline function of the
// standard library that is compiled here must run on every machine, because the linker keeps one copy of it for the
// whole program.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// The kernels use only Highway's headers (targets.cc chooses the target), so they link no libhwy: a shared libhwy
// in the user's process could be another version.
#define HWY_COMPILE_ALL_ATTAINABLE
#include "hwy/detect_targets.h"
#undef HWY_TARGET
#define HWY_TARGET TRIBUTARY_HWY_TARGET
#include "hwy/cache_control.h"
#include "hwy/highway.h"

// Adds the instructions that Highway's target lacks, in a form that both compilers understand.
#if TRIBUTARY_BF16_INSTRUCTIONS
#undef HWY_TARGET_STR
#if TRIBUTARY_FP16_INSTRUCTIONS
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16,avx512fp16"
#else
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16"
#endif
#endif

// The ways to widen float16, by the instructions that the target has:
//   halves     the lower half of a vector and the upper half (x86 F16C, AVX-512, NEON)
//   even_odd   the even lanes and the odd lanes, by instructions that look at 32-bit containers (SVE)
//   arithmetic the even lanes and the odd lanes, by integer and float32 arithmetic (SSE4)
#define TRIBUTARY_F16_HALVES 1
#define TRIBUTARY_F16_EVEN_ODD 2
#define TRIBUTARY_F16_ARITHMETIC 3
#if HWY_TARGET == HWY_SSE4
#define TRIBUTARY_F16 TRIBUTARY_F16_ARITHMETIC
#elif HWY_HAVE_SCALABLE
#define TRIBUTARY_F16 TRIBUTARY_F16_EVEN_ODD
#else
#define TRIBUTARY_F16 TRIBUTARY_F16_HALVES
#endif
