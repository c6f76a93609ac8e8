#include "tributary/transport/system_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace tributary::transport {

namespace fs = std::filesystem;

std::optional<std::string> SystemTree::read(const std::string& path) const {
  std::ifstream in(root_ + path);
  if (!in) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;  // an iterator over the stream's buffer would throw where read() only sets a flag
  while (in) {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad())
    return std::nullopt;  // sysfs reports so a value that a driver does not know, as the rate of a dead link
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::int64_t> SystemTree::number(const std::string& path) const {
  const auto text = read(path);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

bool SystemTree::exists(const std::string& path) const {
  std::error_code ignored;
  return fs::exists(root_ + path, ignored);
}

std::vector<std::string> SystemTree::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root_ + path, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename());
  std::ranges::sort(names);
  return names;
}

std::string SystemTree::resolved(const std::string& path) const {
  std::error_code error;
  std::string whole = fs::canonical(root_ + path, error);
  if (error) return {};
  if (root_.empty()) return whole;
  const std::string root = fs::canonical(root_, error);
  return whole.starts_with(root) ? whole.substr(root.size()) : whole;
}

}  // namespace tributary::transport
