#include "client/api/dpdk_module.h"

#include <dlfcn.h>

#include <filesystem>

#include "client/api/log.h"

namespace tributary::client {
namespace {

/// Returns the folder of this library.
std::string own_folder() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&dpdk_available), &here) == 0 || here.dli_fname == nullptr) return ".";
  return std::filesystem::absolute(here.dli_fname).parent_path();
}

Result<const DpdkModule*> module() {
  static const auto one = service::load_module(
      {.file = "libtributary-dpdk.so",
       .table = kDpdkModuleSymbol,
       .folders = {own_folder(), ""},
       .remedy = "Install the package libtributary-dpdk, or build from source where the libraries of DPDK 22.11 are "
                 "found"},
      TRIBUTARY_VERSION_TEXT);
  if (!one) return std::unexpected(one.error());
  return static_cast<const DpdkModule*>(*one);
}

}  // namespace

std::string DpdkRank::address() const {
  return addresses.substr(0, addresses.find_first_of("/,"));
}

Status dpdk_available(const DpdkRank& rank) {
  if (const auto found = module(); !found) return std::unexpected(found.error());
  if (rank.device.empty() || rank.addresses.empty()) {
    return fail(Errc::bad_config,
                "TRIBUTARY_DPDK_DEVICE and TRIBUTARY_DPDK_ADDRESSES must name this rank's device, and this host's "
                "addresses on it.");
  }
  return {};
}

Result<std::unique_ptr<transport::Transport>> make_dpdk_transport(const DpdkRank& rank, const UdpRank& packets,
                                                                  std::shared_ptr<transport::LinkKeys> keys) {
  if (const Status available = dpdk_available(rank); !available) return std::unexpected(available.error());
  auto made = (*module())->make(rank, packets, std::move(keys));
  for (const std::string& note : (*module())->take_notes()) log(LogLevel::warn, note);
  return made;
}

}  // namespace tributary::client
