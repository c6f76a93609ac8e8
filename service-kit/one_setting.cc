#include "service-kit/one_setting.h"

#include <array>
#include <cstdlib>

#include "service-kit/settings_file.h"

namespace tributary::service {
namespace {

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::string one_setting(const char* variable, const char* file_variable, std::string_view key) {
  if (std::string value = value_of(variable); !value.empty()) return value;
  const std::string file = value_of(file_variable);
  const auto text = file.empty() ? Result<std::string>() : read_file(file, kSettingsFileBytesMax);
  std::string found;
  if (!text || text->empty()) return found;
  const std::array keys{SettingKey{.name = key, .allowed = {}, .list = true}};
  const auto take = [&found](std::size_t, const std::string& value, const std::string&) -> Status {
    found = value;
    return {};
  };
  Mistakes ignored;  // every other key counts as one
  read_settings_file(*text, file, keys, take, ignored);
  return found;
}

}  // namespace tributary::service
