#include "tree-manager/api/json_input.h"
#include "tributary/protocol/json_reader.h"

#include <algorithm>

namespace tributary::manager {

using nlohmann::json;

JsonInput::JsonInput(const std::string& body) {
  if (body.find_first_not_of(" \t\r\n") == std::string::npos) return;
  auto parsed = read_json(body);
  if (!parsed) {
    complain("the body cannot be read: " + parsed.error().message);
  } else if (!parsed->is_object()) {
    complain("the body is not a JSON object");
  } else {
    object_ = std::move(*parsed);
  }
}

void JsonInput::complain(std::string why) {
  if (!wrong_) wrong_ = std::move(why);
}

const json* JsonInput::find(const char* name, bool required) {
  known_.emplace_back(name);
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  if (required) complain("'" + path_ + name + "' is missing");
  return nullptr;
}

std::optional<std::uint64_t> JsonInput::optional_number(const char* name, std::uint64_t low, std::uint64_t high) {
  const json* member = find(name, false);
  if (member == nullptr) return std::nullopt;
  if (!member->is_number_unsigned() || member->get<std::uint64_t>() < low || member->get<std::uint64_t>() > high) {
    complain("'" + path_ + name + "' is not a whole number from " + std::to_string(low) + " to " +
             std::to_string(high));
    return std::nullopt;
  }
  return member->get<std::uint64_t>();
}

std::uint64_t JsonInput::number(const char* name, std::uint64_t low, std::uint64_t high,
                                std::optional<std::uint64_t> fallback) {
  if (!object_.contains(name) && !fallback) complain("'" + path_ + name + "' is missing");
  return optional_number(name, low, high).value_or(fallback.value_or(low));
}

std::string JsonInput::text(const char* name, std::optional<std::string> fallback) {
  const json* member = find(name, !fallback.has_value());
  if (member == nullptr) return std::move(fallback).value_or(std::string{});
  if (!member->is_string()) return complain("'" + path_ + name + "' is not a string"), std::string{};
  return member->get<std::string>();
}

bool JsonInput::flag(const char* name, bool fallback) {
  const json* member = find(name, false);
  if (member == nullptr) return fallback;
  if (!member->is_boolean()) return complain("'" + path_ + name + "' is not true or false"), fallback;
  return member->get<bool>();
}

std::optional<bool> JsonInput::optional_flag(const char* name) {
  if (find(name, false) == nullptr) return std::nullopt;
  return flag(name, false);
}

std::vector<std::string> JsonInput::texts(const char* name, bool required) {
  std::vector<std::string> result;
  const json* member = find(name, required);
  if (member == nullptr) return result;
  if (!member->is_array()) return complain("'" + path_ + name + "' is not an array of strings"), result;
  result.reserve(member->size());
  for (const json& item : *member) {
    if (!item.is_string()) return complain("'" + path_ + name + "' holds something that is not a string"), result;
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::vector<std::uint32_t> JsonInput::numbers(const char* name, std::uint32_t high, std::size_t count_max) {
  std::vector<std::uint32_t> result;
  const json* member = find(name, false);
  if (member == nullptr) return result;
  const auto bad = [&](const json& item) { return !item.is_number_unsigned() || item.get<std::uint64_t>() > high; };
  if (!member->is_array() || member->size() > count_max || std::ranges::any_of(*member, bad)) {
    complain("'" + path_ + name + "' is not an array of at most " + std::to_string(count_max) +
             " whole numbers from 0 to " + std::to_string(high));
    return result;
  }
  return member->get<std::vector<std::uint32_t>>();
}

JsonInput JsonInput::object(const char* name) {
  JsonInput inner;
  inner.path_ = path_ + name + ".";
  const json* member = find(name, false);
  if (member == nullptr) return inner;
  if (member->is_object()) {
    inner.object_ = *member;
  } else {
    inner.complain("'" + path_ + name + "' is not an object");
  }
  return inner;
}

std::vector<JsonInput> JsonInput::objects(const char* name, std::size_t count_max) {
  std::vector<JsonInput> list;
  const json* member = find(name, false);
  if (member == nullptr) return list;
  const bool fits = member->is_array() && member->size() <= count_max &&
                    std::ranges::all_of(*member, [](const json& one) { return one.is_object(); });
  if (!fits) {
    complain("'" + path_ + name + "' is not a list of at most " + std::to_string(count_max) + " objects");
    return list;
  }
  for (const json& one : *member) {
    JsonInput inner;
    inner.path_ = path_ + name + "[" + std::to_string(list.size()) + "].";
    inner.object_ = one;
    list.push_back(std::move(inner));
  }
  return list;
}

Status JsonInput::finish() {
  for (const auto& member : object_.items()) {
    if (std::find(known_.begin(), known_.end(), member.key()) != known_.end()) continue;
    std::string accepted;
    for (const std::string& name : known_) accepted += (accepted.empty() ? "" : ", ") + name;
    complain("'" + path_ + member.key() + "' is unknown; known here: " + accepted);
  }
  if (wrong_) return fail(Errc::bad_argument, *wrong_);
  return {};
}

}  // namespace tributary::manager
