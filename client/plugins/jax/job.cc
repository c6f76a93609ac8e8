#include "client/plugins/jax/job.h"

#include <array>
#include <cstddef>
#include <utility>

namespace tributary::jax {
namespace {

constexpr const char* kNotStarted = "call tributary.jax.initialize() before the first use of JAX's devices";

/// The first rank's message to the other ranks of a new communicator.
struct Offer {
  tributary_unique_id id;
  std::uint8_t made;
  std::array<char, 255> error;
};

template <class T>
tributary_status gather(const Communicator& world, const T& mine, std::vector<T>& all) {
  all.resize(static_cast<std::size_t>(world.size()));
  return tributary_all_gather(&mine, all.data(), sizeof(T), TRIBUTARY_UINT8, world.comm(), nullptr);
}

Offer make_offer() {
  Offer offer{};
  offer.made = tributary_get_unique_id(&offer.id) == TRIBUTARY_OK ? 1 : 0;
  if (offer.made == 0) std::string(tributary_last_error(nullptr)).copy(offer.error.data(), offer.error.size() - 1);
  return offer;
}

std::shared_ptr<Communicator> failed(std::string reason) {
  return std::make_shared<Communicator>(std::move(reason));
}

}  // namespace

tributary_status Job::start(int rank, int size, const tributary_unique_id& id, const tributary_config& config,
                            std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || made_.contains(kCommWorld)) {
      error = finished_ ? "the job of this process has ended" : "the job of this process has started already";
      return TRIBUTARY_ERROR_BAD_ARGUMENT;
    }
  }
  tributary_comm* comm = nullptr;
  const tributary_status status = tributary_comm_init_rank_config(&comm, size, &id, rank, &config);
  if (status != TRIBUTARY_OK) {
    error = tributary_last_error(nullptr);
    return status;
  }
  const std::lock_guard lock(mutex_);
  made_[kCommWorld] = std::make_shared<Communicator>(comm, rank, size);
  return TRIBUTARY_OK;
}

void Job::ask_at_end(void (*failure)(char*)) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
}

void Job::finish() {
  std::map<Comm, std::shared_ptr<Communicator>> ended;
  void (*failure)(char*) = nullptr;
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    failure = failure_;
    ended.swap(made_);
  }
  // Communicators close in the order of their handles, on all ranks alike; the world's first, because no other
  // communicator needs it.
  std::array<char, kFailureBytes> reason{};
  if (!ended.empty() && failure != nullptr) failure(reason.data());
  for (const auto& [handle, one] : ended) one->close(reason.data());
}

bool Job::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

std::shared_ptr<Communicator> Job::find(Comm handle) const {
  const std::lock_guard lock(mutex_);
  if (const auto place = made_.find(handle); place != made_.end()) return place->second;
  if (finished_) return failed("MPI_Finalize has ended all communicators");
  if (!made_.contains(kCommWorld)) return failed(kNotStarted);
  return failed("no communicator has the handle " + std::to_string(handle));
}

Comm Job::split(const SplitArguments& arguments) {
  std::shared_ptr<Communicator> world = find(kCommWorld);
  std::shared_ptr<Communicator> made =
      world->comm() == nullptr ? failed(world->failure()) : split_of(*world, arguments);
  if (made == nullptr && arguments.color == kUndefined) return kCommNull;
  const std::lock_guard lock(mutex_);
  const Comm handle = next_++;
  made_[handle] = made == nullptr ? std::move(world) : std::move(made);
  return handle;
}

/// Returns nullptr if the rank has no new communicator of its own.
std::shared_ptr<Communicator> Job::split_of(const Communicator& world, const SplitArguments& mine) const {
  std::vector<SplitArguments> all;
  if (gather(world, mine, all) != TRIBUTARY_OK) return failed(tributary_last_error(world.comm()));
  const Members members = members_of(all, world.rank());
  if (members.refusal.empty() && members.ranks.size() == all.size()) {
    bool same_order = true;
    for (std::size_t place = 0; place < all.size(); ++place) {
      same_order = same_order && members.ranks[place] == static_cast<int>(place);
    }
    if (same_order) return nullptr;
  }
  return meet(world, members);
}

/// Every rank of the world takes part, because ranks with other colors meet at the same time.
std::shared_ptr<Communicator> Job::meet(const Communicator& world, const Members& members) const {
  const bool first = members.refusal.empty() && !members.ranks.empty() && members.rank == 0;
  std::vector<Offer> all;
  const Offer mine = first ? make_offer() : Offer{};
  if (gather(world, mine, all) != TRIBUTARY_OK) return failed(tributary_last_error(world.comm()));
  if (!members.refusal.empty()) return failed(members.refusal);
  if (members.ranks.empty()) return nullptr;
  const Offer& offer = all[static_cast<std::size_t>(members.ranks.front())];
  if (offer.made == 0) return failed(offer.error.data());
  const tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  tributary_comm* comm = nullptr;
  const int size = static_cast<int>(members.ranks.size());
  if (tributary_comm_init_rank_config(&comm, size, &offer.id, members.rank, &config) != TRIBUTARY_OK) {
    return failed(tributary_last_error(nullptr));
  }
  return std::make_shared<Communicator>(comm, members.rank, size);
}

void Job::free(Comm handle) {
  std::shared_ptr<Communicator> last;
  const std::lock_guard lock(mutex_);
  const auto place = made_.find(handle);
  if (place == made_.end() || handle == kCommWorld) return;
  last = std::move(place->second);
  made_.erase(place);
}

std::optional<JobInfo> Job::info() const {
  std::map<Comm, std::shared_ptr<Communicator>> made;
  {
    const std::lock_guard lock(mutex_);
    made = made_;
  }
  const auto world = made.find(kCommWorld);
  if (world == made.end()) return std::nullopt;
  JobInfo sum;
  for (const auto& [handle, one] : made) {
    if (one->comm() == nullptr || (handle != kCommWorld && one == world->second)) continue;
    tributary_info info{};
    info.struct_bytes = sizeof info;
    if (tributary_comm_info(one->comm(), &info) != TRIBUTARY_OK) continue;
    if (handle == kCommWorld) sum.world = info;
    ++sum.communicators;
    sum.operations += info.operations;
    sum.bytes_in_network += info.bytes_in_network;
    sum.bytes_fallback += info.bytes_fallback;
    sum.bytes_local += info.bytes_local;
    sum.failovers += info.failovers;
    sum.returns += info.returns;
  }
  return sum;
}

Job& job() {
  static Job* const one = new Job;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
  return *one;
}

}  // namespace tributary::jax
