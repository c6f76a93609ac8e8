#pragma once
// One communicator of NCCL's CollNet: a group of libtributary, which sums in the network, and between the ranks if the
// network fails. This class only translates between the two interfaces.
#include <memory>
#include <string>
#include <vector>

#include "client/plugins/nccl/collective/group_request.h"
#include "client/plugins/nccl/collective/registrations.h"
#include "client/plugins/nccl/devices.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {

/// NCCL has 8 requests under way for each group of 8 channels: 64 with 64 channels. The pool has room for more.
inline constexpr std::size_t kGroupRequestsMax = 256;

/// Made and ended on NCCL's service thread; calls and tests on its progress thread; memory on either.
class GroupComm {
 public:
  /// Makes a unique id for the group, with an address of `device`.
  [[nodiscard]] static abi::Result make_id(int device, tributary_unique_id& id);
  /// Blocks until all ranks have met and know it, at most for the time-out. nullptr: the reason was logged.
  [[nodiscard]] static std::unique_ptr<GroupComm> connect(int device, const tributary_unique_id& id, int ranks,
                                                          int rank);
  /// Waits for no other rank: the group ends in the background (farewell.h). If requests are outstanding, as after
  /// ncclCommAbort, it is aborted on all ranks, and no buffer is touched after this returns.
  ~GroupComm();
  GroupComm(const GroupComm&) = delete;
  GroupComm& operator=(const GroupComm&) = delete;

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] tributary_comm* library() const noexcept { return comm_; }
  [[nodiscard]] Registrations& registrations() noexcept { return registrations_; }

  /// Leaves *request NULL if there is no room: NCCL then calls again.
  abi::Result start(std::vector<GroupCall> calls, std::size_t result_bytes, void** request);

  // Called by requests.
  /// Calls GroupRequest::post(), but never before an older request that is not queued yet.
  [[nodiscard]] tributary_status post_in_turn(GroupRequest& request);
  void give_back(GroupRequest& request) {
    TRIBUTARY_ASSERT(free_.size() < requests_.size(), "all {} requests are free already", requests_.size());
    free_.push_back(&request);
  }
  abi::Result fail(GroupRequest& request, const char* what, tributary_status status);

 private:
  GroupComm(tributary_comm* comm, int ranks, int rank);

  bool whole_ = false;  // all ranks have met
  tributary_comm* const comm_;
  const int ranks_;
  const int rank_;
  Registrations registrations_;
  std::vector<std::unique_ptr<GroupRequest>> requests_;
  std::vector<GroupRequest*> free_;
  GroupRequest* half_posted_ = nullptr;  // the library became full while posting it: no other request may overtake it
};

}  // namespace tributary::nccl
