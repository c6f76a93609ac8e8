#include "client/gpu/stager.h"

#include <algorithm>
#include <new>

#include "client/gpu/memory_kind.h"

namespace tributary::client::gpu {

Result<Stager::Gpu> Stager::open(int device) const {
  auto driver = kernels::cuda::cuda_driver_of_process();
  if (!driver) return std::unexpected(driver.error());
  if (*driver == nullptr) return fail(Errc::unsupported, "this process has no CUDA driver loaded");
  const PathChoice choice = hooks_.choose ? hooks_.choose(**driver, device) : PathChoice{};
  auto context = Context::retain(**driver, device);
  if (!context) return std::unexpected(context.error());
  auto down = CopyLine::open(*context, "tributary-down");
  if (!down) return std::unexpected(down.error());
  auto up = CopyLine::open(*context, "tributary-up");
  if (!up) return std::unexpected(up.error());
  auto pool = std::make_shared<PinnedPool>(*context, hooks_.keep);
  Gpu gpu{std::move(*context), std::move(pool), std::move(*down), std::move(*up), nullptr};
  if (choice.path == CopyRoute::staging) return gpu;
  auto memory = GpuMemory::open(gpu.context, choice,
                                {.arrived = hooks_.call.arrived, .failed = hooks_.call.failed, .tell = hooks_.tell});
  if (!memory) return std::unexpected(memory.error());
  gpu.memory = std::move(*memory);
  return gpu;
}

Result<Stager::Gpu*> Stager::gpu(int device) {
  const std::lock_guard lock(mutex_);
  if (const auto known = gpus_.find(device); known != gpus_.end()) return &known->second;
  auto made = open(device);
  if (!made) return std::unexpected(made.error());
  return &gpus_.emplace(device, std::move(*made)).first->second;
}

Status Stager::prepare(int device) {
  const auto ready = gpu(device);
  return ready ? Status{} : std::unexpected(ready.error());
}

namespace {

/// The GPUs in whose memory the buffers of a call lie; nullopt: a buffer is in host memory, or has no bytes.
struct Devices {
  std::optional<int> send, recv;
};

/// Looks for the driver only once: the search takes a lock of the dynamic linker, and each call does it.
Result<Devices> devices_of(const CallBuffers& buffers) {
  const auto driver = kernels::cuda::cuda_driver_of_process();
  if (!driver) return std::unexpected(driver.error());
  Devices devices;
  if (*driver == nullptr) return devices;
  if (buffers.send_bytes > 0) devices.send = device_of(**driver, buffers.send);
  if (buffers.recv_bytes > 0) devices.recv = device_of(**driver, buffers.recv);
  return devices;
}

using TakeBlock = std::function<Result<std::byte*>(std::size_t bytes)>;

/// Makes buffers of the same sizes in blocks of host memory; a buffer without its `take` function stays where it is. If
/// one buffer lies in the other, both share one block, and have the same places relative to each other.
Result<CallBuffers> in_host_memory(const CallBuffers& buffers, const TakeBlock& take_send, const TakeBlock& take_recv) {
  CallBuffers host = buffers;
  if (buffers.in_place) {
    const std::byte* const begin = std::min<const std::byte*>(buffers.send, buffers.recv);
    const std::byte* const end =
        std::max<const std::byte*>(buffers.send + buffers.send_bytes, buffers.recv + buffers.recv_bytes);
    const auto block = (take_send ? take_send : take_recv)(static_cast<std::size_t>(end - begin));
    if (!block) return std::unexpected(block.error());
    host.send = *block + (buffers.send - begin);
    host.recv = *block + (buffers.recv - begin);
    return host;
  }
  if (take_send) {
    const auto block = take_send(buffers.send_bytes);
    if (!block) return std::unexpected(block.error());
    host.send = *block;
  }
  if (take_recv) {
    const auto block = take_recv(buffers.recv_bytes);
    if (!block) return std::unexpected(block.error());
    host.recv = *block;
  }
  return host;
}

}  // namespace

Result<std::shared_ptr<StagedCall>> Stager::stage(const CallBuffers& buffers) {
  const auto devices = devices_of(buffers);
  if (!devices) return std::unexpected(devices.error());
  const auto& [from, to] = *devices;
  if (!from && !to) return nullptr;

  StagedCall::Blocks blocks;
  std::optional<CopyLines> down, up;
  const auto pinned = [&](const std::optional<int>& device, std::optional<CopyLines>& lines) -> TakeBlock {
    if (!device) return nullptr;
    return [&, device = *device](std::size_t bytes) -> Result<std::byte*> {
      auto ready = gpu(device);
      if (!ready) return std::unexpected(ready.error());
      lines = lines_of(**ready);
      if (bytes == 0) return nullptr;
      auto block = (*ready)->pool->take(bytes);
      if (!block) return std::unexpected(block.error());
      std::byte* const data = (*block)->data();
      blocks.push_back(std::move(*block));
      return data;
    };
  };
  const auto host = in_host_memory(buffers, pinned(from, down), pinned(to, up));
  if (!host) return std::unexpected(host.error());
  if (buffers.in_place) down = up = down ? down : up;
  return std::make_shared<StagedCall>(buffers, *host, down, up, std::move(blocks), hooks_.call);
}

Result<std::shared_ptr<DirectCall>> Stager::direct(const CallBuffers& buffers) {
  if (std::max(buffers.send_bytes, buffers.recv_bytes) < kDirectBytesMin) return nullptr;
  const auto devices = devices_of(buffers);
  if (!devices) return std::unexpected(devices.error());
  const auto& [from, to] = *devices;
  if (!from && !to) return nullptr;
  const bool everywhere = (from || buffers.send_bytes == 0) && (to || buffers.recv_bytes == 0);
  const int device = from.value_or(to.value_or(0));
  if (!everywhere || to.value_or(device) != device) return nullptr;
  auto ready = gpu(device);
  if (!ready) return std::unexpected(ready.error());
  if ((*ready)->memory == nullptr) return nullptr;
  return std::make_shared<DirectCall>(buffers, (*ready)->memory, [this, gpu = *ready](const CallBuffers& caller) {
    return stage_direct(*gpu, caller);
  });
}

/// Stages a call that is under way. It must not fail for lack of pinned memory, so it takes ordinary memory instead:
/// the call is then only slower.
Result<std::shared_ptr<StagedCall>> Stager::stage_direct(Gpu& gpu, const CallBuffers& buffers) const {
  StagedCall::Blocks blocks;
  const TakeBlock any = [&](std::size_t bytes) -> Result<std::byte*> {
    if (bytes == 0) return nullptr;
    if (auto block = gpu.pool->take(bytes)) {
      std::byte* const data = (*block)->data();
      blocks.push_back(std::move(*block));
      return data;
    }
    try {
      const auto plain = std::make_shared_for_overwrite<std::byte[]>(bytes);
      blocks.push_back(plain);
      return plain.get();
    } catch (const std::bad_alloc&) {
      return fail(Errc::exhausted, "there is no host memory for " + std::to_string(bytes) + " bytes of GPU " +
                                       std::to_string(gpu.context->device()));
    }
  };
  const auto host = in_host_memory(buffers, any, any);
  if (!host) return std::unexpected(host.error());
  CopyLines down = lines_of(gpu);
  down.down = &gpu.memory->line();
  down.flush = gpu.memory->flushes();
  return std::make_shared<StagedCall>(buffers, *host, down, lines_of(gpu), std::move(blocks), hooks_.call);
}

void Stager::forget(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  for (auto& [device, gpu] : gpus_) {
    if (gpu.memory) gpu.memory->forget(memory);
  }
}

void Stager::drain() {
  std::vector<CopyLine*> lines;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [device, gpu] : gpus_) {
      lines.push_back(gpu.down.get());
      lines.push_back(gpu.up.get());
      if (gpu.memory) lines.push_back(&gpu.memory->line());
    }
  }
  for (CopyLine* line : lines) line->drain();
}

}  // namespace tributary::client::gpu
