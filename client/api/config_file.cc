#include "client/api/config_file.h"

#include <vector>

#include "service-kit/settings_file.h"

namespace tributary::client {

Status apply_file(ClientSettings& settings, const std::string& file, service::Written& written) {
  const auto text = service::read_file(file, service::kSettingsFileBytesMax);
  if (!text) return service::refuse(service::unreadable("TRIBUTARY_CONFIG", file, text.error().message));
  const std::span<const SettingHelp> help = setting_help();
  std::vector<service::SettingKey> keys;
  for (const SettingHelp& one : help) keys.push_back({.name = one.key, .allowed = one.allowed, .list = true});
  service::Mistakes mistakes;
  const auto set_one = [&](std::size_t key, const std::string& value, const std::string& where) -> Status {
    const std::string name(help[key].key);
    if (name == "packet_security" && written.contains("security")) {
      ClientSettings checked_only;  // the file may say so later than security, which overrides it
      return set(checked_only, name, value);
    }
    written.insert_or_assign(name, service::Mistake{.where = where, .key = name, .value = value, .why = {}});
    return set(settings, name, value);
  };
  service::read_settings_file(*text, file, keys, set_one, mistakes);
  return mistakes.status();
}

}  // namespace tributary::client
