// Stands in for the DPDK transport in a build without libdpdk: no device can be opened, so nothing else is ever called.
#include <cstdlib>

#include "transport/packet/packet_transport.h"
#include "tributary/transport/dpdk.h"

namespace tributary::transport {

Result<std::shared_ptr<DpdkDevice>> DpdkDevice::open(const DpdkDeviceSettings&) {
  return fail(
      Errc::unsupported,
      "this build has no DPDK: libdpdk 22.11 or newer was not found when it was configured. Install it "
      "(scripts/setup --dpdk), then configure and build again. Debian: the package tributary-aggregator-dpdk has it");
}
DpdkDevice::DpdkDevice(std::shared_ptr<dpdk::Device> device) : device_(std::move(device)) {}
DpdkDevice::~DpdkDevice() = default;
DpdkDeviceStatistics DpdkDevice::statistics() const {
  return {};
}
std::string DpdkDevice::address() const {
  return {};
}
std::vector<std::string> DpdkDevice::take_notes() const {
  return {};
}

DpdkTransport::DpdkTransport(std::shared_ptr<DpdkDevice> device, const DpdkSettings&) : device_(std::move(device)) {}
DpdkTransport::~DpdkTransport() = default;
Result<std::unique_ptr<Listener>> DpdkTransport::listen(const Endpoint&, Acceptor&) {
  return fail(Errc::unsupported, "this build has no DPDK.");
}
Result<std::unique_ptr<Listener>> DpdkTransport::listen_for(const Endpoint&, Route) {
  return fail(Errc::unsupported, "this build has no DPDK.");
}
std::unique_ptr<Channel> DpdkTransport::connect(const Endpoint&, ChannelHandler&, Duration) {
  std::abort();  // never called: open() gives no device
}
std::size_t DpdkTransport::poll(Duration) {
  return 0;
}
void DpdkTransport::post(std::function<void()>) {}
DpdkStatistics DpdkTransport::statistics() const {
  return {};
}

}  // namespace tributary::transport
