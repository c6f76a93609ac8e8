#pragma once
// One of the benchmark's two buffers, in host memory or in a GPU's memory.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/cli/perf/gpu.h"

namespace tributary::cli {

/// A buffer in a GPU's memory has a copy in host memory, where the program writes inputs and checks results.
class PerfBuffer {
 public:
  /// Allocates the buffer in the memory of `gpu`; in host memory if it is null. Errc::exhausted: there is too little
  /// memory.
  [[nodiscard]] static Result<PerfBuffer> allocate(std::uint64_t bytes, std::shared_ptr<PerfGpu> gpu);

  /// Returns the memory for calls of the library.
  [[nodiscard]] std::byte* for_calls() const noexcept { return gpu_ ? gpu_.get() : host_.get(); }
  /// Returns the memory that the program reads and writes.
  [[nodiscard]] std::byte* on_host() const noexcept { return host_.get(); }
  /// Copies the first `bytes` bytes to the GPU. Does nothing for a buffer in host memory.
  [[nodiscard]] Status upload(std::uint64_t bytes);
  /// Copies the first `bytes` bytes from the GPU. Does nothing for a buffer in host memory.
  [[nodiscard]] Status download(std::uint64_t bytes);

 private:
  struct FreeHost {
    void operator()(std::byte* memory) const noexcept;
  };
  struct FreeGpu {
    std::shared_ptr<PerfGpu> gpu;
    void operator()(std::byte* memory) const noexcept { gpu->free(memory); }
  };

  std::unique_ptr<std::byte, FreeHost> host_;
  std::unique_ptr<std::byte, FreeGpu> gpu_;  // null: the buffer lies in host memory
};

}  // namespace tributary::cli
