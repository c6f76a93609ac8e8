#pragma once
// Buffers that only the network device can reach, not the processor, such as a GPU's: their operation goes through a
// tree without copies. Only the tree's lanes use such buffers: an operation that leaves the tree first becomes a staged
// operation, whose buffers are in host memory.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "client/operation/staged_memory.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// Memory of a DirectDevice that the library owns. Any thread may destroy it, after every copy that uses it has begun.
class DirectBlock {
 public:
  virtual ~DirectBlock() = default;
  [[nodiscard]] virtual std::span<std::byte> memory() const noexcept = 0;
};

/// The device that holds the buffers.
class DirectDevice {
 public:
  virtual ~DirectDevice() = default;
  /// Allocates memory that stays registered with this transport. Called on the communicator's thread, like copy().
  [[nodiscard]] virtual Result<std::shared_ptr<DirectBlock>> allocate(transport::Transport& transport,
                                                                      std::size_t bytes) = 0;
  /// Copies within the device, or between the device and the host, in the order of the calls, and after all earlier
  /// writes of the network device. Calls `done`, on any thread, when the copy has ended. A failed copy is not reported
  /// to the caller: it ends the communicator.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) = 0;
  /// Makes the communicator's thread call Communicator::staged_input_arrived() soon. Called on any thread.
  virtual void wake() = 0;
};

/// The buffers of one operation on a DirectDevice. The communicator's thread makes all calls.
class DirectMemory {
 public:
  virtual ~DirectMemory() = default;
  [[nodiscard]] virtual const std::shared_ptr<DirectDevice>& device() const noexcept = 0;
  /// Keeps the buffers registered with this transport for as long as the operation lives, and returns the spans that
  /// lanes must reach. The error says why this transport cannot register them.
  [[nodiscard]] virtual Result<std::vector<std::span<const std::byte>>> keep(transport::Transport& transport) = 0;
  /// The buffers in host memory with which the operation goes on: its input and, if with_results, the results so far.
  /// They arrive after everything that was copied before. Called once; after the call the network does not touch
  /// the device's buffers. `why` is an error if the direct way failed; its message goes to the log.
  struct InHostMemory {
    const std::byte* send = nullptr;
    std::byte* recv = nullptr;
    std::shared_ptr<StagedMemory> staged;
  };
  [[nodiscard]] virtual Result<InHostMemory> materialize(bool with_results, const Status& why) = 0;
};

}  // namespace tributary::client
