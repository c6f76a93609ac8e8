#include "client/api/config_file.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

namespace tributary::client {
namespace {

constexpr std::size_t kFileBytesMax = 1U << 20;

std::string at(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? file : file + ":" + std::to_string(mark.line + 1);
}

std::string keys() {
  std::string all;
  for (const SettingHelp& help : setting_help()) all += (all.empty() ? "" : ", ") + std::string(help.key);
  return all;
}

Result<std::string> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kFileBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || (!in && !in.eof())) {
    return fail(Errc::bad_config, file + ": the configuration file that TRIBUTARY_CONFIG names cannot be read (" +
                                      std::strerror(errno) + "); correct the path or unset the variable");
  }
  if (text.size() > kFileBytesMax)
    return fail(Errc::bad_config, file + ": the file is longer than 1 MiB, so it is no configuration file");
  return text;
}

/// A list in the file means the same as the environment's list with commas.
Result<std::string> scalar(const YAML::Node& node, const std::string& where) {
  if (node.IsScalar()) return node.Scalar();
  if (!node.IsSequence()) return fail(Errc::bad_config, where + ": this must be a single value");
  std::string list;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) return fail(Errc::bad_config, where + ": this must be a list of single values");
    list += (list.empty() ? "" : ",") + item.Scalar();
  }
  return list;
}

Status apply(ClientSettings& settings, const YAML::Node& root, const std::string& file) {
  if (root.IsNull()) return {};  // an empty file, or comments alone
  if (!root.IsMap())
    return fail(Errc::bad_config, at(file, root.Mark()) + ": the file must consist of lines 'key: value'");
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const std::string line = at(file, entry.first.Mark());
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const auto& help = setting_help();
    if (std::none_of(help.begin(), help.end(), [&](const SettingHelp& h) { return h.key == key; })) {
      return fail(Errc::bad_config, line + ": unknown key '" + key + "'; the keys are " + keys());
    }
    if (!seen.insert(key).second) return fail(Errc::bad_config, line + ": '" + key + "' is set twice");
    const std::string where = line + ": " + key;
    const auto value = scalar(entry.second, where);
    if (!value) return std::unexpected(value.error());
    if (auto ok = set(settings, key, *value, where); !ok) return ok;
  }
  return {};
}

}  // namespace

Status apply_file(ClientSettings& settings, const std::string& file) {
  const auto text = read(file);
  if (!text) return std::unexpected(text.error());
  try {
    return apply(settings, YAML::Load(*text), file);
  } catch (const YAML::Exception& e) {
    return fail(Errc::bad_config, at(file, e.mark) + ": this is no valid YAML: " + e.msg);
  }
}

}  // namespace tributary::client
