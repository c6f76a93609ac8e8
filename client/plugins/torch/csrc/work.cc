#include "work.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <algorithm>

namespace tributary::torch {
namespace {

std::vector<c10::Device> accelerators(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cpu() && std::find(devices.begin(), devices.end(), tensor.device()) == devices.end())
      devices.push_back(tensor.device());
  }
  return devices;
}

}  // namespace

Work::Work(int rank, c10d::OpType type, const char* title, std::uint64_t sequence,
           const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> results)
    : c10d::Work(rank, type, title, inputs),
      title_(title),
      sequence_(sequence),
      results_(std::move(results)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                       accelerators(results_))) {}

bool Work::wait(std::chrono::milliseconds timeout) {
  if (!made_here_) {
    C10_THROW_ERROR(DistBackendError, c10::str(title_, " number ", sequence_,
                                               " was called before this process was forked; it ends only "
                                               "in the parent"));
  }
  {
    std::unique_lock lock(mutex_);
    const auto done = [this] { return completed_; };
    if (timeout == kNoTimeout) {
      cv_.wait(lock, done);
    } else if (!cv_.wait_for(lock, timeout, done)) {
      C10_THROW_ERROR(DistBackendError, c10::str(title_, " number ", sequence_, " did not end within the ",
                                                 timeout.count(), " ms given to wait(); it goes on"));
    }
    if (exception_) std::rethrow_exception(exception_);
  }
  synchronize();
  return true;
}

int Work::sourceRank() const {
  TORCH_CHECK(source_ >= 0, "tributary: only a receive that has ended has a source rank; this is ", title_, " number ",
              sequence_);
  return source_;
}

namespace {

void add(tributary_values& to, const tributary_values& values) {
  to.elements += values.elements;
  to.nans += values.nans;
  to.infinities += values.infinities;
  to.subnormals += values.subnormals;
}

}  // namespace

void Work::count(const tributary_request_details& details) {
  if (details.counted == 0) return;
  if (!counts_) {
    counts_ = details;
    return;
  }
  add(counts_->input, details.input);
  add(counts_->result, details.result);
  const bool known = counts_->relative_error_bound >= 0 && details.relative_error_bound >= 0;
  counts_->relative_error_bound = known ? std::max(counts_->relative_error_bound, details.relative_error_bound) : -1;
}

std::optional<tributary_request_details> Work::statistics() {
  TORCH_CHECK(isCompleted(), "tributary: ", title_, " number ", sequence_,
              " has not ended: call wait() before statistics()");
  return counts_;
}

void Work::synchronize() {
  future_->wait();
}

// Complete the future after the work: a callback of the future may call wait().
void Work::succeed() {
  finish();
  future_->markCompleted(c10::IValue(results_));
}

void Work::fail(std::exception_ptr error) {
  finish(error);
  future_->setError(error);
}

}  // namespace tributary::torch
