#pragma once
// Checks answers against an OpenAPI 3.0 document. It knows the keywords of JSON Schema that the document uses; any
// other keyword is an error, because it would go unchecked.
#include <nlohmann/json.hpp>
#include <string>

namespace tributary::manager {

class OpenApi {
 public:
  explicit OpenApi(nlohmann::json document) : document_(std::move(document)) {}

  /// Returns the name of every operation, such as "GET /v1/groups/{id}".
  [[nodiscard]] std::vector<std::string> operations() const;
  /// Returns the fault in this answer to a call of the operation `name`; empty if the answer has no fault.
  [[nodiscard]] std::string check_answer(const std::string& name, unsigned status, const std::string& content_type,
                                         const std::string& body) const;
  /// Returns the reason why the operation refuses this body; empty if it accepts the body.
  [[nodiscard]] std::string check_request(const std::string& name, const nlohmann::json& body) const;
  [[nodiscard]] std::string check(const nlohmann::json& value, const std::string& schema_name) const;

 private:
  [[nodiscard]] const nlohmann::json* operation(const std::string& name) const;
  [[nodiscard]] std::string check(const nlohmann::json& value, const nlohmann::json& schema,
                                  const std::string& at) const;
  [[nodiscard]] bool fits_any(const nlohmann::json& value, const nlohmann::json& choices) const;
  [[nodiscard]] std::string check_object(const nlohmann::json& value, const nlohmann::json& schema,
                                         const std::string& at) const;
  [[nodiscard]] std::string check_scalar(const nlohmann::json& value, const nlohmann::json& schema,
                                         const std::string& at) const;

  nlohmann::json document_;
};

}  // namespace tributary::manager
