#include "client/api/config_file.h"

#include <vector>

#include "service-kit/settings_file.h"

namespace tributary::client {

Status apply_file(ClientSettings& settings, const std::string& file) {
  const auto text = service::read_file(file, service::kSettingsFileBytesMax);
  if (!text) {
    return fail(Errc::bad_config, file + ": the configuration file that TRIBUTARY_CONFIG names cannot be read (" +
                                      text.error().message + "); correct the path or unset the variable");
  }
  const std::span<const SettingHelp> help = setting_help();
  std::vector<service::SettingKey> keys;
  for (const SettingHelp& one : help) keys.push_back({.name = one.key, .allowed = one.allowed, .list = true});
  service::Mistakes mistakes;
  const auto set_one = [&](std::size_t key, const std::string& value, const std::string& where) {
    return set(settings, help[key].key, value, where);
  };
  service::read_settings_file(*text, file, keys, set_one, mistakes);
  return mistakes.status();
}

}  // namespace tributary::client
