// Stands in for the verbs transport in a build without rdma-core: create() makes no object, so no member function is
// ever called.
#include <cstdlib>

#include "tributary/transport/verbs_beside_tcp.h"

namespace tributary::transport {
namespace {

std::unexpected<Error> not_built() {
  return fail(
      Errc::unsupported,
      "this build has no RDMA verbs: rdma-core was not found when it was configured. Install libibverbs-dev and "
      "librdmacm-dev, then configure and build again. The package libtributary0 has them");
}

}  // namespace

class VerbsCore {};

Status verbs_available() {
  return not_built();
}
std::vector<Rail> verbs_rails() {
  return {};
}
Status verbs_address_lives(const std::string&) {
  return not_built();
}
Result<std::unique_ptr<VerbsTransport>> VerbsTransport::create(const VerbsSettings&) {
  return not_built();
}
Result<std::unique_ptr<VerbsBesideTcp>> VerbsBesideTcp::create(const VerbsSettings&, const TcpSettings&) {
  return not_built();
}
VerbsTransport::VerbsTransport(std::shared_ptr<VerbsCore> core) : core_(std::move(core)) {}
VerbsTransport::~VerbsTransport() = default;
Result<std::unique_ptr<Listener>> VerbsTransport::listen(const Endpoint&, Acceptor&) {
  return not_built();
}
// NOLINTNEXTLINE(performance-unnecessary-value-param): the transport takes the route over
Result<std::unique_ptr<Listener>> VerbsTransport::listen_for(const Endpoint&, Route) {
  return not_built();
}
std::unique_ptr<Channel> VerbsTransport::connect(const Endpoint&, ChannelHandler&, Duration) {
  std::abort();  // never called: create() makes no object
}
std::size_t VerbsTransport::poll(Duration) {
  return 0;
}
void VerbsTransport::post(std::function<void()>) {}
void VerbsTransport::accept_routed(Acceptor*) {}
void VerbsTransport::take_routed(std::function<void(const std::shared_ptr<VerbsCore>&)>) {}
std::unique_ptr<KeptMemory> VerbsTransport::keep_registered(std::span<const std::byte>) {
  return nullptr;
}
std::unique_ptr<KeptMemory> VerbsTransport::keep_device_memory(std::span<const std::byte>,
                                                               std::shared_ptr<DeviceMemory>) {
  return nullptr;
}
void VerbsTransport::drive(std::shared_ptr<SocketCore>) {}
Status VerbsTransport::device_at(const std::string&) const {
  return not_built();
}
std::uint64_t VerbsTransport::room_bytes(std::uint32_t, std::uint32_t) const {
  return 0;
}
VerbsStatistics VerbsTransport::statistics() const {
  return {};
}

}  // namespace tributary::transport
