// Loads the kernels and launches them.
#include <algorithm>
#include <string>
#include <utility>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/split.h"
#include "tributary/kernels/cuda.h"
#include "tributary/kernels/reduce.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels::cuda {
namespace {

constexpr int kCapabilityMin = 75;  // major 7, minor 5: the oldest for which the code is built
constexpr std::uint32_t kMultiprocessorsPerLittleBlock = 4;
constexpr DType kSmall[] = {DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2};

std::size_t small_index(DType dtype) noexcept {
  return static_cast<std::size_t>(std::ranges::find(kSmall, dtype) - std::begin(kSmall));
}

const void* pointer(DeviceAddress address) noexcept {
  return reinterpret_cast<const void*>(address);
}
void* mutable_pointer(DeviceAddress address) noexcept {
  return reinterpret_cast<void*>(address);
}

}  // namespace

Result<std::unique_ptr<CudaKernels>> CudaKernels::load(CudaDriver& driver, int device,
                                                       std::span<const CudaImage> images) {
  if (images.empty()) {
    return fail(Errc::unsupported,
                "this build holds no CUDA kernels: configure with -DTRIBUTARY_WITH_CUDA=ON, which needs nvcc 13");
  }
  std::unique_ptr<CudaKernels> kernels(new CudaKernels(driver, device));
  if (const Status prepared = kernels->prepare(images); !prepared) return std::unexpected(prepared.error());
  return kernels;
}

CudaKernels::~CudaKernels() {
  if (context_ == nullptr) return;
  {
    const CurrentContext current(driver_, context_);
    for (const ModuleHandle module : modules_) driver_.module_unload(module);
  }
  driver_.primary_context_release(device_);
}

Status CudaKernels::prepare(std::span<const CudaImage> images) {
  if (const Status checked = check_device(); !checked) return checked;
  if (const CudaResult result = driver_.primary_context_retain(context_, device_); result != CudaResult::success) {
    context_ = nullptr;
    return std::unexpected(
        cuda_error(driver_, result, "retaining the primary context of CUDA device " + std::to_string(device_)));
  }
  const CurrentContext current(driver_, context_);
  for (const CudaImage& image : images) {
    ModuleHandle module = nullptr;
    if (const CudaResult result = driver_.module_load(module, image.data); result != CudaResult::success) {
      int version = 0;
      driver_.driver_version(version);
      return std::unexpected(cuda_error(driver_, result,
                                        std::string("loading the CUDA kernels '") + image.name +
                                            "' with a driver for CUDA " + std::to_string(version / 1000) + "." +
                                            std::to_string(version % 1000 / 10)));
    }
    modules_.push_back(module);
  }
  return find_all();
}

Status CudaKernels::check_device() {
  int count = 0;
  if (const CudaResult result = driver_.device_count(count); result != CudaResult::success)
    return std::unexpected(cuda_error(driver_, result, "counting CUDA devices"));
  if (device_ < 0 || device_ >= count) {
    return fail(Errc::bad_argument,
                "there is no CUDA device " + std::to_string(device_) + ": the driver has " + std::to_string(count));
  }
  int major = 0, minor = 0, multiprocessors = 0;
  for (const auto& [value, attribute] :
       {std::pair{&major, DeviceAttribute::capability_major}, std::pair{&minor, DeviceAttribute::capability_minor},
        std::pair{&multiprocessors, DeviceAttribute::multiprocessors}}) {
    if (const CudaResult result = driver_.device_attribute(*value, attribute, device_); result != CudaResult::success) {
      return std::unexpected(
          cuda_error(driver_, result, "asking for the capabilities of CUDA device " + std::to_string(device_)));
    }
  }
  if (10 * major + minor < kCapabilityMin) {
    char name[256] = "";
    driver_.device_name(name, sizeof(name), device_);
    return fail(Errc::unsupported, "CUDA device " + std::to_string(device_) + " (" + name +
                                       ") has compute capability " + std::to_string(major) + "." +
                                       std::to_string(minor) + "; the kernels need 7.5 or later");
  }
  multiprocessors_ = static_cast<std::uint32_t>(std::max(multiprocessors, 1));
  return {};
}

