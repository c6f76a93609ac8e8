#include "tests/unit/manager/openapi_check.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

namespace tributary::manager {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

const std::set<std::string> kKnown{
    "type",       "format",  "description", "properties", "required", "additionalProperties",
    "items",      "$ref",    "enum",        "minimum",    "maximum",  "multipleOf",
    "maxLength",  "pattern", "oneOf",       "anyOf",      "minItems", "maxItems",
    "uniqueItems"};

}  // namespace

std::vector<std::string> OpenApi::operations() const {
  std::vector<std::string> list;
  for (const auto& [path, methods] : document_.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      std::string upper = method;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
      list.push_back(upper + " " + path);
    }
  }
  return list;
}

const json* OpenApi::operation(const std::string& name) const {
  const std::size_t space = name.find(' ');
  std::string method = name.substr(0, space);
  std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) { return std::tolower(c); });
  const json& paths = document_.at("paths");
  const auto path = paths.find(name.substr(space + 1));
  if (path == paths.end() || !path->contains(method)) return nullptr;
  return &path->at(method);
}

std::string OpenApi::check_answer(const std::string& name, unsigned status, const std::string& content_type,
                                  const std::string& body) const {
  const json* op = operation(name);
  if (op == nullptr) return name + " is not in the document";
  const auto answer = op->at("responses").find(std::to_string(status));
  if (answer == op->at("responses").end())
    return name + " answers " + std::to_string(status) + ", which is not in the document: " + body;
  const std::string plain = content_type.substr(0, content_type.find(';'));
  const auto media = answer->at("content").find(plain);
  if (media == answer->at("content").end()) return name + " answers with " + plain;
  if (plain != "application/json") return "";
  const json value = json::parse(body, nullptr, false);
  if (value.is_discarded()) return name + " answers with something that is no JSON";
  return check(value, media->at("schema"), name + " " + std::to_string(status) + ":");
}

std::string OpenApi::check_request(const std::string& name, const json& body) const {
  return check(body, operation(name)->at("requestBody").at("content").at("application/json").at("schema"),
               name + " request:");
}

std::string OpenApi::check(const json& value, const std::string& schema_name) const {
  return check(value, document_.at("components").at("schemas").at(schema_name), schema_name);
}

std::string OpenApi::check(const json& value, const json& schema, const std::string& at) const {
  for (const auto& [keyword, meaning] : schema.items()) {
    if (!kKnown.contains(keyword)) return at + " the test does not know the keyword " + keyword;
  }
  if (const auto ref = schema.find("$ref"); ref != schema.end()) {
    const std::string pointer = ref->get<std::string>().substr(1);
    return check(value, document_.at(json::json_pointer(pointer)), at);
  }
  if (const auto choices = schema.find("oneOf"); choices != schema.end()) {
    int fits = 0;
    std::string wrong;
    for (const json& choice : *choices) {
      const std::string why = check(value, choice, at);
      fits += why.empty() ? 1 : 0;
      wrong += why + "; ";
    }
    return fits == 1 ? "" : at + " fits " + std::to_string(fits) + " of the choices: " + wrong;
  }
  const std::string type = schema.at("type");
  if (!has_type(value, type)) return at + " is no " + type + ": " + value.dump();
  if (schema.contains("anyOf") && !fits_any(value, schema.at("anyOf"))) return at + " fits none of the choices";
  if (type == "object") return check_object(value, schema, at);
  if (type != "array") return check_scalar(value, schema, at);
  if (value.size() < schema.value("minItems", 0U) || value.size() > schema.value("maxItems", SIZE_MAX))
    return at + " has " + std::to_string(value.size()) + " members";
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (std::string why = check(value[i], schema.at("items"), at + "[" + std::to_string(i) + "]"); !why.empty())
      return why;
  }
  return "";
}

/// The choices say more about some members; the object's own schema describes all members.
bool OpenApi::fits_any(const json& value, const json& choices) const {
  return std::ranges::any_of(choices, [&](const json& choice) {
    for (const json& name : choice.value("required", json::array())) {
      if (!value.contains(name)) return false;
    }
    for (const auto& [name, schema] : choice.at("properties").items()) {
      if (value.contains(name) && !check(value.at(name), schema, name).empty()) return false;
    }
    return true;
  });
}

std::string OpenApi::check_object(const json& value, const json& schema, const std::string& at) const {
  if (!schema.contains("properties")) return "";
  const json& properties = schema.at("properties");
  for (const json& name : schema.value("required", json::array())) {
    if (!value.contains(name)) return at + " lacks " + name.get<std::string>();
  }
  for (const auto& [name, member] : value.items()) {
    const auto property = properties.find(name);
    if (property == properties.end()) return at + " has the undescribed member " + name;
    if (std::string why = check(member, *property, at + "." + name); !why.empty()) return why;
  }
  return "";
}

std::string OpenApi::check_scalar(const json& value, const json& schema, const std::string& at) const {
  if (schema.contains("enum")) {
    const json& choices = schema.at("enum");
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) return at + " is " + value.dump();
  }
  if (schema.contains("minimum") && value < schema.at("minimum")) return at + " is " + value.dump();
  if (schema.contains("maximum") && value > schema.at("maximum")) return at + " is " + value.dump();
  if (schema.contains("multipleOf") && value.get<std::uint64_t>() % schema.at("multipleOf").get<std::uint64_t>() != 0)
    return at + " is " + value.dump();
  if (schema.contains("maxLength") && value.get<std::string>().size() > schema.at("maxLength"))
    return at + " is too long";
  if (schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(), std::regex(schema.at("pattern").get<std::string>()))) {
    return at + " is " + value.dump();
  }
  return "";
}

}  // namespace tributary::manager
