#pragma once
// One GPU whose memory the network's devices may reach: it answers the transport's questions to the driver, orders all
// work in the GPU for operations that go direct, and holds the allocations that are kept registered.
//
// An allocation is registered as a whole when an operation first names it, and recognized later by the driver's number
// for it: memory that was freed and allocated again has another number. A limited number is kept, the most recently
// used first; allocations that operations use stay until these end. Nothing tells the library when memory is freed, and
// its addresses may belong to the host afterwards; so holds() answers only for allocations that an operation uses,
// though others are kept, too.
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
    std::function<void()> arrived;                 // DirectDevice::wake(); any thread
    std::function<void(const Error&)> failed;      // a copy failed that other parts wait for; any thread
    std::function<void(const std::string&)> tell;  // a line for the log
  };
  struct Counts {
    std::uint64_t kept = 0, known = 0, replaced = 0, dropped = 0;  // allocations
    std::uint64_t bytes_within = 0;                                // copied by copy()
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
    std::optional<Error> refused;  // a network device refused it for good; used on the communicator's thread
  };
  /// Returns the allocation that holds this memory; it is in use as long as the returned pointer lives. Called on the
  /// transport's thread.
  [[nodiscard]] Result<std::shared_ptr<Allocation>> keep(transport::Transport& transport,
                                                         std::span<const std::byte> memory);
  /// Drops the registrations of memory that the caller will not use any more. Any thread.
  void forget(std::span<const std::byte> memory);
  /// Logs each text once.
  void tell(const std::string& line);
  /// Calls `done` when all earlier copies have ended and the GPU sees what the network wrote, with the first error of
  /// any copy.
  void after_all(std::function<void(const Status&)> done);
  [[nodiscard]] CopyLine& line() noexcept { return *line_; }
  [[nodiscard]] bool flushes() const noexcept { return flush_; }
  [[nodiscard]] int device() const noexcept { return context_->device(); }
  [[nodiscard]] Counts counts() const;

  // ---- DirectDevice
  [[nodiscard]] Result<std::shared_ptr<DirectBlock>> allocate(transport::Transport& transport,
                                                              std::size_t bytes) override;
  void copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) override;
  void wake() override { hooks_.arrived(); }

  // ---- transport::DeviceMemory
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
  kernels::cuda::StreamHandle stream_ = nullptr;  // stream of the copies for which the transport's thread waits
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Allocation>> allocations_;  // under mutex_, like all below; most recently used first
  InUse in_use_;                                        // ranges: bytes by begin
  std::set<std::string> told_;
  Counts counts_;
  Status outcome_;  // the first error of a copy
};

}  // namespace tributary::client::gpu
