#include "tributary/protocol/assert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace tributary {
namespace {

/// A line of bounded length, made without allocation. Text that is too long is cut off.
class Line {
 public:
  void add(std::string_view text) noexcept {
    const std::size_t bytes = std::min(text.size(), kBytesMax - used_);
    std::memcpy(bytes_.data() + used_, text.data(), bytes);
    used_ += bytes;
  }
  template <class Number>
  void add_number(Number number, auto... format) noexcept {
    std::array<char, 64> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, format...);
    if (end.ec == std::errc{}) add({digits.data(), end.ptr});
  }
  void add(const AssertionValue& value) noexcept {
    switch (value.kind()) {
      case AssertionValue::Kind::boolean:
        return add(value.as_unsigned() != 0 ? "true" : "false");
      case AssertionValue::Kind::signed_integer:
        return add_number(value.as_signed());
      case AssertionValue::Kind::unsigned_integer:
        return add_number(value.as_unsigned());
      case AssertionValue::Kind::real:
        return add_number(value.as_real());
      case AssertionValue::Kind::text:
        return add(value.as_text());
      case AssertionValue::Kind::address:
        add("0x");
        return add_number(reinterpret_cast<std::uintptr_t>(value.as_address()), 16);
    }
  }
  /// Adds the text, with a value in place of each "{}".
  void add(std::string_view text, std::span<const AssertionValue> values) noexcept {
    for (const AssertionValue& value : values) {
      const std::size_t braces = text.find("{}");
      if (braces == std::string_view::npos) break;
      add(text.substr(0, braces));
      add(value);
      text.remove_prefix(braces + 2);
    }
    add(text);
  }
  /// Ends the line, and returns it.
  [[nodiscard]] std::string_view end() noexcept {
    bytes_[used_] = '\n';
    return {bytes_.data(), used_ + 1};
  }

 private:
  static constexpr std::size_t kBytesMax = 1023;
  std::array<char, kBytesMax + 1> bytes_;
  std::size_t used_ = 0;
};

}  // namespace

void fail_assertion(const AssertionPlace& place, const char* text, std::span<const AssertionValue> values) noexcept {
  Line line;
  line.add("tributary: a defect of this program at ");
  line.add(place.file);
  line.add(":");
  line.add_number(place.line);
  line.add(": ");
  line.add(text, values);
  line.add(" (must hold: ");
  line.add(place.condition);
  line.add(")");
  const std::string_view whole = line.end();
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace tributary
