#pragma once
// DPDK's driver over the kernel's packet sockets (net_af_packet). Its buffers have a size of their own (`framesz`) that
// does not follow the interface's MTU: the kernel cuts off bytes that do not fit, and the driver does not report it.
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace tributary::transport::dpdk {

class AfPacket {
 public:
  /// `device` is the device's name with its arguments.
  explicit AfPacket(std::string_view device) noexcept : is_(device.starts_with("net_af_packet")) {
    constexpr std::string_view kKey = ",framesz=";
    const std::size_t at = device.find(kKey);
    if (!is_ || at == std::string_view::npos) return;
    const std::string_view value = device.substr(at + kKey.size());
    std::from_chars(value.data(), value.data() + value.size(), frame_);
  }
  /// The longest packet that a buffer holds whole, in bytes: the kernel puts its own headers before the packet.
  [[nodiscard]] std::uint32_t mtu_max() const noexcept {
    if (!is_) return UINT32_MAX;
    return frame_ > kBefore + kEthernet ? frame_ - kBefore - kEthernet : 0;
  }
  /// The MTU for which the port's buffers must have room: the driver wants them as large as its own buffers for
  /// sending.
  [[nodiscard]] std::uint32_t mtu_of_buffers(std::uint32_t mtu) const noexcept {
    constexpr std::uint32_t kSends = 32 + 18;
    return is_ && frame_ > mtu + kSends ? frame_ - kSends : mtu;
  }
  /// The driver's arguments that make room for an MTU.
  [[nodiscard]] static std::string advice(std::uint32_t mtu) {
    constexpr std::uint32_t kPage = 4096;
    const std::string bytes = std::to_string((mtu + kBefore + kEthernet + kPage - 1) / kPage * kPage);
    return "framesz=" + bytes + ",blocksz=" + bytes;
  }

 private:
  // Bytes before the packet, as the kernel's tpacket_rcv() computes them: it aligns the sum of its own header, an
  // address and the room for a link's header; the link's header ends at that place.
  static constexpr std::uint32_t kBefore = 66;
  static constexpr std::uint32_t kEthernet = 14;
  const bool is_;
  std::uint32_t frame_ = 2048;
};

}  // namespace tributary::transport::dpdk
