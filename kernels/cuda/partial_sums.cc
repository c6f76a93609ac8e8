// Launches the kernels of partial sums.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/context.h"
#include "tributary/kernels/cuda_partial_sums.h"
#include "tributary/kernels/exact.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::kernels::cuda {
namespace {

constexpr std::uint64_t blocks_of(std::uint64_t count) noexcept {
  return (count + kFormBlockElements - 1) / kFormBlockElements;
}

Status checked(DType dtype, std::span<const DevicePartialInput> inputs, std::size_t count, DeviceAddress workspace) {
  const std::size_t size = size_of(dtype);
  if (!is_float(dtype) || inputs.empty() || inputs.size() > kInputsMax) {
    return fail(Errc::bad_argument, "a partial sum takes 1 to 64 inputs of a float type; it was given " +
                                        std::to_string(inputs.size()) + " of " + std::string(to_string(dtype)));
  }
  const bool good = workspace % sizeof(std::uint64_t) == 0 && std::ranges::all_of(inputs, [&](const auto& input) {
                      return input.is_form || (input.address % size == 0 && input.bytes == count * size);
                    });
  if (good) return {};
  return fail(Errc::bad_argument, "a partial sum of " + std::to_string(count) + " " + std::string(to_string(dtype)) +
                                      " needs arrays of this length at multiples of the element's size, and a "
                                      "workspace at a multiple of 8");
}

Status checked_result(DType dtype, DeviceAddress out, std::uint32_t divisor) {
  const auto wrong = [dtype](const std::string& what) {
    return fail(Errc::bad_argument, "a sum of " + std::string(to_string(dtype)) + " is " + what);
  };
  if (divisor == 0 || divisor > kExactDivisorMax) {
    return wrong("divided by 1 to " + std::to_string(kExactDivisorMax) + ", not by " + std::to_string(divisor));
  }
  if (out % size_of(dtype) == 0) return {};
  return wrong("written to a multiple of " + std::to_string(size_of(dtype)) + ", not to " + std::to_string(out));
}

/// Describes a call: the workspace is the result, the places of the result's blocks, and those of the inputs' blocks.
PartialArguments arguments_of(DType dtype, std::span<const DevicePartialInput> inputs, std::size_t count,
                              DeviceAddress out, DeviceAddress workspace) {
  PartialArguments arguments{};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    arguments.inputs[k] = reinterpret_cast<const void*>(inputs[k].address);
    arguments.bytes[k] = inputs[k].bytes;
    if (inputs[k].is_form) arguments.forms |= std::uint64_t{1} << k;
  }
  arguments.result = reinterpret_cast<PartialResult*>(workspace);
  arguments.places = reinterpret_cast<std::uint64_t*>(workspace + sizeof(PartialResult));
  arguments.offsets = arguments.places + blocks_of(count);
  arguments.out = reinterpret_cast<void*>(out);
  arguments.count = count;
  arguments.inputs_count = static_cast<std::uint32_t>(inputs.size());
  arguments.inputs_log2 = static_cast<std::uint32_t>(std::bit_width(inputs.size() - 1));
  arguments.divisor = 1;
  arguments.least = form_range_of(dtype).least;
  arguments.end = form_range_of(dtype).end();
  return arguments;
}

}  // namespace

static_assert(offsetof(PartialAnswer, bytes) == offsetof(PartialResult, bytes) &&
              offsetof(PartialAnswer, fault) == offsetof(PartialResult, fault));

std::size_t partial_workspace_bytes(std::size_t inputs, std::size_t count) noexcept {
  return sizeof(PartialResult) + (1 + inputs) * blocks_of(count) * sizeof(std::uint64_t);
}

