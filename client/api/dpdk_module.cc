#include "client/api/dpdk_module.h"

#include <dlfcn.h>

#include <string_view>

#include "client/api/log.h"

namespace tributary::client {
namespace {

constexpr const char* kFile = "libtributary-dpdk.so";

/// Loads the module from beside this library, else from where the system looks.
void* load(std::string& why) {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&dpdk_available), &here) != 0 && here.dli_fname != nullptr) {
    const std::string_view own = here.dli_fname;
    const std::string beside = std::string(own.substr(0, own.rfind('/') + 1)) + kFile;
    if (void* const found = ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    why = ::dlerror();
  }
  void* const found = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr && why.empty()) why = ::dlerror();
  return found;
}

Result<const DpdkModule*> module() {
  static const Result<const DpdkModule*> one = []() -> Result<const DpdkModule*> {
    std::string why;
    void* const library = load(why);
    if (library == nullptr) {
      return fail(Errc::unsupported, "the module " + std::string(kFile) + " cannot be loaded: " + why +
                                         ". It is built with libdpdk 22.11 or newer (scripts/setup --dpdk), and lies "
                                         "beside libtributary.so");
    }
    const auto* const found = static_cast<const DpdkModule*>(::dlsym(library, kDpdkModuleSymbol));
    if (found == nullptr || std::string_view(found->version) != TRIBUTARY_VERSION_TEXT) {
      return fail(Errc::unsupported, "the module " + std::string(kFile) +
                                         " has another version than libtributary; install both from one build");
    }
    return found;
  }();
  return one;
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
