#pragma once
// Buffers of an operation that the transport's network device reaches and the processor does not, as a GPU's: it goes
// through a tree as it is. Whatever takes it off the tree makes a staged operation of it first, and everything else
// than the lanes of the tree meets it in host memory alone.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "client/operation/staged_memory.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// Memory of such a device, ours. Any thread may end it: after every copy that was begun with it.
class DirectBlock {
 public:
  virtual ~DirectBlock() = default;
  [[nodiscard]] virtual std::span<std::byte> memory() const noexcept = 0;
};

/// Where the buffers lie.
class DirectDevice {
 public:
  virtual ~DirectDevice() = default;
  /// Kept registered with this transport. On the communicator's thread, as copy().
  [[nodiscard]] virtual Result<std::shared_ptr<DirectBlock>> allocate(transport::Transport& transport,
                                                                      std::size_t bytes) = 0;
  /// Within the device, or between it and the host: one after the other, in the order of the calls, and of what the
  /// network device has written before. `done`, on any thread, when it has ended; if it has failed, that is told
  /// elsewhere and ends the communicator.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) = 0;
  /// Communicator::staged_input_arrived() will be called soon. Any thread.
  virtual void wake() = 0;
};

/// Called on the communicator's thread.
class DirectMemory {
 public:
  virtual ~DirectMemory() = default;
  [[nodiscard]] virtual const std::shared_ptr<DirectDevice>& device() const noexcept = 0;
  /// Keeps the buffers registered with this transport for as long as the operation lives; what lanes must reach. The
  /// error says why this transport cannot have them.
  [[nodiscard]] virtual Result<std::vector<std::span<const std::byte>>> keep(transport::Transport& transport) = 0;
  /// What the operation goes on with instead: its input, and, `with_results`, the results that it has, come after
  /// everything that was copied before. Once; nothing of the network touches the buffers any more. `why`: what was the
  /// matter with the way of the buffers, if anything was.
  struct InHostMemory {
    const std::byte* send = nullptr;
    std::byte* recv = nullptr;
    std::shared_ptr<StagedMemory> staged;
  };
  [[nodiscard]] virtual Result<InHostMemory> materialize(bool with_results, const Status& why) = 0;
};

}  // namespace tributary::client
