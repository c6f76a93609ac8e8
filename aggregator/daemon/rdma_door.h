#pragma once
// The door for connections over RDMA. A connect request names its group and lane, so the door can pass it to the worker
// that serves the lane before a queue pair exists. The worker makes the queue pair, reads the join frame and verifies
// its token.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "aggregator/daemon/listen_places.h"
#include "aggregator/modules/verbs_module.h"

namespace tributary::aggregator {

class RdmaDoor {
 public:
  /// Listens, and serves on its own thread. All transports that `route` returns must outlive the door.
  [[nodiscard]] static Result<std::unique_ptr<RdmaDoor>> open(const VerbsModule& verbs,
                                                              const std::vector<Endpoint>& listen,
                                                              VerbsModule::Route route);
  ~RdmaDoor();
  RdmaDoor(const RdmaDoor&) = delete;
  RdmaDoor& operator=(const RdmaDoor&) = delete;

  // ---- Calls of any thread
  [[nodiscard]] ListenPlaces& places() const noexcept { return *places_; }
  [[nodiscard]] std::chrono::steady_clock::time_point last_turn() const noexcept {
    return std::chrono::steady_clock::time_point(last_turn_.load(std::memory_order_relaxed));
  }

 private:
  RdmaDoor() = default;
  void run(const std::stop_token& stop);

  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<ListenPlaces> places_;
  std::atomic<std::chrono::steady_clock::duration> last_turn_{std::chrono::steady_clock::now().time_since_epoch()};
  std::jthread thread_;  // declared last, because it uses all members above
};

}  // namespace tributary::aggregator
