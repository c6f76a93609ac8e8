#pragma once
// The sizes of forms, the members of a tree that send them, and the lengths of buffers for them. Exact sums of some of
// the ranks travel in forms from one aggregator to the next, and between hosts. docs/protocol.md draws them, and
// kernels/partial_sum.h makes them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tributary/protocol/types.h"

namespace tributary {

inline constexpr std::size_t kFormBlockElements = 256;
inline constexpr std::size_t kFormHeadBytes = 8;       // the numbers of elements (4 bytes) and of ranks (4 bytes)
inline constexpr std::size_t kFormBlockHeadBytes = 4;  // the exponent (2 bytes), and the width (2 bytes)

/// The numbers that a form may hold: multiples of 2^least of `width_max` bytes. Sums of 2^27 ranks fit.
struct FormRange {
  int least = 0;
  unsigned width_max = 0;
  /// Returns the exponent that no bit of a number may reach.
  [[nodiscard]] constexpr int end() const noexcept { return least + 8 * static_cast<int>(width_max); }
};

/// Returns the range of a float type; of any other type an empty one.
[[nodiscard]] constexpr FormRange form_range_of(DType dtype) noexcept {
  // All values of a type are multiples of 2^least and less than 2^end. A sum needs 27 bits more, and its sign one.
  const auto range = [](int least, int end) -> FormRange {
    return {.least = least, .width_max = static_cast<unsigned>(end - least + 28 + 7) / 8};
  };
  switch (dtype) {
    case DType::float16:
      return range(-24, 16);
    case DType::bfloat16:
      return range(-133, 128);
    case DType::float32:
      return range(-149, 128);
    case DType::float64:
      return range(-1074, 1024);
    case DType::float8_e4m3:
      return range(-9, 9);
    case DType::float8_e5m2:
      return range(-16, 16);
    default:
      return {};
  }
}

/// Returns the largest size of a form of `count` elements.
[[nodiscard]] constexpr std::size_t form_bytes_max(DType dtype, std::size_t count) noexcept {
  const std::size_t blocks = (count + kFormBlockElements - 1) / kFormBlockElements;
  return kFormHeadBytes + blocks * kFormBlockHeadBytes + count * (1 + form_range_of(dtype).width_max);
}

/// Returns the largest number of elements whose form has at most `bytes` bytes, whatever their values are; may be 0.
[[nodiscard]] constexpr std::size_t form_elements_max(DType dtype, std::size_t bytes) noexcept {
  if (bytes <= kFormHeadBytes) return 0;
  const std::size_t element = 1 + form_range_of(dtype).width_max;
  const std::size_t block = kFormBlockHeadBytes + kFormBlockElements * element;
  const std::size_t whole = (bytes - kFormHeadBytes) / block;
  const std::size_t left = (bytes - kFormHeadBytes) % block;
  const std::size_t more = left <= kFormBlockHeadBytes ? 0 : (left - kFormBlockHeadBytes) / element;
  return whole * kFormBlockElements + more;
}

/// The processes of a group's trees that send forms.
enum class FormSenders : std::uint8_t {
  nobody,
  aggregators,  // aggregators below another one
  members,      // these and the group's members, because each is the leader of its host
};
inline constexpr std::array<std::string_view, 3> kFormSenderNames{"nobody", "aggregators", "members"};
[[nodiscard]] constexpr std::string_view to_string(FormSenders senders) noexcept {
  return kFormSenderNames[static_cast<std::size_t>(senders)];
}
[[nodiscard]] constexpr std::optional<FormSenders> form_senders_from_string(std::string_view name) noexcept {
  const auto found = std::ranges::find(kFormSenderNames, name);
  if (found == kFormSenderNames.end()) return std::nullopt;
  return static_cast<FormSenders>(found - kFormSenderNames.begin());
}

/// A buffer must hold the longest form of a segment, so the values of a segment of an exact sum have a tenth of a
/// buffer's length (float32), or a nineteenth (bfloat16). Where forms travel, buffers are therefore this many times as
/// long as those of other groups on the same links: then as many values are in flight.
inline constexpr std::uint32_t kFormRoom = 20;
inline constexpr std::uint32_t kFormBufferBytesMax = 640U << 10;
/// Segments whose values have as many bytes are long enough on every link.
inline constexpr std::uint32_t kFormValuesMin = 16U << 10;
/// Returns the most elements of a segment whose sums travel in forms, in buffers of this length. Types with short forms
/// get no longer segments than other groups have: more bytes in flight would wait in queues.
[[nodiscard]] constexpr std::size_t form_segment_elements(DType dtype, std::uint32_t buffer_bytes) noexcept {
  const std::size_t values = std::max(buffer_bytes / kFormRoom, kFormValuesMin);
  return std::min(form_elements_max(dtype, buffer_bytes), values / size_of(dtype));
}
/// Returns the buffer's length for forms, where other buffers have `segment_bytes`.
[[nodiscard]] constexpr std::uint32_t form_buffer_bytes(std::uint32_t segment_bytes) noexcept {
  return std::max(segment_bytes, std::min(kFormRoom * segment_bytes, kFormBufferBytesMax));
}

}  // namespace tributary
