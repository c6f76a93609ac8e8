// Packs many tensors into one buffer, and unpacks them.
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/context.h"
#include "tributary/kernels/cuda.h"

namespace tributary::kernels::cuda {

std::size_t lay_out(std::span<PackedTensor> tensors, std::size_t alignment) noexcept {
  std::size_t end = 0;
  for (PackedTensor& tensor : tensors) {
    tensor.offset = (end + alignment - 1) / alignment * alignment;
    end = tensor.offset + tensor.bytes;
  }
  return end;
}

PackTable::PackTable(PackTable&& other) noexcept
    : driver_(other.driver_),
      context_(other.context_),
      entries_(std::exchange(other.entries_, 0)),
      entries_count_(std::exchange(other.entries_count_, 0)),
      chunks_(std::exchange(other.chunks_, 0)) {}

PackTable::~PackTable() {
  if (entries_ == 0) return;
  const CurrentContext current(*driver_, context_);
  driver_->memory_free(entries_);
}

Result<PackTable> CudaKernels::make_pack_table(std::span<const PackedTensor> tensors) {
  std::vector<PackEntry> entries;
  PackTable table(driver_, context_);
  for (const PackedTensor& tensor : tensors) {
    if (tensor.bytes == 0) continue;
    entries.push_back(
        {.tensor = tensor.address, .offset = tensor.offset, .bytes = tensor.bytes, .first_chunk = table.chunks_});
    table.chunks_ += (tensor.bytes + kChunkBytes - 1) / kChunkBytes;
  }
  table.entries_count_ = static_cast<std::uint32_t>(entries.size());
  if (entries.empty()) return table;

  const CurrentContext current(driver_, context_);
  const std::size_t bytes = entries.size() * sizeof(PackEntry);
  CudaResult result = driver_.memory_allocate(table.entries_, bytes);
  if (result != CudaResult::success) {
    table.entries_ = 0;
    return std::unexpected(
        cuda_error(driver_, result, "allocating a pack table of " + std::to_string(bytes) + " bytes on the device"));
  }
  result = driver_.copy(table.entries_, reinterpret_cast<DeviceAddress>(entries.data()), bytes, nullptr);
  if (result == CudaResult::success) result = driver_.stream_synchronize(nullptr);
  if (result != CudaResult::success)
    return std::unexpected(cuda_error(driver_, result, "copying a pack table to the device"));
  return table;
}

Status CudaKernels::run_pack(const PackTable& table, DeviceAddress packed, bool unpacks, StreamHandle stream) {
  if (table.chunks_ == 0) return {};
  PackArguments arguments{.entries = reinterpret_cast<const PackEntry*>(table.entries_),
                          .packed = reinterpret_cast<void*>(packed),
                          .chunks = table.chunks_,
                          .entries_count = table.entries_count_,
                          .direction = unpacks ? PackDirection::unpack : PackDirection::pack};
  void* parameters[] = {&arguments};
  return launch(pack_, unpacks ? "unpack" : "pack", table.chunks_ * kThreadsPerBlock, Share::all, stream, parameters);
}

Status CudaKernels::pack(const PackTable& table, DeviceAddress packed, StreamHandle stream) {
  return run_pack(table, packed, false, stream);
}

Status CudaKernels::unpack(const PackTable& table, DeviceAddress packed, StreamHandle stream) {
  return run_pack(table, packed, true, stream);
}

}  // namespace tributary::kernels::cuda
