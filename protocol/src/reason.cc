#include "tributary/protocol/reason.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < std::size(kReasons); ++i) {
    if (static_cast<std::size_t>(kReasons[i].reason) != i + 1) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "kReasons has a row for each Reason, in the order of the enumeration");

constexpr std::size_t kCodeBytesMax = 32;

/// Returns whether the text consists of lower-case letters and hyphens, at most kCodeBytesMax.
bool is_code(std::string_view text) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
  return !text.empty() && text.size() <= kCodeBytesMax && std::ranges::all_of(text, fits);
}

/// Returns the text in brackets at the end, if it has the form of a code; else an empty text.
std::string_view code_at_end(std::string_view text) {
  if (!text.ends_with(']')) return {};
  const std::size_t begin = text.rfind(" [");
  if (begin == std::string_view::npos) return {};
  const std::string_view code = text.substr(begin + 2, text.size() - begin - 3);
  return is_code(code) ? code : std::string_view();
}

/// Returns the bytes of a code with its brackets and the blank before them.
std::size_t bytes_with_brackets(std::string_view code) {
  return code.size() + 3;
}

}  // namespace

std::string_view to_string(ReasonKind kind) noexcept {
  switch (kind) {
    case ReasonKind::denial:
      return "denial";
    case ReasonKind::fallback:
      return "fallback";
    case ReasonKind::choice:
      return "choice";
    case ReasonKind::move:
      return "move";
  }
  return "unknown";
}

Reason reason_of(std::string_view code) noexcept {
  const auto* const row = std::ranges::find(kReasons, code, &ReasonRow::code);
  return row == std::end(kReasons) ? Reason::none : row->reason;
}

std::string coded(Reason reason, std::string sentence) {
  return coded(code_of(reason), std::move(sentence));
}

std::string coded(std::string_view code, std::string sentence) {
  if (sentence.empty() || !is_code(code) || !code_at_end(sentence).empty()) return sentence;
  sentence.reserve(sentence.size() + bytes_with_brackets(code));
  return sentence.append(" [").append(code).append("]");
}

CodedText split_code(std::string_view text) noexcept {
  const std::string_view code = code_at_end(text);
  const Reason reason = reason_of(code);
  if (reason == Reason::none) return {.sentence = text};
  return {.reason = reason, .sentence = text.substr(0, text.size() - bytes_with_brackets(code))};
}

std::string cut_before_code(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  const std::string_view code = code_at_end(text);
  if (code.empty() || bytes_with_brackets(code) > bytes) return std::string(text.substr(0, bytes));
  const std::string_view end = text.substr(text.size() - bytes_with_brackets(code));
  return std::string(text.substr(0, bytes - end.size())).append(end);
}

}  // namespace tributary
