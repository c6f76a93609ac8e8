#include "cpu/scalar_tables.h"

#include "reference/reduce.h"

namespace tributary::kernels::scalar {
namespace {

template <DType kDType, ReduceOp kOp>
void run(const ReduceArgs& args) noexcept {
  reference::reduce(kDType, kOp, {args.inputs, args.inputs_count}, args.out, args.count, args.divisor);
}

template <std::size_t... kIndex>
constexpr ReduceTable make_table(std::index_sequence<kIndex...>) noexcept {
  return {{{run<static_cast<DType>(kIndex), ReduceOp::sum>, run<static_cast<DType>(kIndex), ReduceOp::prod>,
            run<static_cast<DType>(kIndex), ReduceOp::min>, run<static_cast<DType>(kIndex), ReduceOp::max>,
            run<static_cast<DType>(kIndex), ReduceOp::avg>}...}};
}

}  // namespace

constinit const ReduceTable kReduceTable = make_table(std::make_index_sequence<kDTypeCount>{});

}  // namespace tributary::kernels::scalar
