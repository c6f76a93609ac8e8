#pragma once
// The forms in which a command shows what the manager has answered.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::cli {

enum class OutputForm : std::uint8_t { table, wide, json, yaml };
inline constexpr const char* kOutputForms = "table, wide, json or yaml";

/// Errc::bad_argument says which forms there are.
[[nodiscard]] Result<OutputForm> parse_output_form(const std::string& text);
/// Returns whether programs read this form.
[[nodiscard]] constexpr bool is_document(OutputForm form) noexcept {
  return form == OutputForm::json || form == OutputForm::yaml;
}

/// Writes a document in block style. Quotes every text, so that none is taken for a number or a date.
[[nodiscard]] std::string to_yaml(const nlohmann::json& document);
/// Writes the document as JSON or YAML.
[[nodiscard]] std::string document_text(const nlohmann::json& document, OutputForm form);

}  // namespace tributary::cli
