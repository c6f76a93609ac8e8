#pragma once
// The port for connections over UDP. A child names its group and lane, and the door answers with the port of the worker
// that serves that lane. The door keeps no state. The worker checks the child's address, reads the join frame and
// verifies its token.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "tributary/transport/udp.h"

namespace tributary::aggregator {

class UdpDoor {
 public:
  /// Listens, and serves on its own thread, which calls `route`.
  [[nodiscard]] static Result<std::unique_ptr<UdpDoor>> open(const Endpoint& listen,
                                                             const transport::UdpSettings& settings,
                                                             transport::UdpTransport::Route route);
  /// Serves in the same way, with a transport that listens already, for example over a DPDK device.
  [[nodiscard]] static std::unique_ptr<UdpDoor> serve(std::unique_ptr<transport::Transport> transport,
                                                      std::unique_ptr<transport::Listener> listener);
  ~UdpDoor();
  UdpDoor(const UdpDoor&) = delete;
  UdpDoor& operator=(const UdpDoor&) = delete;

  // ---- Calls of any thread
  [[nodiscard]] Endpoint local() const { return local_; }
  [[nodiscard]] std::chrono::steady_clock::time_point last_turn() const noexcept {
    return std::chrono::steady_clock::time_point(last_turn_.load(std::memory_order_relaxed));
  }

 private:
  UdpDoor() = default;
  void run(const std::stop_token& stop);

  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<transport::Listener> listener_;
  Endpoint local_;
  std::atomic<std::chrono::steady_clock::duration> last_turn_{std::chrono::steady_clock::now().time_since_epoch()};
  std::jthread thread_;  // declared last, because it uses all members above
};

}  // namespace tributary::aggregator
