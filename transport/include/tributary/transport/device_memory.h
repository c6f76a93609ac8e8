#pragma once
// Memory that the processor does not reach, a GPU's, for transports whose network devices may reach it by themselves.
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

/// How a network device gets at it.
enum class DeviceWay : std::uint8_t {
  dma_buf,      // the kernel hands it over, page by page
  peer_memory,  // the memory's own kernel module answers for its addresses
};
[[nodiscard]] constexpr const char* to_string(DeviceWay way) noexcept {
  return way == DeviceWay::dma_buf ? "as a dma-buf" : "by nvidia_peermem";
}

/// The memory of one such device, by its driver. Called on the transport's thread.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Those worth trying, in this order.
  [[nodiscard]] virtual std::vector<DeviceWay> ways() const = 0;
  struct DmaBuf {
    int descriptor = -1;       // the caller closes it
    std::uint64_t offset = 0;  // of the memory's first byte in it
  };
  [[nodiscard]] virtual Result<DmaBuf> dma_buf(std::span<const std::byte> memory) = 0;
  /// Few bytes, from or to it; they are there when this returns.
  [[nodiscard]] virtual Status copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// All of this is certainly its memory now: it is in use. What is kept only because it may be used again may have
  /// been freed meanwhile, and have the processor's memory at its addresses; what is registered of it counts for
  /// nothing as long as this is false.
  [[nodiscard]] virtual bool holds(std::span<const std::byte> memory) const = 0;
  /// The way by which a network device has reached some of it; none if no way did. `others`: why each way before it did
  /// not. Told for every registration.
  virtual void reached(const std::string& network_device, std::optional<DeviceWay> way, const std::string& others) = 0;
};

/// What a Transport may be, too.
class TakesDeviceMemory {
 public:
  virtual ~TakesDeviceMemory() = default;
  /// `memory` is `owner`'s, and does not go away before the promise ends. Its channels reach it when they are asked to.
  /// On the transport's thread; the promise may end on any.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                                       std::shared_ptr<DeviceMemory> owner) = 0;
};

/// What a Channel may be, too.
class ReachesDeviceMemory {
 public:
  virtual ~ReachesDeviceMemory() = default;
  /// From now on payloads may be sent from this memory, and be placed there; it was kept by the transport. Cheap when
  /// it is so already. The error says why the network device does not reach it.
  [[nodiscard]] virtual Status reach(std::span<const std::byte> memory) = 0;
};

}  // namespace tributary::transport
