#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {
namespace {

transport::TcpSettings transport_settings(const NetDevice& device) {
  transport::TcpSettings settings;
  settings.bind_address = device.address;
  // A receiver whose GPU is late does not read, for minutes if need be, and its window stays shut: that is no failure.
  // A host that is gone is the system's to find out, by its retransmissions and by keep-alive.
  settings.user_timeout = {};
  return settings;
}

}  // namespace

Engine::Engine(const NetDevice& device) : transport_(transport_settings(device)) {}

std::shared_ptr<Engine> NetContext::engine(int device) {
  const NetDevice* known = device_at(device);
  if (known == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  engines_.resize(devices().size());
  auto& engine = engines_[static_cast<std::size_t>(device)];
  if (!engine) engine = std::make_shared<Engine>(*known);
  return engine;
}

}  // namespace tributary::nccl
