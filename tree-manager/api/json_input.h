#pragma once
// Reads a request's JSON. The caller asks for every member by name, with its bounds. The first mistake is kept, and a
// member that the caller did not ask for is an error.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::manager {

inline constexpr std::uint64_t kUnixSecondsMax = 1ULL << 40;  // the latest moment that a request may name

class JsonInput {
 public:
  /// Takes an object. An empty body stands for an empty object.
  explicit JsonInput(const std::string& body);

  [[nodiscard]] std::uint64_t number(const char* name, std::uint64_t low, std::uint64_t high,
                                     std::optional<std::uint64_t> fallback = std::nullopt);
  [[nodiscard]] std::optional<std::uint64_t> optional_number(const char* name, std::uint64_t low, std::uint64_t high);
  [[nodiscard]] std::string text(const char* name, std::optional<std::string> fallback = std::nullopt);
  [[nodiscard]] bool flag(const char* name, bool fallback);
  [[nodiscard]] std::optional<bool> optional_flag(const char* name);
  [[nodiscard]] std::vector<std::string> texts(const char* name, bool required = true);
  /// Returns an empty vector if the member is absent.
  [[nodiscard]] std::vector<std::uint32_t> numbers(const char* name, std::uint32_t high, std::size_t count_max);
  /// Returns the object that is this member's value; an empty object if the member is absent.
  [[nodiscard]] JsonInput object(const char* name);
  /// Returns the objects of this member's list; none if the member is absent. Call finish() for each of them, too.
  [[nodiscard]] std::vector<JsonInput> objects(const char* name, std::size_t count_max);
  [[nodiscard]] bool empty() const { return object_.empty(); }
  /// Returns Errc::bad_argument with the first mistake, or with a member that the caller did not ask for.
  [[nodiscard]] Status finish();

 private:
  JsonInput() = default;
  const nlohmann::json* find(const char* name, bool required);
  void complain(std::string why);

  nlohmann::json object_ = nlohmann::json::object();
  std::string path_;
  std::vector<std::string> known_;
  std::optional<std::string> wrong_;
};

}  // namespace tributary::manager
