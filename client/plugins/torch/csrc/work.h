#pragma once

#include <cstdint>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "process.h"
#include "tributary/tributary.h"

namespace tributary::torch {

/// The object that a caller of torch.distributed holds while an operation runs.
///
/// A thread of the process group completes the work, and does not hold the interpreter lock then. The future's
/// callbacks run on this thread. For CUDA tensors, the stream that fills them must be current when succeed() is called.
/// The future records its events on this stream, and wait() makes the caller's stream wait for these events.
class Work final : public c10d::Work {
 public:
  /// `title` is a literal; the profiler shows it. `inputs` are for the profiler, `results` for result() and the future.
  Work(int rank, c10d::OpType type, const char* title, std::uint64_t sequence, const std::vector<at::Tensor>& inputs,
       std::vector<at::Tensor> results);

  /// Blocks the calling thread. With a time-out of 0, only the process group's time-out counts. When any other time-out
  /// passes, wait() raises an error, and the operation continues.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  std::vector<at::Tensor> result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }
  /// For a receive that has ended well: returns the rank that has sent the message.
  int sourceRank() const override;

  [[nodiscard]] const char* title() const noexcept { return title_; }
  /// Sets the sender's rank of a receive. Call it before succeed().
  void came_from(int rank) noexcept { source_ = rank; }
  /// Adds the counts of one request of this work. Call it before succeed() or fail().
  void count(const tributary_request_details& details);
  /// Returns the counts of the work's requests together; none if the group counts nothing. Raises an error if the work
  /// has not ended.
  [[nodiscard]] std::optional<tributary_request_details> statistics();
  void succeed();
  void fail(std::exception_ptr error);

 private:
  const char* title_;
  std::uint64_t sequence_;
  int source_ = -1;                                  // written before the work is completed, read afterwards
  std::optional<tributary_request_details> counts_;  // likewise
  const MadeHere made_here_;
  std::vector<at::Tensor> results_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace tributary::torch
