#pragma once
// TRIBUTARY_ASSERT checks an invariant of this program, in release builds, too.
//
//   TRIBUTARY_ASSERT(told_ <= written_, "{} frames were told of, and {} were written", told_, written_);
//
// If the condition does not hold, this program has a defect; the input is never the cause. The process writes one line
// to its standard error, with the values, and aborts: a wrong sum would be worse. Check bytes from outside by `if`, and
// return an Error for them (error.h).
//
// The check costs a comparison and a branch that is not taken: all other code is out of line, and converts the values
// only after the check has failed. Each "{}" of the text stands for one value: a number, a bool, an enumerator (its
// number), a text, an address or a std::chrono duration (its count). The compiler checks that there are as many values
// as "{}".
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace tributary {

/// A value of an assertion's message. Texts must live until the line is written.
class AssertionValue {
 public:
  enum class Kind : std::uint8_t { boolean, signed_integer, unsigned_integer, real, text, address };

  explicit constexpr AssertionValue(bool value) noexcept : kind_(Kind::boolean), unsigned_(value ? 1 : 0) {}
  template <std::signed_integral T>
  explicit constexpr AssertionValue(T value) noexcept : kind_(Kind::signed_integer), signed_(value) {}
  template <std::unsigned_integral T>
  explicit constexpr AssertionValue(T value) noexcept : kind_(Kind::unsigned_integer), unsigned_(value) {}
  template <std::floating_point T>
  explicit constexpr AssertionValue(T value) noexcept : kind_(Kind::real), real_(static_cast<double>(value)) {}
  template <class T>
    requires std::is_enum_v<T>
  explicit constexpr AssertionValue(T value) noexcept
      : AssertionValue(static_cast<std::int64_t>(static_cast<std::underlying_type_t<T>>(value))) {}
  template <class T>
    requires requires(const T& value) {
      typename T::period;
      { value.count() };
    }
  explicit constexpr AssertionValue(const T& value) noexcept : AssertionValue(value.count()) {}
  explicit constexpr AssertionValue(std::string_view value) noexcept : kind_(Kind::text), text_(value) {}
  explicit constexpr AssertionValue(const char* value) noexcept : AssertionValue(std::string_view(value)) {}
  template <class T>
    requires(!std::same_as<std::remove_cv_t<T>, char>)
  explicit constexpr AssertionValue(T* value) noexcept : kind_(Kind::address), address_(value) {}

  [[nodiscard]] constexpr Kind kind() const noexcept { return kind_; }
  [[nodiscard]] constexpr std::int64_t as_signed() const noexcept { return signed_; }
  [[nodiscard]] constexpr std::uint64_t as_unsigned() const noexcept { return unsigned_; }
  [[nodiscard]] constexpr double as_real() const noexcept { return real_; }
  [[nodiscard]] constexpr std::string_view as_text() const noexcept { return text_; }
  [[nodiscard]] constexpr const void* as_address() const noexcept { return address_; }

 private:
  Kind kind_;
  union {
    std::int64_t signed_;
    std::uint64_t unsigned_;
    double real_;
    std::string_view text_;
    const void* address_;
  };
};

/// The place of an assertion, and its condition.
struct AssertionPlace {
  const char* file;  // name of the file, without folders
  int line;
  const char* condition;
};

/// A text with one "{}" for each value. A text with more or fewer of them does not compile.
template <std::size_t Values>
class AssertionText {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a literal converts to an AssertionText
  consteval AssertionText(const char* text) : text_(text) {
    std::size_t places = 0;
    for (const char* at = text; *at != '\0'; ++at) places += at[0] == '{' && at[1] == '}' ? 1 : 0;
    if (places != Values) the_text_has_another_number_of_braces_than_there_are_values();
  }
  [[nodiscard]] constexpr const char* get() const noexcept { return text_; }

 private:
  static void the_text_has_another_number_of_braces_than_there_are_values() {}
  const char* text_;
};

/// Writes the line to standard error in one call, and aborts. Allocates no memory.
[[noreturn, gnu::cold, gnu::noinline]] void fail_assertion(const AssertionPlace& place, const char* text,
                                                           std::span<const AssertionValue> values) noexcept;

template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void fail_assertion_with(const AssertionPlace& place,
                                                                AssertionText<sizeof...(Values)> text,
                                                                const Values&... values) noexcept {
  if constexpr (sizeof...(Values) == 0) {
    fail_assertion(place, text.get(), {});
  } else {
    const AssertionValue list[] = {AssertionValue(values)...};
    fail_assertion(place, text.get(), list);
  }
}

}  // namespace tributary

#define TRIBUTARY_ASSERT(condition, text, ...)                                                                  \
  do {                                                                                                          \
    if (!(condition)) [[unlikely]] {                                                                            \
      ::tributary::fail_assertion_with({__FILE_NAME__, __LINE__, #condition}, text __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                           \
  } while (false)
