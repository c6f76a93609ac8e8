#include "service-kit/mistake.h"

#include "service-kit/nearest_name.h"

namespace tributary::service {
namespace {

constexpr std::size_t kValueBytesMax = 200;

/// Returns the value in the form in which a line shows it.
std::string shown(std::string value) {
  for (char& c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  if (value.size() > kValueBytesMax) value = value.substr(0, kValueBytesMax) + "...";
  return value;
}

std::string joined(std::span<const std::string_view> names) {
  std::string all;
  for (const std::string_view name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

}  // namespace

std::string to_string(const Mistake& mistake) {
  std::string text = mistake.where;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ": ") + part; };
  if (!mistake.key.empty()) add(mistake.key);
  if (mistake.value) add("'" + shown(*mistake.value) + "'");
  add(mistake.why);
  return text + (mistake.allowed.empty() ? "" : " (allowed: " + mistake.allowed + ")");
}

std::unexpected<Error> refuse(const Mistake& mistake) {
  return fail(Errc::bad_config, to_string(mistake));
}

Mistake unknown_key(std::string where, std::string_view key, std::string_view kind,
                    std::span<const std::string_view> names) {
  const auto meant = nearest_name(key, names, letters_misspelt_max(key.size()));
  return {.where = std::move(where),
          .key = shown(std::string(key)),
          .why = "there is no such " + std::string(kind) + (meant ? "; is '" + std::string(*meant) + "' meant?" : ""),
          .allowed = joined(names)};
}

Mistake unreadable(std::string key, const std::string& path, const std::string& reason) {
  return {.key = std::move(key),
          .value = path,
          .why = "it cannot be read: " + reason,
          .allowed = "the path of a file that this user can read"};
}

Status Mistakes::status() const {
  if (lines_.empty()) return {};
  return fail(Errc::bad_config, lines_);
}

}  // namespace tributary::service
