#pragma once
// The port for connections over UDP. A child says which group and lane it is for, and the door answers with the port of
// the worker that serves that lane. The door remembers nothing; the worker proves the child's address, reads the join
// frame and verifies its token.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "tributary/transport/udp.h"

namespace tributary::aggregator {

class UdpDoor {
 public:
  /// Listens, and serves on a thread of its own, which asks `route`.
  [[nodiscard]] static Result<std::unique_ptr<UdpDoor>> open(const Endpoint& listen,
                                                             const transport::UdpSettings& settings,
                                                             transport::UdpTransport::Route route);
  /// Serves likewise with a transport that listens already, over a DPDK device for example.
  [[nodiscard]] static std::unique_ptr<UdpDoor> serve(std::unique_ptr<transport::Transport> transport,
                                                      std::unique_ptr<transport::Listener> listener);
  ~UdpDoor();
  UdpDoor(const UdpDoor&) = delete;
  UdpDoor& operator=(const UdpDoor&) = delete;

  // ---- any thread
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
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace tributary::aggregator
