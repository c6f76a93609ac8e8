#pragma once
// The doctor's findings.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/terminal/output_form.h"

namespace tributary::cli::doctor {

enum class Level : std::uint8_t {
  good,
  warning,  // the part works, but slower than possible
  bad,      // a needed part does not work, or a fault costs much speed
  unknown,  // this host does not tell; `found` has the reason
};

struct Finding {
  std::string part;  // name of the part: "network", "rdma", "pci", ...
  std::string what;  // name of the checked thing, such as "mlx5_0 port 1"
  Level level = Level::good;
  std::string found{};  // the values on this host; for `unknown` the reason
  std::string why{};    // the reason why the finding matters, and its cost
  std::string mend{};   // the command or step that mends it; for `unknown` the command that shows it
};
using Findings = std::vector<Finding>;

[[nodiscard]] const char* to_string(Level level) noexcept;
/// True if no finding is bad.
[[nodiscard]] bool all_good(const Findings& findings) noexcept;
void append(Findings& findings, Findings more);
/// Returns the findings as a text for people.
[[nodiscard]] std::string to_text(const Findings& findings, bool colour = false);
/// Returns them as JSON or YAML: {"good": ..., "findings": [{"part", "what", "level", "found", "why", "mend"}]}.
[[nodiscard]] std::string to_document(const Findings& findings, OutputForm form = OutputForm::json);
/// Prints the findings, and returns the exit code of the process.
[[nodiscard]] int print(const Findings& findings, OutputForm form);

}  // namespace tributary::cli::doctor
