#pragma once
// Checks answers against an OpenAPI 3.0 document: the part of JSON Schema that ours uses, and nothing that it does not,
// so that a keyword nobody checks is an error.
#include <nlohmann/json.hpp>
#include <string>

namespace tributary::manager {

class OpenApi {
 public:
  explicit OpenApi(nlohmann::json document) : document_(std::move(document)) {}

  /// "GET /v1/groups/{id}" for every operation.
  [[nodiscard]] std::vector<std::string> operations() const;
  /// What is wrong with this answer to a call of `operation`; empty when nothing is.
  [[nodiscard]] std::string check_answer(const std::string& operation, unsigned status, const std::string& content_type,
                                         const std::string& body) const;
  /// Whether this body is what the operation takes.
  [[nodiscard]] std::string check_request(const std::string& operation, const nlohmann::json& body) const;
  [[nodiscard]] std::string check(const nlohmann::json& value, const std::string& schema_name) const;

 private:
  [[nodiscard]] const nlohmann::json* operation(const std::string& name) const;
  [[nodiscard]] std::string check(const nlohmann::json& value, const nlohmann::json& schema,
                                  const std::string& at) const;
  [[nodiscard]] std::string check_object(const nlohmann::json& value, const nlohmann::json& schema,
                                         const std::string& at) const;
  [[nodiscard]] std::string check_scalar(const nlohmann::json& value, const nlohmann::json& schema,
                                         const std::string& at) const;

  nlohmann::json document_;
};

}  // namespace tributary::manager
