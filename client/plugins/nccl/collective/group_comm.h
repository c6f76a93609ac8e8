#pragma once
// One communicator of NCCL's CollNet, as a group of libtributary. The library sums in the network, or between the ranks
// if the network fails. This class only translates between the two interfaces.
#include <memory>
#include <string>
#include <vector>

#include "client/plugins/nccl/collective/group_request.h"
#include "client/plugins/nccl/collective/registrations.h"
#include "client/plugins/nccl/devices.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {

/// NCCL has up to 8 unfinished requests per group of 8 channels: 64 with 64 channels. The pool has room for more.
inline constexpr std::size_t kGroupRequestsMax = 256;

/// NCCL's service thread makes and ends it, the progress thread calls and tests, and both threads may register memory.
class GroupComm {
 public:
  /// Makes a unique id for the group; the id holds an address of `device`.
  [[nodiscard]] static abi::Result make_id(int device, tributary_unique_id& id);
  /// Blocks until all ranks have met and know it, at most for the time of TRIBUTARY_NCCL_CONNECT_TIMEOUT. Returns
  /// nullptr after it has logged an error.
  [[nodiscard]] static std::unique_ptr<GroupComm> connect(int device, const tributary_unique_id& id, int ranks,
                                                          int rank);
  /// Waits for no other rank: the group ends in the background (farewell.h). With unfinished requests, as after
  /// ncclCommAbort, the group is aborted on all ranks. No buffer is touched after the destructor has returned.
  ~GroupComm();
  GroupComm(const GroupComm&) = delete;
  GroupComm& operator=(const GroupComm&) = delete;

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] tributary_comm* library() const noexcept { return comm_; }
  [[nodiscard]] Registrations& registrations() noexcept { return registrations_; }

  /// Sets *request to NULL if no request is free: NCCL then calls again.
  abi::Result start(std::vector<GroupCall> calls, std::size_t result_bytes, void** request);

  // Functions that requests call.
  /// Calls GroupRequest::post(), but first queues the rest of an older request that is only partly queued.
  [[nodiscard]] tributary_status post_in_turn(GroupRequest& request);
  void give_back(GroupRequest& request) {
    TRIBUTARY_ASSERT(free_.size() < requests_.size(), "all {} requests are free already", requests_.size());
    free_.push_back(&request);
  }
  abi::Result fail(GroupRequest& request, const char* what, tributary_status status);

 private:
  GroupComm(tributary_comm* comm, int ranks, int rank);

  bool whole_ = false;  // true once all ranks have met
  tributary_comm* const comm_;
  const int ranks_;
  const int rank_;
  Registrations registrations_;
  std::vector<std::unique_ptr<GroupRequest>> requests_;
  std::vector<GroupRequest*> free_;
  GroupRequest* half_posted_ = nullptr;  // request that the full library queued only in part; it is next
};

}  // namespace tributary::nccl
