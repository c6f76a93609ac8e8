// AllReduce of sparse tensors, such as an embedding's gradient: sums the entries of all ranks.
#include <ATen/Functions.h>

#include <algorithm>
#include <memory>

#include "backend.h"
#include "checks.h"
#include "element.h"

namespace tributary::torch {
namespace {

constexpr const char* kWhat = "all_reduce of a sparse tensor";
constexpr std::int64_t kDimsMax = 16;

/// Every rank gathers the indices and values of all ranks. For the transfer, every rank's part is as long as the
/// longest part. So memory and traffic grow with the number of ranks times the longest part.
class SparseSum {
 public:
  SparseSum(const at::Tensor& tensor, int size)
      : own_(tensor.detach().coalesce()),
        shape_(at::zeros({kShape}, at::kLong)),
        shapes_(at::empty({size, kShape}, at::kLong)) {
    auto* shape = shape_.mutable_data_ptr<std::int64_t>();
    shape[0] = own_._nnz();
    shape[1] = own_.sparse_dim();
    shape[2] = own_.dense_dim();
    std::copy(own_.sizes().begin(), own_.sizes().end(), shape + 3);
  }

  [[nodiscard]] tributary_status start(tributary_comm* comm, tributary_request** request) const {
    return tributary_all_gather(shape_.const_data_ptr(), shapes_.mutable_data_ptr(), kShape, TRIBUTARY_INT64, comm,
                                request);
  }

  /// Call it when the shapes of all ranks have come.
  void add_steps(Operation& operation) {
    const at::NoGradGuard no_grad;
    const auto* shapes = shapes_.const_data_ptr<std::int64_t>();
    std::int64_t most = 0;
    for (std::int64_t rank = 0; rank < shapes_.size(0); ++rank) {
      const std::int64_t* shape = shapes + rank * kShape;
      TORCH_CHECK(std::equal(shape + 1, shape + kShape, shape_.const_data_ptr<std::int64_t>() + 1),
                  "the sparse tensors of all ranks must have one shape; rank ", rank,
                  " has another shape than this rank");
      lengths_.push_back(shape[0]);
      most = std::max(most, shape[0]);
    }
    if (most > 0) {
      indices_ = add_gather(operation, own_._indices().t(), most);
      values_ = add_gather(operation, own_._values(), most);
    }
  }

  [[nodiscard]] at::Tensor sum() const {
    std::vector<at::Tensor> indices, values;
    for (std::size_t rank = 0; indices_.defined() && rank < lengths_.size(); ++rank) {
      const auto row = static_cast<std::int64_t>(rank);
      indices.push_back(indices_.select(0, row).narrow(0, 0, lengths_[rank]));
      values.push_back(values_.select(0, row).narrow(0, 0, lengths_[rank]));
    }
    if (indices.empty()) return own_;
    return at::_sparse_coo_tensor_unsafe(at::cat(indices).t(), at::cat(values), own_.sizes()).coalesce();
  }

 private:
  static constexpr std::int64_t kShape = 3 + kDimsMax;

  [[nodiscard]] at::Tensor add_gather(Operation& operation, const at::Tensor& rows, std::int64_t most) const {
    auto sizes = rows.sizes().vec();
    sizes[0] = most;
    at::Tensor send = at::zeros(sizes, rows.options());
    send.narrow(0, 0, rows.size(0)).copy_(rows);
    sizes.insert(sizes.begin(), shapes_.size(0));
    at::Tensor recv = at::empty(sizes, rows.options());
    operation.steps.push_back([=, element = Element(send)](tributary_comm* comm, tributary_request** request) {
      return tributary_all_gather(send.const_data_ptr(), recv.mutable_data_ptr(), element.count(send), element.dtype,
                                  comm, request);
    });
    return recv;
  }

  const at::Tensor own_;
  const at::Tensor shape_;   // number of entries, sparse and dense dimensions, sizes
  const at::Tensor shapes_;  // shapes of all ranks
  std::vector<std::int64_t> lengths_;
  at::Tensor indices_, values_;  // entries of all ranks; undefined if no rank has an entry
};

}  // namespace

WorkPtr Backend::allreduce_sparse(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor& tensor = only(tensors, kWhat);
  TORCH_CHECK(tensor.layout() == at::kSparse && tensor.is_cpu(), "tributary: ", kWhat, " takes COO tensors of the CPU");
  TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "tributary: ", kWhat, " can only be a SUM");
  TORCH_CHECK(tensor.dim() <= kDimsMax, "tributary: ", kWhat, " takes up to ", kDimsMax, " dimensions");
  const at::NoGradGuard no_grad;
  const auto sum = std::make_shared<SparseSum>(tensor, size_);
  Operation call{c10::make_intrusive<Work>(rank_, c10d::OpType::_ALLREDUCE_SPARSE, "tributary:all_reduce",
                                           getSequenceNumberForGroup(), std::vector<at::Tensor>{}, tensors),
                 Staging(at::kCPU),
                 {},
                 nullptr,
                 nullptr};
  call.first = [sum](tributary_comm* comm, tributary_request** request) { return sum->start(comm, request); };
  call.add_steps = [sum](Operation& operation) { sum->add_steps(operation); };
  call.staging.copy_later(tensor, tensor, [sum](const at::Tensor&) { return sum->sum(); });
  return submit(std::move(call));
}

}  // namespace tributary::torch
