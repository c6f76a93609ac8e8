#pragma once
// The module tributary-aggregator-dpdk.so: devices that DPDK drives. The aggregator's program itself does not link
// DPDK.
#include <memory>
#include <string>
#include <vector>

#include "service-kit/module.h"
#include "tributary/transport/dpdk.h"

namespace tributary::aggregator {

struct DpdkModule : service::ModuleTable {
  Result<std::shared_ptr<transport::DpdkDevice>> (*open)(const transport::DpdkDeviceSettings& settings);
  transport::DpdkDeviceStatistics (*device_statistics)(const transport::DpdkDevice& device);
  std::string (*address)(const transport::DpdkDevice& device);
  std::vector<std::string> (*take_notes)(const transport::DpdkDevice& device);
  /// Makes a DpdkTransport. The functions below call its functions of the same names: pass them no other transport.
  std::unique_ptr<transport::Transport> (*make)(std::shared_ptr<transport::DpdkDevice> device,
                                                const transport::DpdkSettings& settings);
  Result<std::unique_ptr<transport::Listener>> (*listen_for)(transport::Transport& transport, const Endpoint& at,
                                                             transport::DpdkTransport::Route route);
  transport::DpdkStatistics (*statistics)(const transport::Transport& transport);
};
inline constexpr const char* kDpdkTable = "tributary_aggregator_dpdk";

}  // namespace tributary::aggregator
