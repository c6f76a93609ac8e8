#pragma once
// DPDK's environment: memory, drivers, cores. A process has one environment. By DPDK's rule it starts once, and cannot
// start again after its end.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::transport::dpdk {

enum class HugePages : std::uint8_t {
  prefer,   // takes ordinary memory where there are too few huge pages
  require,  // an error says how many are missing
  never,
};

struct EalSettings {
  HugePages huge_pages = HugePages::prefer;
  std::size_t memory_bytes = 64U << 20U;  // memory for all devices: the sum of memory_needed()
  std::vector<std::string> pci_devices;   // DPDK uses these PCI devices only; empty: it does not look for PCI devices
  bool one_file = false;                  // puts all memory into one file, which another process can map
  std::string file_prefix;                // prefix of the files that DPDK makes for its own tools; empty: it makes none
  std::vector<std::string> more;          // arguments for DPDK, passed on unchanged
};

class Eal {
 public:
  /// Returns the environment of this process, and starts it with `settings` unless it runs already. Errors:
  /// exhausted (huge pages), denied, bad_config (DPDK refuses the arguments), unsupported (the environment has ended
  /// before).
  [[nodiscard]] static Result<std::shared_ptr<Eal>> start(const EalSettings& settings);
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  [[nodiscard]] bool huge_pages() const noexcept { return huge_pages_; }
  /// The reason why huge pages are not used although they were preferred, and advice; empty if they are used or not
  /// wanted.
  [[nodiscard]] const std::string& missing_pages() const noexcept { return missing_pages_; }

  /// Gives the calling thread a number among DPDK's threads until it ends. By this number pools keep a cache for the
  /// thread. The second and later calls of a thread are cheap.
  static void adopt_thread();

 private:
  Eal(bool huge_pages, std::string missing_pages) : huge_pages_(huge_pages), missing_pages_(std::move(missing_pages)) {}
  const bool huge_pages_;
  const std::string missing_pages_;
};

/// The arguments for rte_eal_init(), without the program's name. It is a pure function, for tests. `cores`: the cores
/// on which this process may run.
[[nodiscard]] std::vector<std::string> eal_arguments(const EalSettings& settings, bool huge_pages,
                                                     const std::vector<unsigned>& cores);

}  // namespace tributary::transport::dpdk
