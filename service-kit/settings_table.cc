#include "service-kit/settings_table.h"

namespace tributary::service {

Mistake mistake_in(const Written& written, const std::string& key, std::string why, std::string allowed) {
  const auto found = written.find(key);
  Mistake mistake = found == written.end() ? Mistake{.key = key, .why = {}} : found->second;
  mistake.why = std::move(why);
  mistake.allowed = std::move(allowed);
  return mistake;
}

std::string quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of("'#{}[],&*!|>%@`\"\\ ") == std::string::npos;
  if (plain) return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("''") : std::string(1, c);
  return text + "'";
}

namespace field {

std::string alternatives(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == words.size() ? " or " : ", ");
    text += words[i];
  }
  return text;
}

}  // namespace field
}  // namespace tributary::service
