#pragma once
// reduce, convert and pack on the memory of an NVIDIA GPU.
//
// Each call runs in the order of the stream that it gets; no call synchronises. Success means that the driver accepted
// the launch; the stream reports later failures on the device, as for any kernel. The bits are the same as the bits of
// the host kernels, except in the payload of NaN.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tributary/kernels/convert.h"
#include "tributary/kernels/cuda_driver.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels::cuda {

/// A fatbin: device code for several architectures, from which the driver takes the code that fits.
struct CudaImage {
  const char* name;
  const void* data;
};

/// Returns the images that the build embedded; empty without TRIBUTARY_WITH_CUDA.
[[nodiscard]] std::span<const CudaImage> embedded_cuda_images() noexcept;

/// The part of the GPU that a launch may take.
enum class Share : std::uint8_t {
  all,     // as many blocks as are resident at the same time
  little,  // one block on every fourth multiprocessor, enough to fill PCIe; the rest stays for other kernels
};

/// One tensor of a pack.
struct PackedTensor {
  DeviceAddress address;
  std::size_t bytes;
  std::size_t offset;  // offset in the packed buffer
};

/// Lays tensors out one after the other, each at a multiple of `alignment` bytes: with 16, whole vectors move if the
/// tensors are aligned to 16, too. Fills in the offsets and returns the size of the buffer.
std::size_t lay_out(std::span<PackedTensor> tensors, std::size_t alignment = 16) noexcept;

/// A list of tensors in device memory, made once for a bucket and used for every step. It must outlive every launch
/// that uses it.
class PackTable {
 public:
  PackTable(PackTable&& other) noexcept;
  PackTable& operator=(PackTable&&) = delete;
  ~PackTable();

 private:
  friend class CudaKernels;
  PackTable(CudaDriver& driver, ContextHandle context) noexcept : driver_(&driver), context_(context) {}

  CudaDriver* driver_;
  ContextHandle context_;
  DeviceAddress entries_ = 0;
  std::uint32_t entries_count_ = 0;
  std::uint64_t chunks_ = 0;
};

/// The kernels, loaded into the primary context of one device. Any thread may use them. Streams and memory must belong
/// to that context, as with the CUDA runtime and PyTorch; mapped host memory is given by its device address.
class CudaKernels {
 public:
  /// `driver` must outlive the result. Errc::unsupported: the build has no device code, or no code for this device, or
  /// the device is older than compute capability 7.5.
  static Result<std::unique_ptr<CudaKernels>> load(CudaDriver& driver, int device,
                                                   std::span<const CudaImage> images = embedded_cuda_images());
  CudaKernels(const CudaKernels&) = delete;
  CudaKernels& operator=(const CudaKernels&) = delete;
  ~CudaKernels();

  /// kernels::reduce() (see reduce.h) of 1 to 64 arrays. Addresses are multiples of the element's size; if they are
  /// equal modulo 16, whole vectors move.
  Status reduce(DType dtype, ReduceOp op, std::span<const DeviceAddress> inputs, DeviceAddress out, std::size_t count,
                std::uint32_t divisor, StreamHandle stream);

  /// kernels::convert() (see convert.h). To stage data through mapped host memory, pass Share::little.
  Status convert(DType from, DType to, DeviceAddress in, DeviceAddress out, std::size_t count, Overflow overflow,
                 StreamHandle stream, Share share = Share::all);
  Status convert_accumulate(DType from, DeviceAddress in, DeviceAddress accumulator, std::size_t count,
                            StreamHandle stream);

  /// kernels::quantize(), dequantize() and dequantize_accumulate().
  Status quantize(DeviceAddress in, DeviceAddress out, DeviceAddress scales, std::size_t count, std::size_t block,
                  StreamHandle stream);
  Status dequantize(DeviceAddress in, DeviceAddress scales, DeviceAddress out, std::size_t count, std::size_t block,
                    StreamHandle stream);
  Status dequantize_accumulate(DeviceAddress in, DeviceAddress scales, DeviceAddress accumulator, std::size_t count,
                               std::size_t block, StreamHandle stream);

  /// Copies without conversion, at any alignment; for staging through mapped host memory.
  Status copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamHandle stream, Share share = Share::all);

  /// Makes the table for pack() and unpack(). It allocates memory, and copies before it returns, so do not call it for
  /// every step. Errc::exhausted: there is no device memory left.
  Result<PackTable> make_pack_table(std::span<const PackedTensor> tensors);

  /// Copy all tensors of the table into one buffer, or back, in one launch.
  Status pack(const PackTable& table, DeviceAddress packed, StreamHandle stream);
  Status unpack(const PackTable& table, DeviceAddress packed, StreamHandle stream);

 private:
  friend class CudaPartialSums;
  struct Kernel {
    FunctionHandle function = nullptr;
    std::uint32_t blocks_max = 1;  // blocks that are resident on the whole device at the same time
  };
  struct ConvertKernels {
    Kernel narrow, narrow_saturate, widen, accumulate;
  };

  CudaKernels(CudaDriver& driver, int device) noexcept : driver_(driver), device_(device) {}
  Status prepare(std::span<const CudaImage> images);
  Status check_device();
  Status find_all();
  Status find(const char* name, Kernel& kernel);
  Status launch(const Kernel& kernel, const char* what, std::uint64_t threads, Share share, StreamHandle stream,
                void** arguments);
  Status run_convert(const Kernel& kernel, const char* what, DeviceAddress in, DeviceAddress out, std::size_t count,
                     DType small, bool narrows, StreamHandle stream, Share share);
  Status run_quantize(const Kernel& kernel, const char* what, bool quantizes, DeviceAddress in, DeviceAddress out,
                      DeviceAddress scales, std::size_t count, std::size_t block, StreamHandle stream);
  Status run_pack(const PackTable& table, DeviceAddress packed, bool unpacks, StreamHandle stream);

  CudaDriver& driver_;
  int device_;
  ContextHandle context_ = nullptr;
  std::uint32_t multiprocessors_ = 1;
  std::vector<ModuleHandle> modules_;
  Kernel reduce_[kDTypeCount][kReduceOpCount];
  ConvertKernels convert_[4];
  Kernel quantize_, dequantize_, dequantize_accumulate_, copy_, pack_;
};

}  // namespace tributary::kernels::cuda
