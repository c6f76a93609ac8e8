// AllReduce, Reduce and ReduceScatter of torch.distributed.
#include "backend.h"
#include "checks.h"
#include "element.h"

namespace tributary::torch {
namespace {

Operation::Step all_reduce(const at::Tensor& send, const at::Tensor& recv, const Reduction& reduction) {
  return [=, dtype = reduction.dtype(), op = reduction.op()](tributary_comm* comm, tributary_request** request) {
    return tributary_all_reduce(send.const_data_ptr(), recv.mutable_data_ptr(), elements(recv), dtype, op, comm,
                                request);
  };
}

Operation::Step reduce_to(const at::Tensor& send, const at::Tensor& recv, const Reduction& reduction, int root) {
  return [=, dtype = reduction.dtype(), op = reduction.op()](tributary_comm* comm, tributary_request** request) {
    return tributary_reduce(send.const_data_ptr(), recv.defined() ? recv.mutable_data_ptr() : nullptr, elements(send),
                            dtype, op, root, comm, request);
  };
}

Operation::Step reduce_scatter_to(const at::Tensor& send, const at::Tensor& recv, const Reduction& reduction) {
  return [=, dtype = reduction.dtype(), op = reduction.op()](tributary_comm* comm, tributary_request** request) {
    return tributary_reduce_scatter(send.const_data_ptr(), recv.mutable_data_ptr(), elements(recv), dtype, op, comm,
                                    request);
  };
}

// With `apart`, the result goes to other memory, because another part of the operation uses the tensor's memory.
void add_all_reduce(Operation& operation, const at::Tensor& tensor, const c10d::ReduceOp& op, const char* what,
                    bool apart = false) {
  const Reduction reduction(tensor, op, what);
  if (reduction.converts()) {
    const at::Tensor send = operation.staging.read(reduction.source(tensor));
    operation.steps.push_back(all_reduce(send, reduction.target(operation.staging, tensor, apart), reduction));
  } else {
    const at::Tensor view = reduction.view(tensor);
    const at::Tensor data = apart ? operation.staging.update_apart(view) : operation.staging.update(view);
    operation.steps.push_back(all_reduce(data, data, reduction));
  }
}

// Reduces over all tensors of all ranks; each tensor gets the result.
void add_all_reduce_list(Operation& operation, const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op) {
  check_alike(tensors, "all_reduce");
  const at::NoGradGuard no_grad;
  const Reduction reduction(tensors.front(), op, "all_reduce");
  at::Tensor own = tensors.front().clone();
  for (std::size_t i = 1; i < tensors.size(); ++i) own = reduction.combine(own, tensors[i]);
  const at::Tensor result = own.clone();
  operation.steps.push_back(all_reduce(operation.staging.read(reduction.source(own)),
                                       reduction.target(operation.staging, result), reduction));
  for (const at::Tensor& tensor : tensors) operation.staging.copy_later(tensor, result);
}

// Returns true if the tensor shares memory with another tensor of the list. A list may also hold one tensor twice.
bool shares_memory(const std::vector<at::Tensor>& tensors, std::size_t index) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i != index && tensors[i].is_alias_of(tensors[index])) return true;
  }
  return false;
}

void add_reduce_scatter(Operation& operation, const at::Tensor& output, const at::Tensor& input,
                        const c10d::ReduceOp& op, int size) {
  constexpr const char* kWhat = "reduce_scatter_tensor";
  check_same_type(output, input, kWhat);
  TORCH_CHECK(input.numel() == output.numel() * size, "tributary: ", kWhat, ": the input has ", input.numel(),
              " elements; ", size, " ranks with an output of ", output.numel(), " need ", output.numel() * size);
  const Reduction reduction(input, op, kWhat);
  const at::Tensor send = operation.staging.read(reduction.source(input));
  operation.steps.push_back(reduce_scatter_to(send, reduction.target(operation.staging, output), reduction));
}

}  // namespace

WorkPtr Backend::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  if (!tensors.empty() && tensors.front().is_sparse()) return allreduce_sparse(tensors, options);
  Operation call = operation(c10d::OpType::ALLREDUCE, "tributary:all_reduce", tensors, tensors);
  if (tensors.size() == 1) {
    add_all_reduce(call, tensors.front(), options.reduceOp, "all_reduce");
  } else {
    add_all_reduce_list(call, tensors, options.reduceOp);
  }
  return submit(std::move(call));
}

WorkPtr Backend::allreduce_coalesced(std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Operation call = operation(c10d::OpType::ALLREDUCE_COALESCED, "tributary:all_reduce_coalesced", tensors, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool seen = shares_memory(tensors, i);
    add_all_reduce(call, tensors[i], options.reduceOp, "all_reduce_coalesced", seen);
  }
  return submit(std::move(call));
}

WorkPtr Backend::reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) {
  Operation call = operation(c10d::OpType::REDUCE, "tributary:reduce", tensors, tensors);
  const at::Tensor& tensor = only(tensors, "reduce");
  check_root(options.rootRank, size_, "reduce");
  const Reduction reduction(tensor, options.reduceOp, "reduce");
  const at::Tensor send = call.staging.read(reduction.source(tensor));
  const at::Tensor recv = options.rootRank == rank_ ? reduction.target(call.staging, tensor) : at::Tensor();
  call.steps.push_back(reduce_to(send, recv, reduction, static_cast<int>(options.rootRank)));
  return submit(std::move(call));
}

// The parts may have unequal sizes. Then a Reduce sends each part to its owner. Every rank has the same list of sizes,
// so all ranks decide in the same way.
WorkPtr Backend::reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only(outputs, "reduce_scatter");
  const std::vector<at::Tensor>& parts = one_per_rank(inputs, size_, "reduce_scatter");
  for (const at::Tensor& part : parts) check_same_type(output, part, "reduce_scatter");
  check_same_size(output, parts[static_cast<std::size_t>(rank_)], "reduce_scatter");
  Operation call = operation(c10d::OpType::REDUCE_SCATTER, "tributary:reduce_scatter", parts, outputs);
  const Reduction reduction(output, options.reduceOp, "reduce_scatter");
  std::vector<at::Tensor> sources;
  for (const at::Tensor& part : parts) sources.push_back(reduction.source(part));
  const at::Tensor recv = reduction.target(call.staging, output);
  if (equal_sizes(parts)) {
    call.steps.push_back(reduce_scatter_to(call.staging.read_packed(sources), recv, reduction));
  } else {
    for (int root = 0; root < size_; ++root) {
      const at::Tensor send = call.staging.read(sources[static_cast<std::size_t>(root)]);
      call.steps.push_back(reduce_to(send, root == rank_ ? recv : at::Tensor(), reduction, root));
    }
  }
  return submit(std::move(call));
}

WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                      const c10d::ReduceScatterOptions& options) {
  Operation call = operation(c10d::OpType::_REDUCE_SCATTER_BASE, "tributary:reduce_scatter_tensor", {input}, {output});
  add_reduce_scatter(call, output, input, options.reduceOp, size_);
  return submit(std::move(call));
}

WorkPtr Backend::reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                 const c10d::ReduceScatterOptions& options) {
  check_pairs(outputs, inputs, "reduce_scatter_tensor_coalesced");
  Operation call = operation(c10d::OpType::COALESCED, "tributary:reduce_scatter_tensor_coalesced", inputs, outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    add_reduce_scatter(call, outputs[i], inputs[i], options.reduceOp, size_);
  return submit(std::move(call));
}

}  // namespace tributary::torch
