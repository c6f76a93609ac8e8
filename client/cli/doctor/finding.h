#pragma once
// The doctor's findings.
#include <cstdint>
#include <string>
#include <vector>

namespace tributary::cli::doctor {

enum class Level : std::uint8_t {
  good,
  note,  // works, or is not needed; could be better
  mend,  // something needed does not work
};

struct Finding {
  std::string part;  // "network", "rdma", "memory", "gpu", "service"
  std::string what;  // "mlx5_0 port 1"
  Level level = Level::good;
  std::string says;    // the facts
  std::string advice;  // what to do; empty: nothing
};
using Findings = std::vector<Finding>;

[[nodiscard]] const char* to_string(Level level) noexcept;
/// True if nothing needs mending.
[[nodiscard]] bool all_good(const Findings& findings) noexcept;
/// For people.
[[nodiscard]] std::string to_text(const Findings& findings);
/// For programs: {"good": ..., "findings": [{"part", "what", "level", "says", "advice"}]}.
[[nodiscard]] std::string to_json(const Findings& findings);

}  // namespace tributary::cli::doctor
