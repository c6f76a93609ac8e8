#include "service-kit/settings_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "service-kit/descriptor_handle.h"
#include "service-kit/yaml_text.h"

namespace tributary::service {
namespace {

class Reader {
 public:
  Reader(const std::string& file, std::span<const SettingKey> keys, const SetValue& set, Mistakes& mistakes)
      : file_(file), keys_(keys), set_(set), mistakes_(mistakes) {}

  void read(const YAML::Node& root) {
    if (root.IsNull()) return;  // the file is empty, or has only comments
    if (!root.IsMap()) return complain(root, {.why = "it has another form", .allowed = "lines 'key: value'"});
    for (const auto& entry : root) read_entry(entry.first, entry.second);
  }

 private:
  void read_entry(const YAML::Node& name, const YAML::Node& value) {
    if (!name.IsScalar()) return complain(name, {.why = "a key is a plain word", .allowed = "lines 'key: value'"});
    const std::string& key = name.Scalar();
    const auto found = std::ranges::find(keys_, std::string_view(key), &SettingKey::name);
    if (found == keys_.end()) return mistakes_.add(unknown_key(place_of(name), key, "setting", names()));
    if (!seen_.insert(key).second) return complain(name, {.key = key, .why = "it is set twice", .allowed = "once"});
    const std::string allowed(found->allowed);
    const auto text = text_of(*found, name, value);
    if (!text) return;
    const auto ok = set_(static_cast<std::size_t>(found - keys_.begin()), *text, place_of(value));
    if (!ok) complain(value, {.key = key, .value = text, .why = ok.error().message, .allowed = allowed});
  }
  std::optional<std::string> text_of(const SettingKey& key, const YAML::Node& name, const YAML::Node& value) {
    if (value.IsScalar()) return value.Scalar();
    const auto refuse_at = [&](const YAML::Node& at, const char* why) {
      complain(at, {.key = name.Scalar(), .why = why, .allowed = std::string(key.allowed)});
      return std::nullopt;
    };
    if (!key.list || !value.IsSequence()) return refuse_at(value.IsNull() ? name : value, "a single value is needed");
    std::string joined;
    for (const YAML::Node& entry : value) {
      if (!entry.IsScalar()) return refuse_at(entry, "an entry of the list is no single value");
      joined += (joined.empty() ? "" : ",") + entry.Scalar();
    }
    return joined;
  }
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for (const SettingKey& key : keys_) all.push_back(key.name);
    return all;
  }
  [[nodiscard]] std::string place_of(const YAML::Node& node) const { return service::place_of(file_, node.Mark()); }
  void complain(const YAML::Node& at, Mistake mistake) {
    mistake.where = place_of(at);
    mistakes_.add(mistake);
  }

  const std::string& file_;
  const std::span<const SettingKey> keys_;
  const SetValue& set_;
  Mistakes& mistakes_;
  std::set<std::string> seen_;
};

}  // namespace

void read_settings_file(const std::string& yaml, const std::string& file, std::span<const SettingKey> keys,
                        const SetValue& set, Mistakes& mistakes) {
  const auto root = parse_yaml(yaml, file);
  if (!root) return mistakes.add_line(root.error().message);
  Reader(file, keys, set, mistakes).read(*root);
}

std::vector<std::string_view> list_entries(std::string_view list) {
  std::vector<std::string_view> entries;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    std::string_view entry = list.substr(from, comma - from);
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    entry.remove_suffix(entry.size() - std::min(entry.find_last_not_of(' ') + 1, entry.size()));
    entries.push_back(entry);
    from = comma + 1;
  }
  return entries;
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const auto system_error = [] { return fail(Errc::io, std::strerror(errno)); };
  const DescriptorHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error();
  std::string text;
  std::string piece(4096, '\0');
  while (text.size() <= bytes_max) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error();
    if (got == 0) return text;
    text.append(piece, 0, static_cast<std::size_t>(got));
  }
  return fail(Errc::io, "it is longer than " + std::to_string(bytes_max) + " bytes");
}

}  // namespace tributary::service
