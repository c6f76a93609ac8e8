#pragma once
// Exact sums on the memory of an NVIDIA GPU: the forms of partial_sum.h, with the same bytes and bits as on the host.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/kernels/cuda.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels::cuda {

/// One input of a sum on a device: the values of one rank, or a form of any bytes. The kernels check forms.
struct DevicePartialInput {
  DeviceAddress address = 0;  // of values: a multiple of the element's size
  std::size_t bytes = 0;
  bool is_form = false;
};

/// The answer of a call, at the start of its workspace. The host reads it once the stream has come so far.
struct PartialAnswer {
  std::uint64_t bytes = 0;  // length of the form that was written
  std::uint64_t fault = 0;  // 1 + the index of an input that is no form of these elements: then no result was written
};

/// Returns the bytes of device memory that a call needs beside its inputs and its result.
[[nodiscard]] std::size_t partial_workspace_bytes(std::size_t inputs, std::size_t count) noexcept;

/// The calls of partial_sum.h and exact.h on device memory. Each call runs in the order of its stream; none
/// synchronises. Any thread may use the object, but calls that run at the same time need workspaces of their own.
class CudaPartialSums {
 public:
  /// `kernels` must outlive the result. Errc::unsupported: the build's device code lacks a kernel.
  static Result<CudaPartialSums> load(CudaKernels& kernels);

  /// Writes the form of the sum of 1 to 64 inputs of `count` elements, at most 2^32 - 1.
  ///
  /// - dtype: a float type
  /// - out: form_bytes_max() bytes, disjoint from all inputs
  /// - workspace: partial_workspace_bytes() bytes at a multiple of 8; begins with the PartialAnswer afterwards
  Status add(DType dtype, std::span<const DevicePartialInput> inputs, std::size_t count, DeviceAddress out,
             DeviceAddress workspace, StreamHandle stream);

  /// out[i] = round((the sum of all inputs) / divisor).
  ///
  /// - out: `count` elements at a multiple of their size; may be the place of an input's values
  /// - divisor: 1 to 2^26 - 1
  /// - workspace: as for add(); may be 0 if no input is a form. The call writes the answer's fault; its length stays as
  ///   it was.
  Status round(DType dtype, std::span<const DevicePartialInput> inputs, std::size_t count, DeviceAddress out,
               std::uint32_t divisor, DeviceAddress workspace, StreamHandle stream);

  /// exact_sum() of exact.h: rounds the sum of 1 to 64 ranks' values, divided by 1 to 2^26 - 1. It needs no workspace.
  Status exact_sum(DType dtype, std::span<const DeviceAddress> inputs, DeviceAddress out, std::size_t count,
                   std::uint32_t divisor, StreamHandle stream);

 private:
  struct FloatKernels {
    CudaKernels::Kernel measure, write, round;
  };
  explicit CudaPartialSums(CudaKernels& kernels) noexcept : kernels_(&kernels) {}
  [[nodiscard]] const FloatKernels& kernels_of(DType dtype) const noexcept;
  Status launch(const CudaKernels::Kernel& kernel, const char* what, std::uint64_t blocks, void* arguments,
                StreamHandle stream);

  CudaKernels* kernels_;
  FloatKernels floats_[kDTypeCount];
  CudaKernels::Kernel check_, place_;
};

}  // namespace tributary::kernels::cuda
