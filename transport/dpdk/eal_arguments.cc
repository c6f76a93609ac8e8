#include <string>

#include "transport/dpdk/eal.h"

namespace tributary::transport::dpdk {
namespace {

/// The argument for one EAL thread, which is the thread that starts DPDK. It may run on every core that it had before.
/// Tributary's own threads do the work.
std::string floating_main_core(const std::vector<unsigned>& cores) {
  std::string list;
  for (const unsigned core : cores) list += (list.empty() ? "" : ",") + std::to_string(core);
  return "0@(" + list + ")";
}

}  // namespace

std::vector<std::string> eal_arguments(const EalSettings& settings, bool huge_pages,
                                       const std::vector<unsigned>& cores) {
  std::vector<std::string> arguments{"--lcores", floating_main_core(cores), "--no-telemetry", "--log-level", "warning"};
  if (!huge_pages) {
    const std::size_t mebibytes = (settings.memory_bytes + (1U << 20U) - 1) >> 20U;
    arguments.insert(arguments.end(), {"--no-huge", "-m", std::to_string(mebibytes)});
  }
  if (settings.file_prefix.empty()) {
    // DPDK takes --in-memory only with huge pages.
    arguments.emplace_back(huge_pages ? "--in-memory" : "--no-shconf");
  } else {
    arguments.insert(arguments.end(), {"--file-prefix", settings.file_prefix});
    // DPDK cannot combine --huge-unlink with one file. That file outlives this process; the next process with this
    // prefix removes it.
    if (!settings.one_file) arguments.emplace_back("--huge-unlink=always");
  }
  if (settings.one_file) arguments.emplace_back("--single-file-segments");
  if (settings.pci_devices.empty()) arguments.emplace_back("--no-pci");
  for (const std::string& device : settings.pci_devices) arguments.insert(arguments.end(), {"--allow", device});
  arguments.insert(arguments.end(), settings.more.begin(), settings.more.end());
  return arguments;
}

}  // namespace tributary::transport::dpdk
