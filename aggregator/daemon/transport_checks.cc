#include "aggregator/daemon/transport_checks.h"

#include "aggregator/daemon/modules.h"

namespace tributary::aggregator {

Status check_transport_settings(const Settings& settings) {
  const bool has_packets = settings.transport == "udp" || settings.transport == "dpdk";
  if (settings.packet_security != "off" && !has_packets) {
    return service::refuse({.key = "packet_security",
                            .value = settings.packet_security,
                            .why = "it contradicts transport " + settings.transport + ", which has no packets of ours",
                            .allowed = "off, or any with transport udp or dpdk"});
  }
  if (settings.transport == "dpdk" && (settings.dpdk_device.empty() || settings.dpdk_addresses.empty())) {
    return service::refuse({.key = "transport",
                            .value = settings.transport,
                            .why = "dpdk_device and dpdk_addresses must say which device, and what this host is called "
                                   "there",
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
