#pragma once
// Two devices in one process, and a wire between them over which the test carries frames. The test sees each datagram's
// traffic class, and marks any datagrams, as a router with a queue would.
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>

struct rte_mempool;
struct rte_ring;

namespace tributary::transport::dpdk::test {

/// The lower two bits of the traffic class (RFC 3168).
enum class Mark : std::uint8_t { not_capable = 0, capable = 2, congested = 3 };

class MarkingWire {
 public:
  MarkingWire();
  MarkingWire(const MarkingWire&) = delete;
  MarkingWire& operator=(const MarkingWire&) = delete;

  /// The names of two devices, for DeviceSettings::device; they live as long as the process.
  [[nodiscard]] const std::array<std::string, 2>& devices() const noexcept { return devices_; }
  /// Carries all frames that the device `from` (0 or 1) has sent to the other device, and gives UDP's datagrams the
  /// mark. Returns the number of datagrams, and writes to `said` the marks that they had before.
  std::size_t carry(std::size_t from, Mark with);
  std::set<Mark> said;
  /// Sends a frame that the network itself makes to the device `to`, in a buffer of `pool`.
  void put(std::size_t to, rte_mempool* pool, std::span<const std::byte> frame);

 private:
  std::array<rte_ring*, 2> sent_{};  // frames that each device has sent
  std::array<rte_ring*, 2> to_come_{};
  std::array<std::string, 2> devices_;
};

}  // namespace tributary::transport::dpdk::test