Status CudaKernels::find(const char* name, Kernel& kernel) {
  for (const ModuleHandle module : modules_) {
    if (driver_.module_function(kernel.function, module, name) != CudaResult::success) continue;
    int blocks = 0;
    if (const CudaResult result = driver_.resident_blocks(blocks, kernel.function, kThreadsPerBlock);
        result != CudaResult::success) {
      return std::unexpected(
          cuda_error(driver_, result, std::string("asking for the occupancy of CUDA kernel ") + name));
    }
    kernel.blocks_max = multiprocessors_ * static_cast<std::uint32_t>(std::max(blocks, 1));
    return {};
  }
  return fail(Errc::unsupported, std::string("the CUDA kernels of this build have no ") + name);
}

Status CudaKernels::find_all() {
  Status found;
  const auto want = [&](const std::string& name, Kernel& kernel) {
    if (found) found = find(name.c_str(), kernel);
  };
  for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
      if (!is_defined(ReduceOp{op}, DType{dtype})) continue;
      want("reduce_" + std::string(to_string(DType{dtype})) + "_" + std::string(to_string(ReduceOp{op})),
           reduce_[dtype][op]);
    }
  }
  for (std::size_t i = 0; i < std::size(kSmall); ++i) {
    const std::string format(to_string(kSmall[i]));
    want("narrow_" + format, convert_[i].narrow);
    want("narrow_" + format + "_saturate", convert_[i].narrow_saturate);
    want("widen_" + format, convert_[i].widen);
    want("accumulate_" + format, convert_[i].accumulate);
  }
  want("quantize", quantize_);
  want("dequantize", dequantize_);
  want("dequantize_accumulate", dequantize_accumulate_);
  want("copy_bytes", copy_);
  want("pack", pack_);
  return found;
}

Status CudaKernels::launch(const Kernel& kernel, const char* what, std::uint64_t threads, Share share,
                           StreamHandle stream, void** arguments) {
  const std::uint32_t blocks_max =
      share == Share::all ? kernel.blocks_max : std::max(1U, multiprocessors_ / kMultiprocessorsPerLittleBlock);
  const std::uint64_t wanted = (threads + kThreadsPerBlock - 1) / kThreadsPerBlock;
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, blocks_max));
  const CurrentContext current(driver_, context_);
  CudaResult result = current.result();
  if (result == CudaResult::success)
    result = driver_.launch(kernel.function, blocks, kThreadsPerBlock, stream, arguments);
  if (result != CudaResult::success)
    return std::unexpected(cuda_error(driver_, result, std::string("launching CUDA kernel ") + what));
  return {};
}

Status CudaKernels::reduce(DType dtype, ReduceOp op, std::span<const DeviceAddress> inputs, DeviceAddress out,
                           std::size_t count, std::uint32_t divisor, StreamHandle stream) {
  const std::size_t size = size_of(dtype);
  if (inputs.empty() || inputs.size() > kInputsMax || divisor == 0 || size == 0) {
    return fail(Errc::bad_argument,
                "reduce takes 1 to 64 inputs of a known dtype, and a divisor that is not 0; it was given " +
                    std::to_string(inputs.size()) + " inputs and the divisor " + std::to_string(divisor));
  }
  if (!is_defined(op, dtype)) {
    return fail(Errc::bad_argument,
                "reduce of " + std::string(to_string(dtype)) + " has no operator " + std::string(to_string(op)));
  }
  if (out % size != 0 || std::ranges::any_of(inputs, [&](DeviceAddress input) { return input % size != 0; })) {
    return fail(Errc::bad_argument, "reduce of " + std::string(to_string(dtype)) +
                                        " on a device needs addresses that are multiples of the element's size");
  }
  if (count == 0) return {};
  ReduceArguments arguments{};
  for (std::size_t i = 0; i < inputs.size(); ++i) arguments.inputs[i] = pointer(inputs[i]);
  arguments.out = mutable_pointer(out);
  arguments.count = count;
  arguments.split = split_of_reduce(inputs, out, count, size);
  arguments.inputs_count = static_cast<std::uint32_t>(inputs.size());
  arguments.divisor = op == ReduceOp::avg ? divisor : 1;
  arguments.reciprocal = reciprocal_for(arguments.divisor, size);
  void* parameters[] = {&arguments};
  const std::uint64_t threads = arguments.split.vectors > 0 ? arguments.split.vectors : count;
  return launch(reduce_[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)], "reduce", threads, Share::all,
                stream, parameters);
}

