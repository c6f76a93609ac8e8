#include "client/plugins/nccl/collective/group_comm.h"

#include <algorithm>
#include <array>
#include <chrono>
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
  const std::string& interface = collective_device_at(device)->interface;
  if (!interface.empty() && (devices().size() > 1 || settings().interfaces.size() > 1))
    config.interface_name = interface.c_str();
  return config;
}

/// The time at which connect() must have ended. NCCL's abort cannot interrupt a call of the plugin, but waits for it.
class ConnectLimit {
 public:
  [[nodiscard]] bool is_over() const { return Clock::now() >= until_; }
  /// Lets the library ask while the ranks meet.
  void put_into(tributary_config& config) {
    config.still_wanted = [](void* limit) { return static_cast<const ConnectLimit*>(limit)->is_over() ? 0 : 1; };
    config.still_wanted_context = this;
  }
  [[nodiscard]] std::int64_t rest_ns() const {
    return std::max<std::int64_t>(0, std::chrono::nanoseconds(until_ - Clock::now()).count());
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until_ = Clock::now() + settings().connect_limit;
};

/// The link rates that the nodes' tuners use: of this node, and the greatest ones. The second number of a pair stands
/// for the least rate.
struct LinkRates {
  std::array<std::uint64_t, 2> mine{};
  std::array<std::uint64_t, 2> greatest{};
};

/// Waits until every rank has come and the greatest rates are known.
tributary_status exchange(tributary_comm* comm, LinkRates& rates, const ConnectLimit& limit) {
  tributary_request* request = nullptr;
  const auto started = tributary_all_reduce(rates.mine.data(), rates.greatest.data(), rates.mine.size(),
                                            TRIBUTARY_UINT64, TRIBUTARY_MAX, comm, &request);
  return started != TRIBUTARY_OK ? started : tributary_wait(request, limit.rest_ns());
}

/// Returns true on all ranks or on none. A rank that has given up exchange() when its time was over, at the moment in
/// which the other ranks ended it, does not come here but aborts. A rank that is here waits for the other ranks, each of
/// which comes or aborts within its own time. So it gives up only after the whole time-out once more: then another
/// rank's process has stood still since exchange(), or its host is gone.
bool all_go_on(tributary_comm* comm) {
  tributary_request* request = nullptr;
  const ConnectLimit again;
  if (tributary_barrier(comm, &request) == TRIBUTARY_OK && tributary_wait(request, again.rest_ns()) == TRIBUTARY_OK) {
    return true;
  }
  warn(std::string("the group did not come up whole, because another rank gave up: ") + tributary_last_error(comm));
  return false;
}

/// Waits until every rank has come, and compares the link rates. Returns true if all ranks met and all rates are equal.
/// All ranks get the same answer. `rates` must live until the communicator has ended.
bool meets_alike(tributary_comm* comm, LinkRates& rates, const ConnectLimit& limit) {
  const bool by_model = settings().tuner && !TunerTable::process();
  const std::uint64_t rate = by_model ? link_rate_here() : 0;
  rates.mine = {rate, UINT64_MAX - rate};
  if (exchange(comm, rates, limit) != TRIBUTARY_OK) {
    warn(std::string("the group did not come up whole: ") +
         (limit.is_over() ? "a rank did not come within TRIBUTARY_NCCL_CONNECT_TIMEOUT" : tributary_last_error(comm)));
    return false;
  }
  const auto& greatest = rates.greatest;
  const std::uint64_t least = UINT64_MAX - greatest[1];
  if (least == greatest[0]) return all_go_on(comm);
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
  ConnectLimit limit;
  tributary_config config = config_of(device);
  limit.put_into(config);
  LinkRates rates;  // declared before `comm`, which may use it until its end
  tributary_comm* made = nullptr;
  if (tributary_comm_init_rank_config(&made, ranks, &id, rank, &config) != TRIBUTARY_OK) {
    warn("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " could not join its group" +
         (limit.is_over() ? " within TRIBUTARY_NCCL_CONNECT_TIMEOUT: " : ": ") + tributary_last_error(nullptr));
    return nullptr;
  }
  std::unique_ptr<GroupComm> comm(new GroupComm(made, ranks, rank));
  // NCCL compares the outcome of this call only within each node: nodes with different outcomes would wait for each
  // other without end. So no rank returns before every rank has come here. If a rank is missing, all ranks fail.
  if (!meets_alike(made, rates, limit)) return nullptr;
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
