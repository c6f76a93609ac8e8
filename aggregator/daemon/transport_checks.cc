#include "aggregator/daemon/transport_checks.h"

#include "aggregator/daemon/modules.h"

namespace tributary::aggregator {

Status check_transport_settings(const Settings& settings) {
  const bool has_packets = settings.transport == "udp" || settings.transport == "dpdk";
  if (settings.packet_security != "off" && !has_packets) {
    return fail(Errc::bad_config, "packet_security is " + settings.packet_security + ", but transport is " +
                                      settings.transport +
                                      ", which has no packets of ours: set transport to udp or dpdk, or "
                                      "packet_security to off.");
  }
  if (settings.transport == "dpdk" && (settings.dpdk_device.empty() || settings.dpdk_addresses.empty())) {
    return fail(Errc::bad_config,
                "transport is dpdk: dpdk_device and dpdk_addresses must say which device, and what "
                "this host is called there.");
  }
  return {};
}

Status check_transport_module(const Settings& settings) {
  const auto refused = [&](const std::string& why) {
    return fail(Errc::bad_config, "transport: '" + settings.transport + "': " + why);
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