Result<CudaPartialSums> CudaPartialSums::load(CudaKernels& kernels) {
  CudaPartialSums sums(kernels);
  const CurrentContext current(kernels.driver_, kernels.context_);
  Status found;
  const auto want = [&](const std::string& name, CudaKernels::Kernel& kernel) {
    if (found) found = kernels.find(name.c_str(), kernel);
  };
  for (std::uint8_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    if (!is_float(DType{dtype})) continue;
    const std::string name(to_string(DType{dtype}));
    want("partial_measure_" + name, sums.floats_[dtype].measure);
    want("partial_write_" + name, sums.floats_[dtype].write);
    want("partial_round_" + name, sums.floats_[dtype].round);
  }
  want("partial_check", sums.check_);
  want("partial_place", sums.place_);
  if (!found) return std::unexpected(found.error());
  return sums;
}

const CudaPartialSums::FloatKernels& CudaPartialSums::kernels_of(DType dtype) const noexcept {
  const auto at = static_cast<std::size_t>(dtype);
  TRIBUTARY_ASSERT(at < kDTypeCount && is_float(dtype), "type {} has no partial sums", dtype);
  return floats_[at];
}

Status CudaPartialSums::launch(const CudaKernels::Kernel& kernel, const char* what, std::uint64_t blocks,
                               void* arguments, StreamHandle stream) {
  void* parameters[] = {arguments};
  return kernels_->launch(kernel, what, blocks * kThreadsPerBlock, Share::all, stream, parameters);
}

Status CudaPartialSums::add(DType dtype, std::span<const DevicePartialInput> inputs, std::size_t count,
                            DeviceAddress out, DeviceAddress workspace, StreamHandle stream) {
  if (const Status good = checked(dtype, inputs, count, workspace); !good) return good;
  if (workspace == 0) return fail(Errc::bad_argument, "a form is made without a workspace");
  if (count > UINT32_MAX) {
    return fail(Errc::bad_argument,
                "a form has at most " + std::to_string(UINT32_MAX) + " elements, not " + std::to_string(count));
  }
  PartialArguments arguments = arguments_of(dtype, inputs, count, out, workspace);
  const FloatKernels& kernels = kernels_of(dtype);
  const std::uint64_t blocks = blocks_of(count);
  if (const Status done = launch(check_, "partial_check", inputs.size(), &arguments, stream); !done) return done;
  if (const Status done = launch(kernels.measure, "partial_measure", blocks, &arguments, stream); !done) return done;
  if (const Status done = launch(place_, "partial_place", 1, &arguments, stream); !done) return done;
  return launch(kernels.write, "partial_write", blocks, &arguments, stream);
}

Status CudaPartialSums::round(DType dtype, std::span<const DevicePartialInput> inputs, std::size_t count,
                              DeviceAddress out, std::uint32_t divisor, DeviceAddress workspace, StreamHandle stream) {
  if (const Status good = checked(dtype, inputs, count, workspace); !good) return good;
  if (const Status good = checked_result(dtype, out, divisor); !good) return good;
  PartialArguments arguments = arguments_of(dtype, inputs, count, out, workspace);
  arguments.divisor = divisor;
  if (workspace != 0) {
    if (const Status done = launch(check_, "partial_check", inputs.size(), &arguments, stream); !done) return done;
  } else if (arguments.forms != 0) {
    return fail(Errc::bad_argument, "a sum of forms is rounded without a workspace");
  } else {
    arguments.result = nullptr;  // nothing to check, and no place for an answer
    if (count == 0) return {};
  }
  return launch(kernels_of(dtype).round, "partial_round", blocks_of(count), &arguments, stream);
}

Status CudaPartialSums::exact_sum(DType dtype, std::span<const DeviceAddress> inputs, DeviceAddress out,
                                  std::size_t count, std::uint32_t divisor, StreamHandle stream) {
  std::vector<DevicePartialInput> values;
  for (const DeviceAddress input : inputs) values.push_back({.address = input, .bytes = count * size_of(dtype)});
  return round(dtype, values, count, out, divisor, 0, stream);
}

}  // namespace tributary::kernels::cuda
