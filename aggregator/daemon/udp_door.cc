#include "aggregator/daemon/udp_door.h"

#include <pthread.h>

namespace tributary::aggregator {

namespace {

constexpr auto kUdpTurn = std::chrono::milliseconds(50);

}  // namespace

Result<std::unique_ptr<UdpDoor>> UdpDoor::open(const Endpoint& listen, const transport::UdpSettings& settings,
                                               transport::UdpTransport::Route route) {
  auto transport = std::make_unique<transport::UdpTransport>(settings);
  auto listener = transport->listen_for(listen, std::move(route));
  if (!listener) return std::unexpected(listener.error());
  return serve(std::move(transport), std::move(*listener));
}

std::unique_ptr<UdpDoor> UdpDoor::serve(std::unique_ptr<transport::Transport> transport,
                                        std::unique_ptr<transport::Listener> listener) {
  std::unique_ptr<UdpDoor> door(new UdpDoor);
  door->transport_ = std::move(transport);
  door->listener_ = std::move(listener);
  door->local_ = door->listener_->local();
  door->thread_ = std::jthread([&door = *door](const std::stop_token& stop) { door.run(stop); });
  return door;
}

void UdpDoor::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "udp-door");
  while (!stop.stop_requested()) {
    transport_->poll(kUdpTurn);
    last_turn_.store(std::chrono::steady_clock::now().time_since_epoch(), std::memory_order_relaxed);
  }
}

UdpDoor::~UdpDoor() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  transport_->post([] {});  // wakes the door's thread
  thread_.join();
}

}  // namespace tributary::aggregator
