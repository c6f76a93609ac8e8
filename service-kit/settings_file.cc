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
    if (!root.IsMap()) return complain(root, "the file is a list of 'key: value' lines, this is something else");
    for (const auto& entry : root) read_entry(entry.first, entry.second);
  }

 private:
  void read_entry(const YAML::Node& name, const YAML::Node& value) {
    if (!name.IsScalar()) return complain(name, "a key is a plain word");
    const auto key = std::ranges::find(keys_, std::string_view(name.Scalar()), &SettingKey::name);
    if (key == keys_.end()) return complain(name, "'" + name.Scalar() + "' is no setting; there are " + all_names());
    if (!seen_.insert(name.Scalar()).second) return complain(name, "'" + name.Scalar() + "' is set twice");
    const auto text = text_of(*key, name, value);
    if (!text) return;
    const std::string where = place_of(file_, value.Mark()) + ": " + name.Scalar();
    if (auto ok = set_(static_cast<std::size_t>(key - keys_.begin()), *text, where); !ok)
      mistakes_.add(ok.error().message);
  }
  std::optional<std::string> text_of(const SettingKey& key, const YAML::Node& name, const YAML::Node& value) {
    if (value.IsScalar()) return value.Scalar();
    const std::string allowed = " (allowed: " + std::string(key.allowed) + ")";
    if (!key.list || !value.IsSequence()) {
      complain(value.IsNull() ? name : value, name.Scalar() + ": a single value is needed" + allowed);
      return std::nullopt;
    }
    std::string joined;
    for (const YAML::Node& entry : value) {
      if (!entry.IsScalar()) {
        complain(entry, name.Scalar() + ": an entry of the list is no single value" + allowed);
        return std::nullopt;
      }
      joined += (joined.empty() ? "" : ",") + entry.Scalar();
    }
    return joined;
  }
  [[nodiscard]] std::string all_names() const {
    std::string names;
    for (const SettingKey& key : keys_) names += (names.empty() ? "" : ", ") + std::string(key.name);
    return names;
  }
  void complain(const YAML::Node& at, const std::string& what) {
    mistakes_.add(place_of(file_, at.Mark()) + ": " + what);
  }

  const std::string& file_;
  const std::span<const SettingKey> keys_;
  const SetValue& set_;
  Mistakes& mistakes_;
  std::set<std::string> seen_;
};

}  // namespace

Status Mistakes::status() const {
  if (lines_.empty()) return {};
  return fail(Errc::bad_config, lines_);
}

void read_settings_file(const std::string& yaml, const std::string& file, std::span<const SettingKey> keys,
                        const SetValue& set, Mistakes& mistakes) {
  const auto root = parse_yaml(yaml, file);
  if (!root) return mistakes.add(root.error().message);
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
