#include "aggregator/daemon/settings.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <thread>

#include "aggregator/daemon/files.h"

namespace tributary::aggregator {
namespace {

constexpr std::size_t kConfigurationBytesMax = 1U << 20;

const Field* field_of(std::string_view key) {
  for (const Field& field : fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::string keys_text() {
  std::string keys;
  for (const Field& field : fields()) keys += (keys.empty() ? "" : ", ") + std::string(field.key);
  return keys;
}

/// Collects every mistake, so that a configuration is put right in one go.
class Reader {
 public:
  Reader(Settings& settings, std::string_view file) : settings_(settings), file_(file) {}

  void read(const YAML::Node& document) {
    if (document.IsNull()) return;  // an empty file: all defaults
    if (!document.IsMap())
      return complain(document, "the file is a list of 'key: value' lines, this is something else");
    std::set<std::string> seen;
    for (const auto& entry : document) read_entry(entry.first, entry.second, seen);
  }
  void set(const std::string& where, const Field& field, const std::string& value) {
    if (auto ok = field.read(settings_, value); !ok) {
      mistakes_ += where + ": " + std::string(field.key) + ": '" + value + "': " + ok.error().message +
                   " (allowed: " + field.allowed + ")\n";
    }
  }
  /// Settings that are good each by itself.
  void check_together() {
    if (!mistakes_.empty()) return;
    const std::size_t places = settings_.listen.size();
    if (places > 1 && settings_.transport != "tcp" && settings_.transport != "verbs") {
      mistakes_ +=
          file_ + ": listen: it has " + std::to_string(places) + " addresses, and with transport " +
          settings_.transport + " there is one" +
          (settings_.transport == "dpdk" ? " device: what it is called there is dpdk_addresses"
                                         : " port for each worker: use 0.0.0.0, or one aggregator for each address") +
          "\n";
    }
    if (const std::size_t named = settings_.advertise.size(); named != 0 && named != places) {
      mistakes_ += file_ + ": advertise: it names " + std::to_string(named) + " hosts, and listen has " +
                   std::to_string(places) + ": give one for each, in the same order\n";
    }
  }
  [[nodiscard]] std::string mistakes() && {
    if (!mistakes_.empty()) mistakes_.pop_back();
    return std::move(mistakes_);
  }

 private:
  void read_entry(const YAML::Node& key, const YAML::Node& value, std::set<std::string>& seen) {
    if (!key.IsScalar()) return complain(key, "a key is a plain word");
    const std::string& name = key.Scalar();
    const Field* field = field_of(name);
    if (field == nullptr) return complain(key, "'" + name + "' is no setting; there are " + keys_text());
    if (!seen.insert(name).second) return complain(key, "'" + name + "' is set twice");
    if (field->list && value.IsSequence()) return read_list(*field, value);
    if (!value.IsScalar()) {
      return complain(value.IsNull() ? key : value,
                      name + ": a single value is needed (allowed: " + field->allowed + ")");
    }
    set(where(value), *field, value.Scalar());
  }
  void read_list(const Field& field, const YAML::Node& values) {
    std::string joined;
    for (const YAML::Node& value : values) {
      if (!value.IsScalar()) {
        return complain(value, std::string(field.key) +
                                   ": an entry of the list is no single value (allowed: " + field.allowed + ")");
      }
      joined += (joined.empty() ? "" : ",") + value.Scalar();
    }
    set(where(values), field, joined);
  }
  [[nodiscard]] std::string where(const YAML::Node& at) const {
    const YAML::Mark mark = at.Mark();
    return mark.is_null() ? file_ : file_ + ":" + std::to_string(mark.line + 1);
  }
  void complain(const YAML::Node& at, const std::string& what) { mistakes_ += where(at) + ": " + what + "\n"; }

  Settings& settings_;
  const std::string file_;
  std::string mistakes_;
};

std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string default_state_file() {
  const char* const directory = std::getenv("STATE_DIRECTORY");  // systemd gives one path, or several with colons
  if (directory == nullptr || *directory == '\0') return {};
  const std::string_view list(directory);
  return std::string(list.substr(0, list.find(':'))) + "/manager-key";
}

std::string quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of("'#{}[],&*!|>%@`\"\\ ") == std::string::npos;
  if (plain) return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("''") : std::string(1, c);
  return text + "'";
}

}  // namespace

Result<Settings> read_settings(std::string_view yaml, std::string_view file, const std::vector<Override>& overrides) {
  Settings settings;
  Reader reader(settings, file);
  try {
    reader.read(YAML::Load(std::string(yaml)));
  } catch (const YAML::Exception& error) {
    const std::string line = error.mark.is_null() ? "" : ":" + std::to_string(error.mark.line + 1);
    return fail(Errc::bad_config, std::string(file) + line + ": this is no YAML: " + error.msg);
  }
  for (const Override& flag : overrides) {
    if (const Field* field = field_of(flag.key)) reader.set(flag.what, *field, flag.value);
  }
  reader.check_together();
  if (auto mistakes = std::move(reader).mistakes(); !mistakes.empty())
    return fail(Errc::bad_config, std::move(mistakes));
  return settings;
}

Result<Settings> load_settings(const std::string& path, const std::vector<Override>& overrides) {
  if (path.empty()) return read_settings("", "(no file)", overrides);
  const auto text = read_file(path, kConfigurationBytesMax);
  if (!text) {
    return fail(Errc::bad_config, "the configuration file " + path + " cannot be read: " + text.error().message +
                                      "; give the right path with --config, or leave it out to use the defaults");
  }
  return read_settings(*text, path, overrides);
}

void resolve_host_defaults(Settings& settings) {
  if (settings.name.empty()) settings.name = own_host_name();
  if (settings.host_id.empty()) settings.host_id = own_host_name();
  if (settings.state_file.empty()) settings.state_file = default_state_file();
  if (settings.workers != 0) return;
  if (settings.transport == "dpdk") {  // each wants a core and a queue for itself: as many as were named
    const auto named = 1 + std::ranges::count(settings.dpdk_cores, ',');
    settings.workers = static_cast<std::uint32_t>(std::clamp<std::ptrdiff_t>(named, 1, 32));
    return;
  }
  settings.workers = std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
}

std::string print_settings(const Settings& settings) {
  const Settings defaults;
  std::string text;
  for (const Field& field : fields()) {
    text += "# " + std::string(field.help) + "\n# Allowed: " + field.allowed +
            ". Default: " + quoted(field.write(defaults)) + "\n";
    text += std::string(field.key) + ": " + quoted(field.write(settings)) + "\n\n";
  }
  text.pop_back();
  return text;
}

}  // namespace tributary::aggregator
