#pragma once
// One GPU whose memory the network's devices may reach. This class asks the driver for the transport, orders all work
// in the GPU for direct operations, and keeps allocations registered.
//
// It registers a whole allocation when an operation first uses it, and recognizes the allocation later by the driver's
// number: memory that was freed and allocated again has another number. It keeps only the
// latest used allocations; an allocation that an operation uses stays until the operation ends. The library does not
// learn when memory is freed, and the freed addresses may belong to the host afterwards. So holds() returns true only
// for allocations that an operation uses, although other allocations are registered, too.
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/gpu/copy_line.h"
#include "client/gpu/path_choice.h"
#include "client/operation/direct_memory.h"
#include "tributary/transport/device_memory.h"

namespace tributary::client::gpu {

class GpuMemory final : public DirectDevice,
                        public transport::DeviceMemory,
                        public std::enable_shared_from_this<GpuMemory> {
 public:
  static constexpr std::size_t kAllocationsMax = 128;
  struct Hooks {
    std::function<void()> arrived;                 // called by DirectDevice::wake(), on any thread
    std::function<void(const Error&)> failed;      // called, on any thread, if a copy fails that other parts need
    std::function<void(const std::string&)> tell;  // gets a line for the log
  };
  struct Counts {
    std::uint64_t kept = 0, known = 0, replaced = 0, dropped = 0;  // counts of allocations
    std::uint64_t bytes_within = 0;                                // bytes that copy() has copied
  };

  [[nodiscard]] static Result<std::shared_ptr<GpuMemory>> open(std::shared_ptr<Context> context,
                                                               const PathChoice& choice, Hooks hooks);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() override;

  /// One allocation, registered with a transport for as long as this object lives.
  struct Allocation {
    std::span<const std::byte> memory;
    std::uint64_t id = 0;
    std::unique_ptr<transport::KeptMemory> promise;
    std::optional<Error> refused;  // final refusal by a network device; only the communicator's thread uses it
  };
  /// Returns the allocation that contains this memory; it counts as in use as long as the returned pointer lives.
  /// Called on the transport's thread.
  [[nodiscard]] Result<std::shared_ptr<Allocation>> keep(transport::Transport& transport,
                                                         std::span<const std::byte> memory);
  /// Drops the registrations of memory that the caller will not use again. Any thread may call it.
  void forget(std::span<const std::byte> memory);
  /// Logs a line, unless the same line was logged before.
  void tell(const std::string& line);
  /// Calls `done` when all earlier copies have ended and the network's writes are visible to the GPU. Passes the first
  /// error of any copy.
  void after_all(std::function<void(const Status&)> done);
  [[nodiscard]] CopyLine& line() noexcept { return *line_; }
  [[nodiscard]] bool flushes() const noexcept { return flush_; }
  [[nodiscard]] int device() const noexcept { return context_->device(); }
  [[nodiscard]] Counts counts() const;

  // Functions of DirectDevice.
  [[nodiscard]] Result<std::shared_ptr<DirectBlock>> allocate(transport::Transport& transport,
                                                              std::size_t bytes) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) override;
  void wake() override { hooks_.arrived(); }

  // Functions of transport::DeviceMemory.
  [[nodiscard]] std::vector<transport::DeviceWay> ways() const override { return ways_; }
  [[nodiscard]] Result<DmaBuf> dma_buf(std::span<const std::byte> memory) override;
  [[nodiscard]] Status copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  [[nodiscard]] bool holds(std::span<const std::byte> memory) const override;
  void reached(const std::string& network_device, std::optional<transport::DeviceWay> way,
               const std::string& others) override;

 private:
  class Block;
  using InUse = std::multimap<const std::byte*, std::size_t>;
  void unuse(InUse::iterator use);
  [[nodiscard]] std::shared_ptr<Allocation> in_use(std::shared_ptr<Allocation> allocation);
  GpuMemory(std::shared_ptr<Context> context, const PathChoice& choice, Hooks hooks);
  [[nodiscard]] std::unexpected<Error> failed(kernels::cuda::CudaResult result, const char* what) const;
  void note(const Status& status);

  const std::shared_ptr<Context> context_;
  const bool flush_;
  std::vector<transport::DeviceWay> ways_;
  const Hooks hooks_;
  std::unique_ptr<CopyLine> line_;
  kernels::cuda::StreamHandle stream_ = nullptr;  // stream for the copies for which the transport's thread waits
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Allocation>> allocations_;  // latest use first; mutex_ guards this member and all below
  InUse in_use_;                                        // memory in use: number of bytes by start
  std::set<std::string> told_;
  Counts counts_;
  Status outcome_;  // the first error of a copy
};

}  // namespace tributary::client::gpu
