#include "client/plugins/nccl/p2p/engine.h"

#include <algorithm>

#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/p2p/send_comm.h"
#include "client/plugins/nccl/settings.h"
#include "client/plugins/nccl/wire.h"
#include "tributary/transport/verbs.h"

namespace tributary::nccl {
namespace {

std::unique_ptr<transport::Transport> make_tcp(const NetDevice& device, const HandleKeys& keys,
                                               std::uint8_t traffic_class) {
  transport::TcpSettings settings;
  settings.bind_address = device.address;
  // A receiver whose GPU is late may leave its socket unread for minutes, and TCP's window then stays shut. That is no
  // failure. The system notices a lost host by retransmissions and keep-alive.
  settings.user_timeout = {};
  settings.keys = keys.of_transport();
  settings.traffic_class = traffic_class;
  return std::make_unique<transport::TcpTransport>(settings);
}

/// Removes the zone of a link-local address ("%2"): it is the host's own number of the interface, unknown to other
/// hosts.
std::string without_zone(std::string address) {
  const auto begin = address.find('%');
  if (begin != std::string::npos) address.erase(begin, address.find_first_not_of("0123456789", begin + 1) - begin);
  return address;
}

tributary::Result<std::unique_ptr<transport::Transport>> make_transport(const NetDevice& device, const HandleKeys& keys,
                                                                        std::uint8_t traffic_class) {
  if (!wire()) return std::unexpected(wire().error());
  if (*wire() == Wire::tcp) return make_tcp(device, keys, traffic_class);
  transport::VerbsSettings verbs;
  verbs.keys = keys.of_transport();
  verbs.bind_address = device.address;
  verbs.path.traffic_class = traffic_class;
  return transport::VerbsTransport::create(verbs);
}

}  // namespace

tributary::Result<std::shared_ptr<Engine>> Engine::open(const NetDevice& device, std::uint8_t traffic_class) {
  HandleKeys keys(settings().security);
  auto transport = make_transport(device, keys, traffic_class);
  if (!transport) return std::unexpected(transport.error());
  return std::shared_ptr<Engine>(new Engine(std::move(keys), std::move(*transport)));
}

std::string Engine::connecting_end(transport::Channel& channel) const {
  return tcp_ == nullptr ? std::string() : without_zone(to_string(tcp_->local(channel)));
}

std::string Engine::accepted_end(const transport::Channel& channel) const {
  return tcp_ == nullptr ? std::string() : without_zone(channel.peer());
}

NetContext::NetContext(int traffic_class)
    : traffic_class_(traffic_class >= 0 && traffic_class <= 255 ? static_cast<std::uint8_t>(traffic_class) : 0) {}

NetContext::~NetContext() = default;

SendComm* NetContext::keep(std::unique_ptr<SendComm> opening) {
  const std::lock_guard lock(mutex_);
  return opening_.emplace_back(std::move(opening)).get();
}

std::unique_ptr<SendComm> NetContext::take(SendComm* opening) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(opening_, opening, &std::unique_ptr<SendComm>::get);
  TRIBUTARY_ASSERT(at != opening_.end(), "a connection is taken that is not one of {} that are being made",
                   opening_.size());
  auto taken = std::move(*at);
  opening_.erase(at);
  return taken;
}

std::shared_ptr<Engine> NetContext::engine(int device) {
  const NetDevice* known = device_at(device);
  if (known == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  engines_.resize(devices().size());
  auto& engine = engines_[static_cast<std::size_t>(device)];
  if (engine) return engine;
  auto made = Engine::open(*known, traffic_class_);
  if (!made) {
    warn("device " + known->name + " cannot be used: " + made.error().message);
    return nullptr;
  }
  return engine = std::move(*made);
}

}  // namespace tributary::nccl
