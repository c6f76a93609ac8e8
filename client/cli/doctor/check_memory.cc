// Checks locked memory and huge pages.
#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "client/cli/doctor/checks.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli::doctor {
namespace {

// The memory that a rank registers: its tensors, and windows of a few megabytes.
constexpr std::uint64_t kLockedEnough = std::uint64_t{1} << 30;

/// Reads a line of /proc/meminfo.
std::uint64_t figure(const std::string& text, const std::string& name) {
  const auto line = text.find(name + ":");
  if (line == std::string::npos) return 0;
  const auto digits = text.find_first_of("0123456789", line + name.size());
  if (digits == std::string::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(text.data() + digits, text.data() + text.size(), value);
  return value;
}

Finding locked(const SystemTree& system, std::optional<std::uint64_t> bytes) {
  const bool needed = !system.list("/sys/class/infiniband").empty();
  const bool enough = !bytes || *bytes >= kLockedEnough;
  return {.part = "memory",
          .what = "locked memory",
          .level = enough ? Level::good : (needed ? Level::mend : Level::note),
          .says = bytes ? "at most " + bytes_text(*bytes) : "without limit",
          .advice = enough || !needed ? ""
                                      : "RDMA devices need locked memory: set ulimit -l unlimited, memlock in "
                                        "/etc/security/limits.d, or LimitMEMLOCK=infinity in the unit"};
}

Finding huge_pages(const SystemTree& system) {
  Finding f{.part = "memory", .what = "huge pages"};
  const std::string meminfo = system.read("/proc/meminfo").value_or("");
  const std::uint64_t total = figure(meminfo, "HugePages_Total"), free = figure(meminfo, "HugePages_Free");
  const std::string transparent = system.read("/sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  const bool by_itself = transparent.contains("[always]") || transparent.contains("[madvise]");
  f.says = fmt::format("{} of {} of {} KiB free; transparent huge pages {}", free, total,
                       figure(meminfo, "Hugepagesize"), by_itself ? "on" : "off");
  if (total == 0 && !by_itself) {
    f.level = Level::note;
    f.advice = "aggregators are faster with huge pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return f;
}

}  // namespace

Findings check_memory(const SystemTree& system, std::optional<std::uint64_t> locked_bytes) {
  return {locked(system, locked_bytes), huge_pages(system)};
}

}  // namespace tributary::cli::doctor
