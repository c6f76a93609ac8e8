#include "client/gpu/gpu_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tributary::client::gpu {
namespace {

bool contains(std::span<const std::byte> outer, std::span<const std::byte> inner) noexcept {
  return outer.data() <= inner.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

}  // namespace

class GpuMemory::Block final : public DirectBlock {
 public:
  Block(std::shared_ptr<GpuMemory> gpu, DeviceAddress address, std::size_t bytes)
      : gpu_(std::move(gpu)), address_(address), bytes_(bytes) {
    const std::lock_guard lock(gpu_->mutex_);
    use_ = gpu_->in_use_.emplace(memory().data(), bytes);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() override {
    promise.reset();  // the registration must end before the memory is freed
    gpu_->unuse(use_);
    const Context::Current current(*gpu_->context_);
    if (current.result() == CudaResult::success) gpu_->context_->driver().memory_free(address_);
  }
  [[nodiscard]] std::span<std::byte> memory() const noexcept override {
    return {reinterpret_cast<std::byte*>(address_), bytes_};  // NOLINT(performance-no-int-to-ptr)
  }
  std::unique_ptr<transport::KeptMemory> promise;

 private:
  std::shared_ptr<GpuMemory> gpu_;
  DeviceAddress address_;
  std::size_t bytes_;
  InUse::iterator use_;
};

GpuMemory::GpuMemory(std::shared_ptr<Context> context, const PathChoice& choice, Hooks hooks)
    : context_(std::move(context)), flush_(choice.flush), hooks_(std::move(hooks)) {
  for (const CopyRoute path : choice.ways)
    ways_.push_back(path == CopyRoute::dma_buf ? transport::DeviceWay::dma_buf : transport::DeviceWay::peer_memory);
}

Result<std::shared_ptr<GpuMemory>> GpuMemory::open(std::shared_ptr<Context> context, const PathChoice& choice,
                                                   Hooks hooks) {
  std::shared_ptr<GpuMemory> gpu(new GpuMemory(context, choice, std::move(hooks)));
  auto line = CopyLine::open(context, "tributary-gpu");
  if (!line) return std::unexpected(line.error());
  gpu->line_ = std::move(*line);
  const Context::Current current(*context);
  CudaResult result = current.result();
  if (result == CudaResult::success) result = context->driver().stream_create(gpu->stream_);
  if (result == CudaResult::success) return gpu;
  gpu->stream_ = nullptr;
  return gpu->failed(result, "making a stream on");
}

GpuMemory::~GpuMemory() {
  line_.reset();
  const Context::Current current(*context_);
  if (stream_ != nullptr && current.result() == CudaResult::success) context_->driver().stream_destroy(stream_);
}

std::unexpected<Error> GpuMemory::failed(CudaResult result, const char* what) const {
  return std::unexpected(
      cuda_error(context_->driver(), result, std::string(what) + " GPU " + std::to_string(context_->device())));
}

Result<std::shared_ptr<GpuMemory::Allocation>> GpuMemory::keep(transport::Transport& transport,
                                                               std::span<const std::byte> memory) {
  auto* const takes = dynamic_cast<transport::TakesDeviceMemory*>(&transport);
  if (takes == nullptr) return fail(Errc::unsupported, "the transport cannot reach the memory of GPUs");
  CudaDriver& driver = context_->driver();
  DeviceAddress begin = 0;
  std::size_t bytes = 0;
  std::uint64_t id = 0;
  const Context::Current current(*context_);
  CudaResult result = current.result();
  if (result == CudaResult::success) result = driver.address_range(begin, bytes, address_of(memory.data()));
  if (result == CudaResult::success) result = driver.buffer_id(id, begin);
  if (result != CudaResult::success) return failed(result, "asking for an allocation of");
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const std::span<const std::byte> whole(reinterpret_cast<const std::byte*>(begin), bytes);
  if (!contains(whole, memory)) return fail(Errc::unsupported, "the buffer lies in more than one allocation");
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(allocations_, begin, [](const auto& a) { return address_of(a->memory.data()); });
  if (known != allocations_.end() && (*known)->id == id && (*known)->memory.size() == bytes) {
    ++counts_.known;
    allocations_.splice(allocations_.begin(), allocations_, known);
    return in_use(allocations_.front());
  }
  // Forget the allocations that overlap with this range: their memory was freed.
  counts_.replaced += std::erase_if(allocations_, [&](const auto& a) {
    return a->memory.data() < whole.data() + whole.size() && whole.data() < a->memory.data() + a->memory.size();
  });
  auto made = std::make_shared<Allocation>(whole, id);
  made->promise = takes->keep_device_memory(whole, shared_from_this());
  allocations_.push_front(made);
  ++counts_.kept;
  while (allocations_.size() > kAllocationsMax) {
    allocations_.pop_back();
    ++counts_.dropped;
  }
  return in_use(std::move(made));
}

/// Marks an allocation as in use as long as the returned pointer lives. Call it with mutex_ held; no thread that holds
/// mutex_ may destroy the pointer.
std::shared_ptr<GpuMemory::Allocation> GpuMemory::in_use(std::shared_ptr<Allocation> allocation) {
  const auto use = in_use_.emplace(allocation->memory.data(), allocation->memory.size());
  Allocation* const it = allocation.get();
  return {it, [self = shared_from_this(), allocation = std::move(allocation), use](Allocation*) { self->unuse(use); }};
}

void GpuMemory::unuse(InUse::iterator use) {
  const std::lock_guard lock(mutex_);
  in_use_.erase(use);
}

bool GpuMemory::holds(std::span<const std::byte> memory) const {
  const std::lock_guard lock(mutex_);
  const auto after = in_use_.upper_bound(memory.data());
  if (after == in_use_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);  // live allocations do not overlap
  return contains({begin, bytes}, memory);
}

void GpuMemory::forget(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  counts_.dropped += std::erase_if(allocations_, [&](const auto& a) { return contains(a->memory, memory); });
}

void GpuMemory::tell(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (!told_.insert(line).second) return;
  }
  if (hooks_.tell) hooks_.tell(line);
}

GpuMemory::Counts GpuMemory::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void GpuMemory::note(const Status& status) {
  if (status) return;
  {
    const std::lock_guard lock(mutex_);
    if (!outcome_) return;
    outcome_ = status;
  }
  if (hooks_.failed) hooks_.failed(status.error());
}

void GpuMemory::after_all(std::function<void(const Status&)> done) {
  line_->submit({.flush = flush_,
                 .what = "waiting for GPU " + std::to_string(device()),
                 .done = [self = shared_from_this(), done = std::move(done)](const Status& status) {
                   Status first = status;
                   {
                     const std::lock_guard lock(self->mutex_);
                     if (!self->outcome_) first = self->outcome_;
                   }
                   done(first);
                 }});
}

Result<std::shared_ptr<DirectBlock>> GpuMemory::allocate(transport::Transport& transport, std::size_t bytes) {
  auto* const takes = dynamic_cast<transport::TakesDeviceMemory*>(&transport);
  if (takes == nullptr) return fail(Errc::unsupported, "the transport cannot reach the memory of GPUs");
  DeviceAddress address = 0;
  {
    const Context::Current current(*context_);
    CudaResult result = current.result();
    if (result == CudaResult::success) result = context_->driver().memory_allocate(address, bytes);
    if (result != CudaResult::success) return failed(result, "allocating memory of");
  }
  auto block = std::make_shared<Block>(shared_from_this(), address, bytes);
  block->promise = takes->keep_device_memory(block->memory(), shared_from_this());
  return block;
}

void GpuMemory::copy(std::byte* to, const std::byte* from, std::size_t bytes, std::function<void()> done) {
  line_->submit({.to = address_of(to),
                 .from = address_of(from),
                 .bytes = bytes,
                 .flush = flush_,
                 .what = "copying within GPU " + std::to_string(device()),
                 .done = [self = shared_from_this(), bytes, done = std::move(done)](const Status& status) {
                   self->note(status);
                   if (status) {
                     const std::lock_guard lock(self->mutex_);
                     self->counts_.bytes_within += bytes;
                   }
                   done();
                 }});
}

Result<GpuMemory::DmaBuf> GpuMemory::dma_buf(std::span<const std::byte> memory) {
  const auto page = static_cast<DeviceAddress>(sysconf(_SC_PAGESIZE));
  const DeviceAddress begin = address_of(memory.data()) / page * page;
  const DeviceAddress end = (address_of(memory.data()) + memory.size() + page - 1) / page * page;
  const Context::Current current(*context_);
  DmaBuf buffer{.descriptor = -1, .offset = address_of(memory.data()) - begin};
  CudaResult result = current.result();
  if (result == CudaResult::success)
    result = context_->driver().dma_buf(buffer.descriptor, begin, static_cast<std::size_t>(end - begin));
  if (result != CudaResult::success) return failed(result, "asking for a dma-buf of");
  return buffer;
}

Status GpuMemory::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const Context::Current current(*context_);
  CudaResult result = current.result();
  if (result == CudaResult::success) result = context_->driver().copy(address_of(to), address_of(from), bytes, stream_);
  if (result == CudaResult::success) result = context_->driver().stream_synchronize(stream_);
  if (result != CudaResult::success) return failed(result, "copying a small payload of");
  return {};
}

void GpuMemory::reached(const std::string& network_device, std::optional<transport::DeviceWay> way,
                        const std::string& others) {
  const std::string gpu = "GPU " + std::to_string(device()) + ": RDMA device " + network_device;
  if (way) return tell(gpu + " reads and writes its memory " + to_string(*way) + (others.empty() ? "" : "; ") + others);
  tell(gpu + " does not reach its memory, so data go through pinned host memory; " + others);
}

}  // namespace tributary::client::gpu
