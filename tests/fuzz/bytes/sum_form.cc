// The forms of partial sums: a form that is accepted can be added and rounded, and its sum is a form again.
#include <cstdlib>
#include <span>
#include <vector>

#include "tributary/kernels/partial_sum.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tributary::DType;
  constexpr DType kTypes[] = {DType::float16, DType::bfloat16,    DType::float32,
                              DType::float64, DType::float8_e4m3, DType::float8_e5m2};
  constexpr std::size_t kElementsMax = 600;  // more elements of few bytes show nothing new
  if (size == 0) return 0;
  const DType dtype = kTypes[data[0] % std::size(kTypes)];
  const auto form = std::as_bytes(std::span(data, size)).subspan(1);
  const auto count = tributary::kernels::partial_sum_elements(dtype, form);
  if (!count || *count > kElementsMax) return 0;
  const std::vector<std::byte> values(*count * tributary::size_of(dtype), std::byte{0x21});
  const std::vector<tributary::kernels::PartialInput> inputs{{form, true}, {values, false}, {form, true}};
  std::vector<std::byte> sum(tributary::form_bytes_max(dtype, *count));
  sum.resize(tributary::kernels::add_partial_sums(dtype, inputs, *count, sum));
  if (tributary::kernels::partial_sum_elements(dtype, sum) != count) std::abort();
  std::vector<std::byte> result(values.size()), again(values.size());
  tributary::kernels::round_partial_sums(dtype, inputs, result.data(), *count, 3);
  const std::vector<tributary::kernels::PartialInput> one{{sum, true}};
  tributary::kernels::round_partial_sums(dtype, one, again.data(), *count, 3);
  (void)again;
  return 0;
}
