#include "aggregator/daemon/modules.h"

#include <filesystem>

namespace tributary::aggregator {
namespace {

std::vector<std::string> folders() {
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
  return {program, (program / TRIBUTARY_MODULES).lexically_normal()};
}

/// Loads the module of `transport`, which is in a package of its own.
template <class Module>
Result<const Module*> load(const std::string& transport, const char* table, const std::string& libraries) {
  const std::string package = "tributary-aggregator-" + transport;
  const auto found = service::load_module(
      {.file = package + ".so",
       .table = table,
       .folders = folders(),
       .remedy = "Install the package " + package + ", take the container image of this name, or " +
                 "build from source where " + libraries + " are found"},
      TRIBUTARY_VERSION);
  if (!found) return std::unexpected(found.error());
  return static_cast<const Module*>(*found);
}

const DpdkModule* dpdk_in_place = nullptr;

}  // namespace

Result<const VerbsModule*> verbs_module() {
  static const auto one = load<VerbsModule>("verbs", kVerbsTable, "libibverbs and librdmacm");
  return one;
}

Result<const DpdkModule*> dpdk_module() {
  if (dpdk_in_place != nullptr) return dpdk_in_place;
  static const auto one = load<DpdkModule>("dpdk", kDpdkTable, "the libraries of DPDK 22.11");
  return one;
}

void use_dpdk_module(const DpdkModule& module) {
  dpdk_in_place = &module;
}

}  // namespace tributary::aggregator
