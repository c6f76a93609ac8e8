#pragma once

#include <cstdint>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "process.h"

namespace tributary::torch {

/// The object that a caller of torch.distributed holds while an operation runs.
///
/// A thread of the process group completes it, never under the interpreter lock; the future's callbacks run on that
/// thread. For CUDA tensors, the stream that fills them must be current when succeed() is called: the future records
/// its events there, and wait() makes the caller's stream wait for them.
class Work final : public c10d::Work {
 public:
  /// `title` is a literal; the profiler shows it. `inputs` are for the profiler, `results` for result() and the future.
  Work(int rank, c10d::OpType type, const char* title, std::uint64_t sequence, const std::vector<at::Tensor>& inputs,
       std::vector<at::Tensor> results);

  /// Blocks the calling thread. With a time-out of 0 only the process group's time-out counts. Any other time-out
  /// raises an error when it passes, and the operation goes on.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  /// Returns the rank that has sent, for a receive that has ended well.
  int sourceRank() const override;

  [[nodiscard]] const char* title() const noexcept { return title_; }
  /// Notes the sender's rank of a receive; call it before succeed().
  void came_from(int rank) noexcept { source_ = rank; }
  void succeed();
  void fail(std::exception_ptr error);

 private:
  const char* title_;
  std::uint64_t sequence_;
  int source_ = -1;  // written before the work is completed, read after
  const MadeHere made_here_;
  std::vector<at::Tensor> results_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace tributary::torch
