#include "aggregator/modules/dpdk_module.h"

namespace tributary::aggregator {
namespace {

using transport::DpdkDevice;
using transport::DpdkTransport;

transport::DpdkDeviceStatistics device_statistics(const DpdkDevice& device) {
  return device.statistics();
}

std::string address(const DpdkDevice& device) {
  return device.address();
}

std::vector<std::string> take_notes(const DpdkDevice& device) {
  return device.take_notes();
}

std::unique_ptr<transport::Transport> make(std::shared_ptr<DpdkDevice> device,
                                           const transport::DpdkSettings& settings) {
  return std::make_unique<DpdkTransport>(std::move(device), settings);
}

Result<std::unique_ptr<transport::Listener>> listen_for(transport::Transport& transport, const Endpoint& at,
                                                        DpdkTransport::Route route) {
  return static_cast<DpdkTransport&>(transport).listen_for(at, std::move(route));
}

transport::DpdkStatistics statistics(const transport::Transport& transport) {
  return static_cast<const DpdkTransport&>(transport).statistics();
}

}  // namespace
}  // namespace tributary::aggregator

extern "C" [[gnu::visibility("default")]] const tributary::aggregator::DpdkModule tributary_aggregator_dpdk{
    {TRIBUTARY_VERSION},
    tributary::transport::DpdkDevice::open,
    tributary::aggregator::device_statistics,
    tributary::aggregator::address,
    tributary::aggregator::take_notes,
    tributary::aggregator::make,
    tributary::aggregator::listen_for,
    tributary::aggregator::statistics};