Status CudaKernels::run_convert(const Kernel& kernel, const char* what, DeviceAddress in, DeviceAddress out,
                                std::size_t count, DType small, bool narrows, StreamHandle stream, Share share) {
  const std::size_t size = size_of(small);
  const DeviceAddress floats = narrows ? in : out;
  const DeviceAddress others = narrows ? out : in;
  if (floats % sizeof(float) != 0 || others % size != 0) {
    return fail(Errc::bad_argument,
                std::string(what) + " on a device needs addresses that are multiples of the element's size");
  }
  if (count == 0) return {};
  ConvertArguments arguments{.in = pointer(in),
                             .out = mutable_pointer(out),
                             .count = count,
                             .split = split_of_convert(floats, others, count, size)};
  void* parameters[] = {&arguments};
  return launch(kernel, what, arguments.split.vectors > 0 ? arguments.split.vectors : count, share, stream, parameters);
}

Status CudaKernels::convert(DType from, DType to, DeviceAddress in, DeviceAddress out, std::size_t count,
                            Overflow overflow, StreamHandle stream, Share share) {
  if (!can_convert(from, to)) {
    return fail(Errc::bad_argument,
                "there is no conversion from " + std::string(to_string(from)) + " to " + std::string(to_string(to)));
  }
  const bool narrows = from == DType::float32;
  const DType small = narrows ? to : from;
  const ConvertKernels& kernels = convert_[small_index(small)];
  const Kernel& kernel = !narrows                         ? kernels.widen
                         : overflow == Overflow::saturate ? kernels.narrow_saturate
                                                          : kernels.narrow;
  return run_convert(kernel, "convert", in, out, count, small, narrows, stream, share);
}

Status CudaKernels::convert_accumulate(DType from, DeviceAddress in, DeviceAddress accumulator, std::size_t count,
                                       StreamHandle stream) {
  if (!can_convert(from, DType::float32))
    return fail(Errc::bad_argument, "there is no conversion from " + std::string(to_string(from)) + " to float32");
  return run_convert(convert_[small_index(from)].accumulate, "convert_accumulate", in, accumulator, count, from, false,
                     stream, Share::all);
}

Status CudaKernels::run_quantize(const Kernel& kernel, const char* what, bool quantizes, DeviceAddress in,
                                 DeviceAddress out, DeviceAddress scales, std::size_t count, std::size_t block,
                                 StreamHandle stream) {
  if (!is_scale_block(block))
    return fail(Errc::bad_argument,
                std::string(what) + " takes blocks of 32, 64, ... 256 elements, not " + std::to_string(block));
  const DeviceAddress floats = quantizes ? in : out;
  const DeviceAddress steps = quantizes ? out : in;
  if (floats % sizeof(float) != 0 || scales % sizeof(float) != 0) {
    return fail(Errc::bad_argument,
                std::string(what) + " on a device needs addresses of float32 that are multiples of 4");
  }
  if (count == 0) return {};
  if ((count - 1) / kScaleUnit > UINT32_MAX) {
    return fail(Errc::bad_argument,
                std::string(what) + " on a device takes at most 2^37 elements, not " + std::to_string(count));
  }
  QuantizeArguments arguments = quantize_shape(floats, steps, count, block);
  arguments.in = pointer(in);
  arguments.out = mutable_pointer(out);
  arguments.scales = static_cast<float*>(mutable_pointer(scales));
  void* parameters[] = {&arguments};
  const std::uint64_t threads = quantizes                ? scales_count(count, block) * arguments.lanes
                                : arguments.aligned != 0 ? (count + 3) / 4
                                                         : count;
  return launch(kernel, what, threads, Share::all, stream, parameters);
}

Status CudaKernels::quantize(DeviceAddress in, DeviceAddress out, DeviceAddress scales, std::size_t count,
                             std::size_t block, StreamHandle stream) {
  return run_quantize(quantize_, "quantize", true, in, out, scales, count, block, stream);
}

Status CudaKernels::dequantize(DeviceAddress in, DeviceAddress scales, DeviceAddress out, std::size_t count,
                               std::size_t block, StreamHandle stream) {
  return run_quantize(dequantize_, "dequantize", false, in, out, scales, count, block, stream);
}

Status CudaKernels::dequantize_accumulate(DeviceAddress in, DeviceAddress scales, DeviceAddress accumulator,
                                          std::size_t count, std::size_t block, StreamHandle stream) {
  return run_quantize(dequantize_accumulate_, "dequantize_accumulate", false, in, accumulator, scales, count, block,
                      stream);
}

Status CudaKernels::copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamHandle stream, Share share) {
  if (bytes == 0) return {};
  std::uint64_t count = bytes;
  void* parameters[] = {&to, &from, &count};
  return launch(copy_, "copy", bytes / kVectorBytes, share, stream, parameters);
}

}  // namespace tributary::kernels::cuda
