#include "client/cli/terminal/output_form.h"

#include <nlohmann/json.hpp>

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr auto kReplace = json::error_handler_t::replace;
constexpr std::size_t kYamlDepthMax = 64;  // much more than any answer has; malformed input must not exhaust the stack

/// Returns a text in quotation marks, in the form that JSON and YAML share.
std::string scalar(const json& value) {
  return value.dump(-1, ' ', false, kReplace);
}

bool is_block(const json& value, std::size_t depth) {
  return (value.is_object() || value.is_array()) && !value.empty() && depth < kYamlDepthMax;
}

void write(const json& value, std::size_t depth, bool in_list, std::string& out);

void write_member(const json& value, std::size_t depth, std::string& out) {
  if (!is_block(value, depth)) {
    out += " " + scalar(value) + "\n";
    return;
  }
  out += '\n';
  write(value, depth, false, out);
}

/// Writes a value. `in_list`: its first line continues the line that begins with "- ".
void write(const json& value, std::size_t depth, bool in_list, std::string& out) {
  const std::string indent(2 * depth, ' ');
  bool first = in_list;
  const auto begin_line = [&] { out += std::exchange(first, false) ? "" : indent; };
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      begin_line();
      out += scalar(json(key)).substr(1, scalar(json(key)).size() - 2) + ":";
      write_member(member, depth + 1, out);
    }
    return;
  }
  for (const json& member : value) {
    begin_line();
    out += "- ";
    if (is_block(member, depth + 1)) {
      write(member, depth + 1, true, out);
    } else {
      out += scalar(member) + "\n";
    }
  }
}

}  // namespace

Result<OutputForm> parse_output_form(const std::string& text) {
  if (text == "table") return OutputForm::table;
  if (text == "wide") return OutputForm::wide;
  if (text == "json") return OutputForm::json;
  if (text == "yaml") return OutputForm::yaml;
  return fail(Errc::bad_argument, "it is none of these");
}

std::string to_yaml(const json& document) {
  if (!is_block(document, 0)) return scalar(document) + "\n";
  std::string out;
  write(document, 0, false, out);
  return out;
}

std::string document_text(const json& document, OutputForm form) {
  return form == OutputForm::yaml ? to_yaml(document) : document.dump(2, ' ', false, kReplace) + "\n";
}

}  // namespace tributary::cli
