#include "aggregator/daemon/rdma_door.h"

#include <pthread.h>

namespace tributary::aggregator {

namespace {

constexpr auto kRdmaTurn = std::chrono::milliseconds(50);

}  // namespace

Result<std::unique_ptr<RdmaDoor>> RdmaDoor::open(const VerbsModule& verbs, const std::vector<Endpoint>& listen,
                                                 VerbsModule::Route route) {
  std::unique_ptr<RdmaDoor> door(new RdmaDoor);
  auto transport = verbs.make({.spin_max = {}});
  if (!transport) return std::unexpected(transport.error());
  door->transport_ = std::move(*transport);
  door->places_ = std::make_unique<ListenPlaces>(
      listen, ListenWays{.open = [&verbs, &transport = *door->transport_, route = std::move(route)](
                                     const Endpoint& at) { return verbs.listen_for(transport, at, route); },
                         .probe = verbs.address_lives,
                         .reopens = true});
  if (auto ok = door->places_->open(); !ok) return std::unexpected(ok.error());
  door->thread_ = std::jthread([&door = *door](const std::stop_token& stop) { door.run(stop); });
  return door;
}

void RdmaDoor::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "rdma-door");
  while (!stop.stop_requested()) {
    transport_->poll(kRdmaTurn);
    places_->tick(transport_->now());
    last_turn_.store(std::chrono::steady_clock::now().time_since_epoch(), std::memory_order_relaxed);
  }
}

RdmaDoor::~RdmaDoor() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  transport_->post([] {});  // wakes the door's thread
  thread_.join();
}

}  // namespace tributary::aggregator
