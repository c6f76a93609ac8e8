#pragma once
// The headers of all datagrams from one port to another, made once. Only two lengths and two checksums differ from
// datagram to datagram.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/ethernet/addresses.h"
#include "transport/ethernet/checksum.h"
#include "transport/ethernet/frame.h"

namespace tributary::transport::ethernet {

struct UdpFlow {
  MacAddress from_mac;
  MacAddress to_mac;
  std::uint16_t vlan = 0;  // 0: untagged
  IpAddress from{};        // address of the same family as `to`
  IpAddress to{};
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::capable_0;
};

/// The checksums that the device fills in. It wants UDP's field to hold the sum of the pseudo header, and IPv4's field
/// to be 0.
struct ChecksumsByDevice {
  bool ip = false;
  bool udp = false;
};

class UdpTemplate {
 public:
  UdpTemplate() = default;
  UdpTemplate(const UdpFlow& flow, ChecksumsByDevice device) noexcept;

  /// The number of bytes of all headers.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t ip_bytes() const noexcept { return ipv4_ ? kIpv4Bytes : kIpv6Bytes; }
  [[nodiscard]] bool ipv4() const noexcept { return ipv4_; }
  /// Writes bytes() to `at`. `payload_sum` is used only if the device does not compute UDP's checksum.
  void write(std::byte* at, std::size_t payload_bytes, PartialSum payload_sum) const noexcept;

 private:
  std::array<std::byte, kUdpHeadersBytesMax> headers_{};
  std::uint8_t bytes_ = 0;
  std::uint8_t ip_at_ = 0;
  bool ipv4_ = false;
  ChecksumsByDevice device_;
  PartialSum ip_sum_ = 0;   // sum of IPv4's header without its length
  PartialSum udp_sum_ = 0;  // sum of the pseudo header and UDP's header, without lengths
};

}  // namespace tributary::transport::ethernet
