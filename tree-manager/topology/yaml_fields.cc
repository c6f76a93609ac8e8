#include "tree-manager/topology/yaml_fields.h"

#include <algorithm>
#include <set>

#include "service-kit/settings_file.h"
#include "service-kit/units.h"
#include "service-kit/yaml_text.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kTextBytesMax = std::size_t{256} << 20;  // large, because a topology names every host and link

}  // namespace

void YamlErrors::add(const YAML::Node& at, service::Mistake mistake) {
  if (first_) return;
  mistake.where = service::place_of(file_, at.Mark());
  first_ = Error{Errc::bad_config, service::to_string(mistake)};
}

Status YamlErrors::status() const {
  if (first_) return std::unexpected(*first_);
  return {};
}

Result<std::string> read_text_file(const std::string& path, std::string_view what) {
  auto text = service::read_file(path, kTextBytesMax);
  if (!text) return service::refuse(service::unreadable(std::string(what), path, text.error().message));
  return text;
}

YamlMap::YamlMap(const YAML::Node& node, std::string path, YamlErrors& errors)
    : node_(node), path_(std::move(path)), errors_(errors) {
  if (!node_.IsMap()) {
    errors_.add(node_, {.key = path_, .why = "it has another form", .allowed = "a mapping, lines 'key: value'"});
    node_ = YAML::Node(YAML::NodeType::Map);
  }
}

YAML::Node YamlMap::take(std::string_view key) {
  known_.emplace_back(key);
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node YamlMap::require(std::string_view key, std::string_view what) {
  YAML::Node node = take(key);
  if (!node.IsDefined())
    errors_.add(node_, {.key = path_of(key), .why = "the key is missing", .allowed = std::string(what)});
  return node;
}

std::string YamlMap::text(std::string_view key, std::string_view what) {
  const YAML::Node node = require(key, what);
  if (!node.IsDefined()) return {};
  return scalar(node, path_of(key), errors_).value_or(std::string{});
}

void YamlMap::finish() {
  std::set<std::string> seen;
  const std::vector<std::string_view> names(known_.begin(), known_.end());
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "(not a plain key)";
    if (!seen.insert(key).second) errors_.add(entry.first, path_of(key), "this key stands here twice");
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    service::Mistake mistake = service::unknown_key({}, key, "key", names);
    mistake.key = path_of(mistake.key);
    errors_.add(entry.first, std::move(mistake));
  }
}

std::string YamlMap::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void YamlMap::complain(std::string_view key, const std::string& why) {
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return errors_.add(entry.second, path_of(key), why);
  }
  errors_.add(node_, path_of(key), why);
}

std::optional<std::string> scalar(const YAML::Node& node, const std::string& path, YamlErrors& errors) {
  if (node.IsScalar()) return node.Scalar();
  errors.add(node, path, "a single value is needed");
  return std::nullopt;
}

Result<std::uint64_t> parse_whole_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
  TRIBUTARY_ASSERT(low <= high, "a number must lie between {} and {}", low, high);
  const auto value = service::parse_number<std::uint64_t>(text);
  if (!value || *value < low || *value > high) {
    return fail(Errc::bad_config, "it is no whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *value;
}

}  // namespace tributary::manager
