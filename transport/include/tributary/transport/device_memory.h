#pragma once
// Memory that the processor does not reach, such as a GPU's, for transports whose network devices may reach it.
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

/// How a network device gets at such memory.
enum class DeviceWay : std::uint8_t {
  dma_buf,      // the kernel hands it over, page by page
  peer_memory,  // the memory's own kernel module answers for its addresses
};
[[nodiscard]] constexpr const char* to_string(DeviceWay way) noexcept {
  return way == DeviceWay::dma_buf ? "as a dma-buf" : "by nvidia_peermem";
}

/// The memory of one such device, as its driver gives it. Called on the transport's thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// The ways that are worth trying, in this order.
  [[nodiscard]] virtual std::vector<DeviceWay> ways() const = 0;
  struct DmaBuf {
    int descriptor = -1;       // the caller closes it
    std::uint64_t offset = 0;  // of the memory's first byte in it
  };
  [[nodiscard]] virtual Result<DmaBuf> dma_buf(std::span<const std::byte> memory) = 0;
  /// Copies a few bytes from or to the device; they are there when this returns.
  [[nodiscard]] virtual Status copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// All of `memory` is in use, and so is certainly this device's. Memory that is kept only because it may be used
  /// again may have been freed meanwhile, and the processor's memory may have its addresses now: while this is false,
  /// no registration of it is used.
  [[nodiscard]] virtual bool holds(std::span<const std::byte> memory) const = 0;
  /// Tells by which way `network_device` has reached some of this memory; none if no way did. `others`: why each way
  /// that was tried before failed. Called for every registration.
  virtual void reached(const std::string& network_device, std::optional<DeviceWay> way, const std::string& others) = 0;
};

/// A transport that may implement this, too.
class TakesDeviceMemory {
 public:
  virtual ~TakesDeviceMemory() = default;
  /// `memory` is `owner`'s, and does not go away before the promise ends. Channels of this transport reach it after
  /// ReachesDeviceMemory::reach(). On the transport's thread; the promise may end on any thread.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                                       std::shared_ptr<DeviceMemory> owner) = 0;
};

/// A channel that may implement this, too.
class ReachesDeviceMemory {
 public:
  virtual ~ReachesDeviceMemory() = default;
  /// From now on payloads may be sent from this memory, and be placed there; the transport keeps it already
  /// (keep_device_memory). Cheap from the second call on. The error says why the network device does not reach it.
  [[nodiscard]] virtual Status reach(std::span<const std::byte> memory) = 0;
};

}  // namespace tributary::transport
