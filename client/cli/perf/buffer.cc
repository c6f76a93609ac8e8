#include "client/cli/perf/buffer.h"

#include <cstdlib>
#include <string>
#include <utility>

namespace tributary::cli {
namespace {

constexpr std::uint64_t kAlignment = 4096;

}  // namespace

void PerfBuffer::FreeHost::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

Result<PerfBuffer> PerfBuffer::allocate(std::uint64_t bytes, std::shared_ptr<PerfGpu> gpu) {
  const std::uint64_t whole = (bytes / kAlignment + 1) * kAlignment;
  PerfBuffer buffer;
  buffer.host_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)));
  if (!buffer.host_)
    return fail(Errc::exhausted, "there is not enough memory for a buffer of " + std::to_string(bytes) + " bytes");
  if (!gpu) return buffer;
  const auto memory = gpu->allocate(whole);
  if (!memory) return std::unexpected(memory.error());
  buffer.gpu_ = {*memory, FreeGpu{std::move(gpu)}};
  return buffer;
}

Status PerfBuffer::upload(std::uint64_t bytes) {
  if (!gpu_) return {};
  return gpu_.get_deleter().gpu->copy(gpu_.get(), host_.get(), bytes);
}

Status PerfBuffer::download(std::uint64_t bytes) {
  if (!gpu_) return {};
  return gpu_.get_deleter().gpu->copy(host_.get(), gpu_.get(), bytes);
}

}  // namespace tributary::cli
