#include "client/plugins/nccl/collective/group_comm.h"

#include <array>
#include <cstdint>

#include "client/plugins/nccl/collective/farewell.h"
#include "client/plugins/nccl/collective/observer.h"
#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/settings.h"
#include "client/plugins/nccl/tuner/model.h"
#include "client/plugins/nccl/tuner/table.h"

namespace tributary::nccl {
namespace {

/// With several devices, each group uses its own device. With one device, the library itself chooses the interface.
tributary_config config_of(int device) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  if (devices().size() > 1 || settings().interfaces.size() > 1)
    config.interface_name = collective_device_at(device)->name.c_str();
  return config;
}

/// Waits until every rank has come, and compares the link rates that the nodes' tuners use. Returns true if all ranks
/// met and all rates are equal. All ranks get the same answer.
bool meets_alike(tributary_comm* comm) {
  const bool by_model = settings().tuner && !TunerTable::process();
  const std::uint64_t rate = by_model ? link_rate_here() : 0;
  const std::array<std::uint64_t, 2> mine{rate, UINT64_MAX - rate};
  std::array<std::uint64_t, 2> greatest{};
  const auto status =
      tributary_all_reduce(mine.data(), greatest.data(), mine.size(), TRIBUTARY_UINT64, TRIBUTARY_MAX, comm, nullptr);
  if (status != TRIBUTARY_OK) {
    warn(std::string("the group did not come up whole: ") + tributary_last_error(comm));
    return false;
  }
  const std::uint64_t least = UINT64_MAX - greatest[1];
  if (least == greatest[0]) return true;
  warn("CollNet stays off: the nodes' links have rates from " + std::to_string(least / 1'000'000) + " to " +
       std::to_string(greatest[0] / 1'000'000) +
       " Mbit/s (0: not known), so their tuners would choose differently; set " +
       "TRIBUTARY_LINK_RATE to one rate on all nodes, or TRIBUTARY_NCCL_TUNER=0");
  return false;
}

}  // namespace

abi::Result GroupComm::make_id(int device, tributary_unique_id& id) {
  if (collective_device_at(device) == nullptr) return abi::Result::invalid_argument;
  const tributary_config config = config_of(device);
  if (tributary_get_unique_id_config(&id, &config) == TRIBUTARY_OK) return abi::Result::success;
  warn(std::string("a group could not be made: ") + tributary_last_error(nullptr));
  return abi::Result::system_error;
}

std::unique_ptr<GroupComm> GroupComm::connect(int device, const tributary_unique_id& id, int ranks, int rank) {
  const tributary_config config = config_of(device);
  tributary_comm* made = nullptr;
  if (tributary_comm_init_rank_config(&made, ranks, &id, rank, &config) != TRIBUTARY_OK) {
    warn("rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
         " could not join its group: " + tributary_last_error(nullptr));
    return nullptr;
  }
  std::unique_ptr<GroupComm> comm(new GroupComm(made, ranks, rank));
  // NCCL compares the outcome of this call only within each node: nodes with different outcomes would wait for each
  // other without end. So no rank returns before every rank has come here. If a rank is missing, all ranks fail.
  if (!meets_alike(made)) return nullptr;
  comm->whole_ = true;
  Observer::process().add(made, ranks, rank);
  return comm;
}

GroupComm::GroupComm(tributary_comm* comm, int ranks, int rank)
    : comm_(comm), ranks_(ranks), rank_(rank), registrations_(comm) {
  requests_.reserve(kGroupRequestsMax);
  for (std::size_t i = 0; i < kGroupRequestsMax; ++i) {
    free_.push_back(requests_.emplace_back(std::make_unique<GroupRequest>()).get());
  }
}

GroupComm::~GroupComm() {
  Observer::process().remove(comm_);
  const bool idle = free_.size() == requests_.size();
  if (whole_ && idle) {
    end_in_the_background(comm_);
  } else if (tributary_comm_abort(comm_) != TRIBUTARY_OK) {
    info(std::string("a group could not be aborted: ") + tributary_last_error(nullptr));
  }
}

abi::Result GroupComm::start(std::vector<GroupCall> calls, std::size_t result_bytes, void** request) {
  *request = nullptr;
  if (free_.empty()) return abi::Result::success;
  GroupRequest* mine = free_.back();
  free_.pop_back();
  mine->prepare(this, std::move(calls), result_bytes);
  const tributary_status status = post_in_turn(*mine);
  if (status == TRIBUTARY_OK || (status == TRIBUTARY_ERROR_EXHAUSTED && mine->posted_any())) {
    *request = mine;
    return abi::Result::success;
  }
  if (status != TRIBUTARY_ERROR_EXHAUSTED) return fail(*mine, "a collective", status);
  give_back(*mine);
  return abi::Result::success;
}

tributary_status GroupComm::post_in_turn(GroupRequest& request) {
  if (half_posted_ != nullptr) {
    TRIBUTARY_ASSERT(half_posted_->posted_any(), "a request of which no call is queued holds up the others");
    if (const auto status = half_posted_->post(); status != TRIBUTARY_OK) return status;
    half_posted_ = nullptr;
  }
  const auto status = request.post();
  if (status == TRIBUTARY_ERROR_EXHAUSTED && request.posted_any()) half_posted_ = &request;
  return status;
}

abi::Result GroupComm::fail(GroupRequest& request, const char* what, tributary_status status) {
  warn(std::string(what) + " of rank " + std::to_string(rank_) + " failed: " + tributary_last_error(comm_));
  if (half_posted_ == &request) half_posted_ = nullptr;
  give_back(request);
  return status == TRIBUTARY_ERROR_PEER_GONE || status == TRIBUTARY_ERROR_TIMED_OUT || status == TRIBUTARY_ERROR_ABORTED
             ? abi::Result::remote_error
             : abi::Result::system_error;
}

}  // namespace tributary::nccl
