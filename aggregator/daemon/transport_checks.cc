#include "aggregator/daemon/transport_checks.h"

#include "aggregator/daemon/modules.h"

namespace tributary::aggregator {

Status check_transport_settings(const Settings& settings) {
  if (settings.transport == "dpdk" && (settings.dpdk_device.empty() || settings.dpdk_addresses.empty())) {
    return service::refuse({.key = "transport",
                            .value = settings.transport,
                            .why =
                                "dpdk_device and dpdk_addresses must name the device, and the addresses of this host "
                                "on it",
                            .allowed = "dpdk with both of these settings"});
  }
  return {};
}

Status check_transport_module(const Settings& settings) {
  const auto refused = [&](const std::string& why) {
    return service::refuse({.key = "transport", .value = settings.transport, .why = why});
  };
  if (settings.transport == "dpdk") {
    if (const auto module = dpdk_module(); !module) return refused(module.error().message);
  }
  if (settings.transport == "verbs") {
    const auto module = verbs_module();
    if (!module) return refused(module.error().message);
    if (const auto ok = (*module)->available(); !ok) return refused(ok.error().message);
  }
  return {};
}

}  // namespace tributary::aggregator
