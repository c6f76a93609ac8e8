#include "client/plugins/nccl/collective/group_request.h"

#include "client/plugins/nccl/collective/group_comm.h"
#include "client/plugins/nccl/log.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

tributary_status start(const GroupCall& call, tributary_comm* comm, tributary_request** request) {
  switch (call.kind) {
    case GroupCall::Kind::all_reduce:
      return tributary_all_reduce(call.send, call.receive, call.count, call.dtype, call.op, comm, request);
    case GroupCall::Kind::all_gather:
      return tributary_all_gather(call.send, call.receive, call.count, call.dtype, comm, request);
    case GroupCall::Kind::reduce_scatter:
      return tributary_reduce_scatter(call.send, call.receive, call.count, call.dtype, call.op, comm, request);
    case GroupCall::Kind::broadcast:
      return tributary_broadcast(call.send, call.receive, call.count, call.dtype, call.root, comm, request);
    case GroupCall::Kind::reduce:
      return tributary_reduce(call.send, call.receive, call.count, call.dtype, call.op, call.root, comm, request);
  }
  return TRIBUTARY_ERROR_INTERNAL;
}

}  // namespace

void GroupRequest::prepare(GroupComm* comm, std::vector<GroupCall> calls, std::size_t result_bytes) {
  comm_ = comm;
  calls_ = std::move(calls);
  next_ = 0;
  pending_.clear();
  result_bytes_ = result_bytes;
}

tributary_status GroupRequest::post() {
  for (; next_ < calls_.size(); ++next_) {
    tributary_request* request = nullptr;
    if (const auto status = start(calls_[next_], comm_->library(), &request); status != TRIBUTARY_OK) return status;
    pending_.push_back(request);
  }
  return TRIBUTARY_OK;
}

tributary_status GroupRequest::poll(int* done) {
  *done = 0;
  if (next_ < calls_.size()) {
    if (const auto status = comm_->post_in_turn(*this); status != TRIBUTARY_OK) {
      return status == TRIBUTARY_ERROR_EXHAUSTED ? TRIBUTARY_OK : status;
    }
  }
  TRIBUTARY_ASSERT(next_ == calls_.size() && pending_.size() <= calls_.size(),
                   "{} of {} calls are queued, and {} have not ended", next_, calls_.size(), pending_.size());
  while (!pending_.empty()) {
    int ended = 0;
    const auto status = tributary_test(pending_.back(), &ended);
    if (ended == 0) return status;
    pending_.pop_back();
    if (status != TRIBUTARY_OK) return status;
  }
  *done = 1;
  return TRIBUTARY_OK;
}

abi::Result GroupRequest::test(int* done, int* sizes) {
  const tributary_status status = poll(done);
  if (status != TRIBUTARY_OK) return comm_->fail(*this, "a collective", status);
  if (*done == 0) return abi::Result::success;
  if (sizes != nullptr) *sizes = static_cast<int>(result_bytes_);
  comm_->give_back(*this);
  return abi::Result::success;
}

}  // namespace tributary::nccl
