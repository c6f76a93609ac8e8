#pragma once
// Memory that the processor cannot access, such as a GPU's, for transports whose network devices may access it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"

namespace tributary::transport {

/// The way by which a network device reaches memory of another device.
enum class DeviceWay : std::uint8_t {
  dma_buf,      // the kernel tells the network device the memory's pages
  peer_memory,  // a kernel module of the other device translates the memory's addresses for the network device
};
[[nodiscard]] constexpr const char* to_string(DeviceWay way) noexcept {
  return way == DeviceWay::dma_buf ? "as a dma-buf" : "by nvidia_peermem";
}

/// The memory of one device, as its driver gives it. The transport calls these functions on its own thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// The ways to try, in this order.
  [[nodiscard]] virtual std::vector<DeviceWay> ways() const = 0;
  struct DmaBuf {
    int descriptor = -1;       // the caller closes it
    std::uint64_t offset = 0;  // offset of the memory's first byte in the dma-buf
  };
  [[nodiscard]] virtual Result<DmaBuf> dma_buf(std::span<const std::byte> memory) = 0;
  /// Copies a few bytes from or to the device; the copy is complete when the call returns.
  [[nodiscard]] virtual Status copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// True if all of `memory` is in use, and therefore certainly belongs to this device. Memory that is kept only for a
  /// later use may have been freed meanwhile, and memory of the processor may have its addresses now. While this is
  /// false, the transport does not use a registration of that memory.
  [[nodiscard]] virtual bool holds(std::span<const std::byte> memory) const = 0;
  /// Reports the way by which `network_device` has reached a part of this memory; none if no way worked. `others` has
  /// the reason why each earlier way failed. The transport calls this for every registration.
  virtual void reached(const std::string& network_device, std::optional<DeviceWay> way, const std::string& others) = 0;
};

/// An interface that a transport may implement besides Transport.
class TakesDeviceMemory {
 public:
  virtual ~TakesDeviceMemory() = default;
  /// Takes the caller's promise that `memory`, which belongs to `owner`, lives until the promise ends. Channels of this
  /// transport may use it after ReachesDeviceMemory::reach(). Must run on the transport's thread; the promise may end
  /// on any thread.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                                       std::shared_ptr<DeviceMemory> owner) = 0;
};

/// An interface that a channel may implement besides Channel.
class ReachesDeviceMemory {
 public:
  virtual ~ReachesDeviceMemory() = default;
  /// Allows the caller to send payloads from this memory, and to receive them there. The caller must have passed it to
  /// keep_device_memory(). Later calls are cheap. The error says why the network device does not reach the memory.
  [[nodiscard]] virtual Status reach(std::span<const std::byte> memory) = 0;
};

}  // namespace tributary::transport
