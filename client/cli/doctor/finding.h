#pragma once
// The doctor's findings.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/terminal/output_form.h"

namespace tributary::cli::doctor {

enum class Level : std::uint8_t {
  good,
  warning,  // works, but slower than it could
  bad,      // something needed does not work, or costs much
  unknown,  // this host does not tell; `found` says why
};

struct Finding {
  std::string part;  // "network", "rdma", "pci", ...
  std::string what;  // "mlx5_0 port 1"
  Level level = Level::good;
  std::string found{};  // the values seen; for `unknown` the reason
  std::string why{};    // the reason why it matters, and what it costs
  std::string mend{};   // the command or step that mends it; for `unknown` the one that tells
};
using Findings = std::vector<Finding>;

[[nodiscard]] const char* to_string(Level level) noexcept;
/// True if nothing is bad.
[[nodiscard]] bool all_good(const Findings& findings) noexcept;
void append(Findings& findings, Findings more);
/// For people.
[[nodiscard]] std::string to_text(const Findings& findings, bool colour = false);
/// For programs: {"good": ..., "findings": [{"part", "what", "level", "found", "why", "mend"}]}, as JSON or as YAML.
[[nodiscard]] std::string to_document(const Findings& findings, OutputForm form = OutputForm::json);
/// Prints the findings, and returns the exit code of the process.
[[nodiscard]] int print(const Findings& findings, OutputForm form);

}  // namespace tributary::cli::doctor
