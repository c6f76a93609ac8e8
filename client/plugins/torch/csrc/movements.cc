// The calls of torch.distributed that move data without reducing it.
#include <numeric>

#include "backend.h"
#include "checks.h"
#include "element.h"

namespace tributary::torch {
namespace {

constexpr const char* kAllGather = "all_gather_into_tensor";

Operation::Step broadcast_from(const at::Tensor& data, int root) {
  return [=, element = Element(data)](tributary_comm* comm, tributary_request** request) {
    return tributary_broadcast(data.const_data_ptr(), data.mutable_data_ptr(), element.count(data), element.dtype, root,
                               comm, request);
  };
}

Operation::Step all_gather(const at::Tensor& send, const at::Tensor& recv) {
  return [=, element = Element(send)](tributary_comm* comm, tributary_request** request) {
    return tributary_all_gather(send.const_data_ptr(), recv.mutable_data_ptr(), element.count(send), element.dtype,
                                comm, request);
  };
}

Operation::Step all_to_all(const at::Tensor& send, const at::Tensor& recv, int size) {
  return [=, element = Element(send)](tributary_comm* comm, tributary_request** request) {
    return tributary_all_to_all(send.const_data_ptr(), recv.mutable_data_ptr(),
                                element.count(send) / static_cast<std::size_t>(size), element.dtype, comm, request);
  };
}

Operation::Step gather_to(const at::Tensor& send, const at::Tensor& recv, int root) {
  return [=, element = Element(send)](tributary_comm* comm, tributary_request** request) {
    return tributary_gather(send.const_data_ptr(), recv.defined() ? recv.mutable_data_ptr() : nullptr,
                            element.count(send), element.dtype, root, comm, request);
  };
}

Operation::Step scatter_from(const at::Tensor& send, const at::Tensor& recv, int root) {
  return [=, element = Element(recv)](tributary_comm* comm, tributary_request** request) {
    return tributary_scatter(send.defined() ? send.const_data_ptr() : nullptr, recv.mutable_data_ptr(),
                             element.count(recv), element.dtype, root, comm, request);
  };
}

Operation::Step send_to(const at::Tensor& data, int peer, int tag = 0) {
  return [=, element = Element(data)](tributary_comm* comm, tributary_request** request) {
    return tributary_send_tagged(data.const_data_ptr(), element.count(data), element.dtype, peer,
                                 static_cast<std::uint32_t>(tag), comm, request);
  };
}

Operation::Step recv_from(const at::Tensor& data, int peer, int tag = 0) {
  return [=, element = Element(data)](tributary_comm* comm, tributary_request** request) {
    return tributary_recv_tagged(data.mutable_data_ptr(), element.count(data), element.dtype, peer,
                                 static_cast<std::uint32_t>(tag), nullptr, comm, request);
  };
}

void add_all_gather(Operation& operation, const at::Tensor& output, const at::Tensor& input, int size) {
  check_same_type(output, input, kAllGather);
  TORCH_CHECK(output.numel() == input.numel() * size, "tributary: ", kAllGather, ": the output has ", output.numel(),
              " elements; ", size, " ranks with an input of ", input.numel(), " need ", input.numel() * size);
  const at::Tensor send = operation.staging.read(input);
  operation.steps.push_back(all_gather(send, operation.staging.write(output)));
}

// The outputs may have unequal sizes. Then each rank sends its input with a Broadcast. Every rank has the same list of
// sizes, so all ranks decide in the same way.
void add_all_gather_list(Operation& operation, const std::vector<at::Tensor>& outputs, const at::Tensor& input,
                         int rank) {
  for (const at::Tensor& output : outputs) check_same_type(output, input, "all_gather");
  check_same_size(outputs[static_cast<std::size_t>(rank)], input, "all_gather");
  if (equal_sizes(outputs)) {
    const at::Tensor send = operation.staging.read(input);
    operation.steps.push_back(all_gather(send, operation.staging.write_packed(outputs)));
    return;
  }
  const int size = static_cast<int>(outputs.size());
  for (int root = 0; root < size; ++root) {
    const at::Tensor& output = outputs[static_cast<std::size_t>(root)];
    if (root == rank) operation.staging.copy_later(output, input);
    operation.steps.push_back(
        broadcast_from(root == rank ? operation.staging.read(input) : operation.staging.write(output), root));
  }
}

/// Returns the parts of `tensor` along its first dimension: with the sizes of `splits`, or equal parts if it is empty.
std::vector<at::Tensor> split_rows(const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int size,
                                   const char* name) {
  TORCH_CHECK(tensor.dim() > 0, "tributary: all_to_all_single: the ", name, " has no dimension to split");
  const std::int64_t rows = tensor.size(0);
  if (splits.empty()) {
    TORCH_CHECK(rows % size == 0, "tributary: all_to_all_single: the ", name, "'s ", rows,
                " rows cannot be shared evenly by ", size, " ranks");
    return tensor.split(std::max<std::int64_t>(rows / size, 1), 0);
  }
  TORCH_CHECK(splits.size() == static_cast<std::size_t>(size), "tributary: all_to_all_single: ", splits.size(), " ",
              name, " splits for ", size, " ranks");
  TORCH_CHECK(std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) == rows,
              "tributary: all_to_all_single: the ", name, " splits do not add up to its ", rows, " rows");
  return tensor.split_with_sizes(splits, 0);
}

}  // namespace

