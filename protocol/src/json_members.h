#pragma once
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "tributary/protocol/credential.h"

namespace tributary {

/// Reads the members of one JSON object, and remembers the first member that is missing or out of bounds.
class JsonMembers {
 public:
  /// `document` names the document that contains the object, `where` the object's place in it.
  JsonMembers(std::string_view document, const nlohmann::json& object, std::string where)
      : document_(document), object_(object), where_(std::move(where)) {
    if (!object.is_object()) complain("is no object");
  }
  template <class T>
  T number(const char* name, T low, T high) {
    const nlohmann::json* member = find(name);
    if (member == nullptr) return low;
    if (!member->is_number_integer()) return complain(std::string(name) + " is no integer"), low;
    const bool negative =
        member->is_number_integer() && !member->is_number_unsigned() && member->get<std::int64_t>() < 0;
    if (negative) {
      if (std::is_signed_v<T> && member->get<std::int64_t>() >= static_cast<std::int64_t>(low))
        return static_cast<T>(member->get<std::int64_t>());
      return complain(std::string(name) + " is negative"), low;
    }
    const auto value = member->get<std::uint64_t>();
    if (value < static_cast<std::uint64_t>(low < T{} ? T{} : low) || value > static_cast<std::uint64_t>(high)) {
      return complain(std::string(name) + " is " + std::to_string(value) + ", not " + std::to_string(low) + " to " +
                      std::to_string(high)),
             low;
    }
    return static_cast<T>(value);
  }
  std::string text(const char* name, std::size_t bytes_max) {
    const nlohmann::json* member = find(name);
    if (member == nullptr) return {};
    if (!member->is_string()) return complain(std::string(name) + " is no string"), std::string{};
    auto value = member->get<std::string>();
    if (value.size() > bytes_max)
      return complain(std::string(name) + " is longer than " + std::to_string(bytes_max) + " bytes"), std::string{};
    return value;
  }
  const nlohmann::json& array(const char* name, std::size_t size_max) {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const nlohmann::json* member = find(name);
    if (member == nullptr) return kEmpty;
    if (!member->is_array()) return complain(std::string(name) + " is no array"), kEmpty;
    if (member->size() > size_max)
      return complain(std::string(name) + " has more than " + std::to_string(size_max) + " members"), kEmpty;
    return *member;
  }
  /// Reads a token. Returns false if `from` is no token.
  bool token(const nlohmann::json& from, Token& into) {
    const auto bytes = from.is_string() ? from_base64(from.get_ref<const std::string&>()) : fail(Errc::corrupt, "");
    if (!bytes || bytes->size() != kTokenBytes) {
      complain("a token is not base64 of " + std::to_string(kTokenBytes) + " bytes");
      return false;
    }
    std::memcpy(into.data(), bytes->data(), kTokenBytes);
    return true;
  }
  void complain(const std::string& what) {
    if (error_.empty()) error_ = document_ + ": " + where_ + what;
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  const nlohmann::json* find(const char* name) {
    if (!error_.empty()) return nullptr;
    const auto it = object_.find(name);
    if (it == object_.end()) return complain(std::string(name) + " is missing"), nullptr;
    return &*it;
  }
  const std::string document_;
  const nlohmann::json& object_;
  std::string where_;
  std::string error_;
};

}  // namespace tributary
