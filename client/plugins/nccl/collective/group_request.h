#pragma once
// One collective call of NCCL. It makes one call of the library, or several calls if a window covers several ranks'
// parts.
#include <vector>

#include "client/plugins/nccl/request.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

class GroupComm;

struct GroupCall {
  enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, reduce };
  Kind kind = Kind::all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  tributary_dtype dtype = TRIBUTARY_UINT8;
  tributary_op op = TRIBUTARY_SUM;
  int root = 0;
};

/// Belongs to its communicator's pool. Only NCCL's progress thread uses it.
class GroupRequest final : public Request {
 public:
  void prepare(GroupComm* comm, std::vector<GroupCall> calls, std::size_t result_bytes);
  /// Queues the calls that are not queued yet, in order. EXHAUSTED: the library is full now; call post() again later.
  [[nodiscard]] tributary_status post();
  [[nodiscard]] bool posted_any() const noexcept { return next_ > 0; }

  abi::Result test(int* done, int* sizes) override;

 private:
  [[nodiscard]] tributary_status poll(int* done);

  GroupComm* comm_ = nullptr;
  std::vector<GroupCall> calls_;
  std::size_t next_ = 0;  // index in calls_ of the first call that is not queued
  std::vector<tributary_request*> pending_;
  std::size_t result_bytes_ = 0;
};

}  // namespace tributary::nccl