WorkPtr Backend::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  check_alike(tensors, "broadcast");
  check_root(options.rootRank, size_, "broadcast");
  TORCH_CHECK(options.rootTensor >= 0 && options.rootTensor < static_cast<std::int64_t>(tensors.size()),
              "tributary: broadcast: invalid root tensor ", options.rootTensor, " of ", tensors.size());
  Operation call = operation(c10d::OpType::BROADCAST, "tributary:broadcast", tensors, tensors);
  const at::Tensor& tensor = tensors[static_cast<std::size_t>(options.rootTensor)];
  const bool root = options.rootRank == rank_;
  const at::Tensor data = root ? call.staging.read(tensor) : call.staging.write(tensor);
  call.steps.push_back(broadcast_from(data, static_cast<int>(options.rootRank)));
  for (const at::Tensor& other : tensors)
    if (!other.is_same(tensor)) call.staging.copy_later(other, data);
  return submit(std::move(call));
}

WorkPtr Backend::allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                           const c10d::AllgatherOptions& /*options*/) {
  if (inputs.size() > 1) return all_gather_lists(outputs, inputs);
  const std::vector<at::Tensor>& list = one_per_rank(outputs, size_, "all_gather");
  Operation call = operation(c10d::OpType::ALLGATHER, "tributary:all_gather", inputs, list);
  add_all_gather_list(call, list, only(inputs, "all_gather"), rank_);
  return submit(std::move(call));
}

// Every outputs[i] gets all inputs of rank 0, then all inputs of rank 1, and so on.
WorkPtr Backend::all_gather_lists(const std::vector<std::vector<at::Tensor>>& outputs,
                                  const std::vector<at::Tensor>& inputs) {
  check_alike(inputs, "all_gather");
  TORCH_CHECK(outputs.size() == inputs.size(), "tributary: all_gather needs as many lists as inputs; it got ",
              outputs.size(), " and ", inputs.size());
  std::vector<at::Tensor> all;
  for (const auto& list : outputs) {
    TORCH_CHECK(list.size() == inputs.size() * static_cast<std::size_t>(size_), "tributary: all_gather of ",
                inputs.size(), " tensors from ", size_, " ranks needs lists of ", inputs.size() * size_,
                " tensors; it got ", list.size());
    for (const at::Tensor& output : list) check_same_type(output, inputs.front(), "all_gather");
    for (const at::Tensor& output : list) check_same_size(output, inputs.front(), "all_gather");
    all.insert(all.end(), list.begin(), list.end());
  }
  Operation call = operation(c10d::OpType::ALLGATHER, "tributary:all_gather", inputs, all);
  const at::Tensor send = call.staging.read_packed(inputs);
  const at::Tensor recv = call.staging.write_packed(outputs.front());
  for (std::size_t i = 1; i < outputs.size(); ++i) call.staging.deliver_packed(recv, outputs[i]);
  call.steps.push_back(all_gather(send, recv));
  return submit(std::move(call));
}

WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& /*options*/) {
  Operation call = operation(c10d::OpType::_ALLGATHER_BASE, "tributary:all_gather_into_tensor", {input}, {output});
  add_all_gather(call, output, input, size_);
  return submit(std::move(call));
}

// outputs[r][i] gets rank r's inputs[i].
WorkPtr Backend::allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                     const c10d::AllgatherOptions& /*options*/) {
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(size_),
              "tributary: all_gather_coalesced needs a list for each of the ", size_, " ranks; it got ",
              outputs.size());
  std::vector<at::Tensor> all;
  for (const auto& list : outputs) {
    check_pairs(list, inputs, "all_gather_coalesced");
    all.insert(all.end(), list.begin(), list.end());
  }
  Operation call = operation(c10d::OpType::ALLGATHER_COALESCED, "tributary:all_gather_coalesced", inputs, all);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<at::Tensor> list;
    for (const auto& of_rank : outputs) list.push_back(of_rank[i]);
    add_all_gather_list(call, list, inputs[i], rank_);
  }
  return submit(std::move(call));
}

WorkPtr Backend::allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                 const c10d::AllgatherOptions& /*options*/) {
  check_pairs(outputs, inputs, "all_gather_into_tensor_coalesced");
  Operation call = operation(c10d::OpType::COALESCED, "tributary:all_gather_into_tensor_coalesced", inputs, outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) add_all_gather(call, outputs[i], inputs[i], size_);
  return submit(std::move(call));
}

WorkPtr Backend::gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                        const c10d::GatherOptions& options) {
  const at::Tensor& input = only(inputs, "gather");
  check_root(options.rootRank, size_, "gather");
  const bool root = options.rootRank == rank_;
  const std::vector<at::Tensor> list = root ? one_per_rank(outputs, size_, "gather") : std::vector<at::Tensor>{};
  for (const at::Tensor& output : list) {
    check_same_type(output, input, "gather");
    check_same_size(output, input, "gather");
  }
  Operation call = operation(c10d::OpType::GATHER, "tributary:gather", inputs, list);
  const at::Tensor send = call.staging.read(input);
  call.steps.push_back(
      gather_to(send, root ? call.staging.write_packed(list) : at::Tensor(), static_cast<int>(options.rootRank)));
  return submit(std::move(call));
}

WorkPtr Backend::scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                         const c10d::ScatterOptions& options) {
  const at::Tensor& output = only(outputs, "scatter");
  check_root(options.rootRank, size_, "scatter");
  const bool root = options.rootRank == rank_;
  const std::vector<at::Tensor> list = root ? one_per_rank(inputs, size_, "scatter") : std::vector<at::Tensor>{};
  for (const at::Tensor& input : list) {
    check_same_type(output, input, "scatter");
    check_same_size(output, input, "scatter");
  }
  Operation call = operation(c10d::OpType::SCATTER, "tributary:scatter", list, outputs);
  const at::Tensor send = root ? call.staging.read_packed(list) : at::Tensor();
  call.steps.push_back(scatter_from(send, call.staging.write(output), static_cast<int>(options.rootRank)));
  return submit(std::move(call));
}

