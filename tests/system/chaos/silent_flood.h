#pragma once
// Strangers: connections to every TCP port on which some processes listen. The strangers send no bytes, and connect
// again as soon as a connection is closed.
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

namespace tributary::chaos {

/// Runs on a separate thread during the lifetime of this object.
class SilentFlood {
 public:
  /// Keeps `connections` open to each port at the same time. It finds ports that a process opens later within 20 ms.
  SilentFlood(std::vector<pid_t> processes, std::size_t connections);
  SilentFlood(const SilentFlood&) = delete;
  SilentFlood& operator=(const SilentFlood&) = delete;
  ~SilentFlood();

  /// Counts the ports that have had `connections` connections.
  [[nodiscard]] std::size_t ports_full() const noexcept { return ports_full_.load(); }
  /// Counts the connections that the other side closed, and that this object made again.
  [[nodiscard]] std::uint64_t displaced() const noexcept { return displaced_.load(); }

 private:
  void run();
  void find_ports();
  void fill(std::uint16_t port, std::vector<int>& connections);

  const std::vector<pid_t> processes_;
  const std::size_t connections_;
  std::map<std::uint16_t, std::vector<int>> ports_;
  std::atomic<std::size_t> ports_full_{0};
  std::atomic<std::uint64_t> displaced_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace tributary::chaos
