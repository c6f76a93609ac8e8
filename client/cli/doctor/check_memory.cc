// Checks locked memory and huge pages.
#include <spdlog/fmt/fmt.h>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/kernel_text.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli::doctor {
namespace {

// The memory that a rank registers: its tensors, and windows of a few megabytes each.
constexpr std::uint64_t kLockedEnough = std::uint64_t{1} << 30;

Finding locked(const SystemTree& system) {
  Finding f{.part = "memory", .what = "locked memory", .found = "without limit"};
  const std::string limits = system.read("/proc/self/limits").value_or("");
  const auto line = line_after(limits, "Max locked memory");
  if (!line) {
    f.level = Level::unknown;
    f.found = "/proc/self/limits does not say";
    f.mend = "ulimit -l";
    return f;
  }
  if (line->starts_with("unlimited")) return f;
  const std::uint64_t bytes = first_number(*line);
  f.found = "at most " + bytes_text(bytes);
  if (bytes >= kLockedEnough || system.list("/sys/class/infiniband").empty()) return f;
  f.level = Level::bad;
  f.why = "RDMA devices need locked memory: a rank cannot register its tensors, and goes over TCP";
  f.mend = "ulimit -l unlimited; for good: memlock in /etc/security/limits.d, or LimitMEMLOCK=infinity in the unit";
  return f;
}

Finding huge_pages(const SystemTree& system) {
  Finding f{.part = "memory", .what = "huge pages"};
  const std::string meminfo = system.read("/proc/meminfo").value_or("");
  const auto figure = [&](std::string_view name) { return first_number(line_after(meminfo, name).value_or("")); };
  const std::uint64_t total = figure("HugePages_Total:");
  const std::string transparent = system.read("/sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  const bool by_itself = transparent.contains("[always]") || transparent.contains("[madvise]");
  f.found = fmt::format("{} of {} of {} KiB free; transparent huge pages {}", figure("HugePages_Free:"), total,
                        figure("Hugepagesize:"), by_itself ? "on" : "off");
  if (total > 0 || by_itself) return f;
  f.level = Level::warning;
  f.why = "an aggregator's windows lie in pages of 4 KiB, and its processor looks up addresses far more often";
  f.mend = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  return f;
}

}  // namespace

Findings check_memory(const SystemTree& system) {
  return {locked(system), huge_pages(system)};
}

}  // namespace tributary::cli::doctor
