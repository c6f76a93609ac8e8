#include "client/operation/host_forms.h"

#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

void add_rank_inputs(const Operation& o, const std::byte* from, std::size_t count,
                     std::vector<kernels::PartialInput>& inputs) {
  TRIBUTARY_ASSERT(is_exact_of_hosts(o.signature.op) && !o.rank_inputs.empty() && o.rank_inputs[0] == o.send,
                   "{} has the inputs of {} ranks", to_string(o), o.rank_inputs.size());
  const std::ptrdiff_t offset = from - o.send;
  TRIBUTARY_ASSERT(offset >= 0, "an input lies {} bytes before the first", -offset);
  for (const std::byte* const input : o.rank_inputs)
    inputs.push_back({.bytes = {input + offset, count * o.element_bytes()}, .is_form = false});
}

std::size_t HostForms::make(const Operation& o, const std::byte* from, std::size_t count, std::span<std::byte> out) {
  inputs_.clear();
  add_rank_inputs(o, from, count, inputs_);
  return sums_.add(o.signature.dtype, inputs_, count, out);
}

}  // namespace tributary::client