// Exchanges parts of any size, also empty parts: a message to and from every other rank, and a copy of the own part.
void Backend::add_exchange(Operation& operation, const std::vector<at::Tensor>& outputs,
                           const std::vector<at::Tensor>& inputs) {
  for (int peer = 0; peer < size_; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    if (peer == rank_) {
      check_same_size(outputs[index], inputs[index], "all_to_all");
      operation.staging.copy_later(outputs[index], inputs[index]);
    } else {
      operation.steps.push_back(send_to(operation.staging.read(inputs[index]), peer));
      operation.steps.push_back(recv_from(operation.staging.write(outputs[index]), peer));
    }
  }
}

WorkPtr Backend::alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                          const c10d::AllToAllOptions& /*options*/) {
  one_per_rank({outputs}, size_, "all_to_all");
  one_per_rank({inputs}, size_, "all_to_all");
  Operation call = operation(c10d::OpType::ALLTOALL, "tributary:all_to_all", inputs, outputs);
  add_exchange(call, outputs, inputs);
  return submit(std::move(call));
}

// If a call has no splits, no rank's call has splits, and all parts are equal. If the splits are equal on this rank,
// the other ranks' parts may still be unequal.
WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                               std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& /*options*/) {
  check_same_type(output, input, "all_to_all_single");
  const std::vector<at::Tensor> outputs = split_rows(output, output_splits, size_, "output");
  const std::vector<at::Tensor> inputs = split_rows(input, input_splits, size_, "input");
  Operation call = operation(c10d::OpType::ALLTOALL_BASE, "tributary:all_to_all_single", {input}, {output});
  if (output_splits.empty() && input_splits.empty()) {
    check_same_size(output, input, "all_to_all_single");
    const at::Tensor send = call.staging.read(input);
    call.steps.push_back(all_to_all(send, call.staging.write(output), size_));
  } else {
    add_exchange(call, outputs, inputs);
  }
  return submit(std::move(call));
}

namespace {

void check_tag(int tag, const char* what) {
  TORCH_CHECK(tag >= 0, "tributary: ", what, ": a tag must not be negative; it got ", tag);
}

}  // namespace

void Backend::check_peer(int peer, int tag, const char* what) const {
  TORCH_CHECK(peer >= 0 && peer < size_ && peer != rank_, "tributary: ", what, ": rank ", peer,
              " is not another rank of this group of ", size_);
  check_tag(tag, what);
}

WorkPtr Backend::send(std::vector<at::Tensor>& tensors, int peer, int tag) {
  check_peer(peer, tag, "send");
  Operation call = operation(c10d::OpType::SEND, "tributary:send", tensors, tensors);
  call.steps.push_back(send_to(call.staging.read(only(tensors, "send")), peer, tag));
  return submit(std::move(call), tag == 0 ? Line{Line::Kind::send, peer} : Line{Line::Kind::any_order});
}

WorkPtr Backend::recv(std::vector<at::Tensor>& tensors, int peer, int tag) {
  check_peer(peer, tag, "recv");
  Operation call = operation(c10d::OpType::RECV, "tributary:recv", tensors, tensors);
  call.steps.push_back(recv_from(call.staging.write(only(tensors, "recv")), peer, tag));
  call.work->came_from(peer);
  return submit(std::move(call), tag == 0 ? Line{Line::Kind::receive, peer} : Line{Line::Kind::any_order});
}

WorkPtr Backend::recvAnysource(std::vector<at::Tensor>& tensors, int tag) {
  check_tag(tag, "recv");
  Operation call = operation(c10d::OpType::RECVANYSOURCE, "tributary:recvAnySource", tensors, tensors);
  call.steps.push_back(recv_from(call.staging.write(only(tensors, "recv")), TRIBUTARY_ANY_SOURCE, tag));
  return submit(std::move(call), {Line::Kind::any_order});
}

WorkPtr Backend::barrier(const c10d::BarrierOptions& /*options*/) {
  Operation call = operation(c10d::OpType::BARRIER, "tributary:barrier", {}, {});
  call.steps.push_back(
      [](tributary_comm* comm, tributary_request** request) { return tributary_barrier(comm, request); });
  return submit(std::move(call));
}

}  // namespace tributary::torch
