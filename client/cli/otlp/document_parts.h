#pragma once
// Parts that the documents of OpenTelemetry's protocol share, in its JSON encoding
// (https://github.com/open-telemetry/opentelemetry-proto, version 1).
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tributary::cli {

[[nodiscard]] nlohmann::json otlp_attribute(const std::string& key, const std::string& value);
/// The encoding writes numbers of 64 bits as text.
[[nodiscard]] nlohmann::json otlp_attribute(const std::string& key, std::uint64_t value);
/// Returns this program's name and version, as an instrumentation scope.
[[nodiscard]] nlohmann::json otlp_scope();
/// Returns the document as text. Bytes that are not UTF-8 become replacement characters.
[[nodiscard]] std::string otlp_text(const nlohmann::json& document);

}  // namespace tributary::cli
