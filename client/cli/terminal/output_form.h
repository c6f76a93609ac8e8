#pragma once
// The forms in which a command shows the manager's answers.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::cli {

enum class OutputForm : std::uint8_t { table, wide, json, yaml };
inline constexpr const char* kOutputForms = "table, wide, json or yaml";

/// Reads the name of a form. Errc::bad_argument lists the forms.
[[nodiscard]] Result<OutputForm> parse_output_form(const std::string& text);
/// Returns whether this form is for programs.
[[nodiscard]] constexpr bool is_document(OutputForm form) noexcept {
  return form == OutputForm::json || form == OutputForm::yaml;
}

/// Writes a document in block style. It quotes every text, so that a program reads no text as a number or a date.
[[nodiscard]] std::string to_yaml(const nlohmann::json& document);
/// Writes the document as JSON or YAML.
[[nodiscard]] std::string document_text(const nlohmann::json& document, OutputForm form);

}  // namespace tributary::cli
