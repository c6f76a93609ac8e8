#pragma once
// Devices, addresses and shaped links of one network namespace.
#include <array>
#include <cstdint>
#include <string>

#include "client/cli/network/netlink.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint32_t kHostMtu = 9000;
inline constexpr std::uint32_t kFrameBytes = kHostMtu + 14;

using MacAddress = std::array<std::uint8_t, 6>;
using Ipv4Address = std::array<std::uint8_t, 4>;

/// The limits of a link with some rate. One frame must always fit, and a segment that the kernel splits late must be
/// only a little longer than the bucket.
struct LinkShape {
  std::uint64_t bytes_per_second = 0;
  std::uint32_t burst_bytes = 0;    // bytes of 125 us at this rate, at least two frames
  std::uint32_t queue_bytes = 0;    // bytes of 4 ms at this rate, at least 256 KiB
  std::uint32_t segment_bytes = 0;  // bytes of 0.5 ms at this rate, from two frames to 64 KiB, the stack's limit
};
[[nodiscard]] LinkShape shape_for(std::uint64_t bits_per_second);

/// The links of the namespace in which open() was called; this thread must keep the object. Errors name the request
/// that the kernel refused.
class Links {
 public:
  [[nodiscard]] static Result<Links> open();

  [[nodiscard]] Status add_bridge(const std::string& name);
  /// Adds two devices that are the ends of one cable; the second device is in another namespace.
  [[nodiscard]] Status add_cable(const std::string& name, const std::string& other, int other_namespace);
  [[nodiscard]] Status plug_in(const std::string& port, const std::string& bridge);
  [[nodiscard]] Status set_address(const std::string& device, const MacAddress& address);
  [[nodiscard]] Status bring_up(const std::string& device, std::uint32_t mtu);
  [[nodiscard]] Status limit_segments(const std::string& device, std::uint32_t bytes);
  [[nodiscard]] Status add_address(const std::string& device, const Ipv4Address& address, std::uint8_t prefix_bits);
  /// Adds a neighbour's permanent address, so that no host asks for this address during a measurement.
  [[nodiscard]] Status add_neighbour(const std::string& device, const Ipv4Address& address, const MacAddress& at);
  /// Limits the rate of packets that leave the device: a token bucket with a short queue after it.
  [[nodiscard]] Status shape(const std::string& device, const LinkShape& shape);

 private:
  explicit Links(NetlinkSocket socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Status add_bucket(int index);
  [[nodiscard]] Status add_rate(int index, const LinkShape& shape);
  [[nodiscard]] Status add_queue(int index, const LinkShape& shape);
  NetlinkSocket socket_;
};

}  // namespace tributary::cli
