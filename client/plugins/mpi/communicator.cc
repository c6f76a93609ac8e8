#include "client/plugins/mpi/communicator.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/manager_watch.h"
#include "client/plugins/mpi/nonblocking.h"
#include "client/plugins/mpi/numerics.h"
#include "client/plugins/mpi/persistent.h"
#include "client/plugins/mpi/progress.h"

namespace tributary::mpi {
namespace {

// A process has at most this many communicators of libtributary: each one has a thread and connections.
constexpr std::size_t kCommunicatorsMax = 64;

int key = MPI_KEYVAL_INVALID;

struct Registry {
  std::mutex mutex;
  std::vector<Communicator*> all;  // in the order of the first communicator of libtributary that each has made
  std::size_t made = 0;            // communicators of libtributary
};

Registry& registry() {
  static Registry one;
  return one;
}

/// Returns true if the number is not 0 on any rank of the communicator. Collective.
bool holds_everywhere(bool here, MPI_Comm comm) {
  int number = here ? 1 : 0;
  return PMPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && number != 0;
}

int turn_mpi_and_go_on(void* /*context*/) {
  turn_mpi();
  return 1;
}

bool is_first_of_job() {
  int rank = -1;
  return PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS && rank == 0;
}

/// Returns true if no later question of rank 0 to the manager could have another outcome: its settings must change.
bool is_for_good(tributary_status status) {
  return status == TRIBUTARY_ERROR_UNSUPPORTED || status == TRIBUTARY_ERROR_BAD_CONFIG ||
         status == TRIBUTARY_ERROR_BAD_ARGUMENT || status == TRIBUTARY_ERROR_DENIED;
}

/// The watch of this process. Call it first after a question: this object must end before those of libtributary that
/// the questions use.
ManagerWatch& manager_watch() {
  static const bool tells = is_first_of_job();
  static ManagerWatch one([] {
    if (tributary_service_check(nullptr) != TRIBUTARY_OK) return false;
    if (tells) say("the manager answers");
    return true;
  });
  return one;
}

enum class Offer : std::uint8_t {
  never,  // no communicator of libtributary can be made
  later,  // no manager answers now
  made,
};

/// Rank 0 asks whether a manager answers, and makes the id. `again`: none has answered this communicator before. As the
/// other ranks wait, rank 0 then asks only once the watch has found one.
Offer offer_of_rank_0(bool again, tributary_unique_id& id) {
  if (again && !manager_watch().answered()) return Offer::later;
  const tributary_status status = tributary_service_check(nullptr);
  if (status == TRIBUTARY_OK && tributary_get_unique_id(&id) == TRIBUTARY_OK) return Offer::made;
  const std::string reason = tributary_last_error(nullptr);
  note_reason(reason);
  if (status == TRIBUTARY_OK || is_for_good(status)) return Offer::never;
  if (manager_watch().begin() && is_first_of_job()) {
    say("calls go by MPI until the manager answers; communicators then try again: " + reason);
  }
  return Offer::later;
}

/// Returns rank 0's offer on all ranks. Collective.
Offer offered(MPI_Comm comm, int rank, bool again, tributary_unique_id& id) {
  struct Told {
    Offer offer = Offer::never;
    tributary_unique_id id{};
  } told;
  if (rank == 0) told.offer = offer_of_rank_0(again, told.id);
  if (PMPI_Bcast(&told, sizeof told, MPI_BYTE, 0, comm) != MPI_SUCCESS) return Offer::never;
  id = told.id;
  return told.offer;
}

void end_one(tributary_comm* comm) {
  run_and_turn_mpi([comm] { tributary_comm_finalize(comm); });
  finish_all(comm);
  tributary_info info{};
  info.struct_bytes = sizeof info;
  if (tributary_comm_info(comm, &info) == TRIBUTARY_OK) {
    count_paths(info.bytes_in_network, info.bytes_fallback + info.bytes_local);
  }
  run_and_turn_mpi([comm] { tributary_comm_destroy(comm); });
}

}  // namespace

bool Communicator::prepare() {
  return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &Communicator::deleted, &key, nullptr) == MPI_SUCCESS;
}

Communicator* Communicator::of(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL || comm == MPI_COMM_SELF) return nullptr;
  void* attribute = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, key, static_cast<void*>(&attribute), &found) != MPI_SUCCESS) return nullptr;
  if (found == 0) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    PMPI_Comm_get_attr(comm, key, static_cast<void*>(&attribute), &found);
    if (found == 0) {
      auto made = std::make_unique<Communicator>(comm);
      if (PMPI_Comm_set_attr(comm, key, made.get()) != MPI_SUCCESS) return nullptr;
      attribute = made.release();  // deleted() frees it
    }
  }
  auto* const communicator = static_cast<Communicator*>(attribute);
  return communicator->state_ == State::passed ? nullptr : communicator;
}

Communicator::Communicator(MPI_Comm comm) : comm_(comm) {
  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &size_);
  if (between_groups != 0 || size_ < 2 || !inside_the_world()) state_ = State::passed;
}

/// Returns false if a rank of the communicator belongs to another MPI_COMM_WORLD, which has settings of its own. Each
/// rank finds at least one rank outside of its world if any rank does.
bool Communicator::inside_the_world() const {
  MPI_Group own = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm_, &own);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(static_cast<std::size_t>(size_));
  std::vector<int> of_world(ranks.size(), MPI_UNDEFINED);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = static_cast<int>(rank);
  const int status = PMPI_Group_translate_ranks(own, size_, ranks.data(), world, of_world.data());
  PMPI_Group_free(&own);
  PMPI_Group_free(&world);
  return status == MPI_SUCCESS && std::ranges::find(of_world, MPI_UNDEFINED) == of_world.end();
}

bool Communicator::waits_for_manager() noexcept {
  return state_ == State::unmade && absence_.known() && !absence_.count();
}

Communicator::Choice Communicator::choose(Collective collective, std::uint64_t bytes) {
  const Settings* const settings = job_settings();
  if (settings == nullptr || state_ == State::passed) return {};
  if (!settings->measured) {
    if (state_ == State::unmade) make_first();
    return {state_ == State::made ? Way::tributary : Way::mpi, nullptr};
  }
  Trials& trials = trials_[static_cast<std::size_t>(collective)][class_of(bytes)];
  if (trials.agree_now()) agree(trials);
  const Way way = trials.way();
  if (way == Way::tributary && state_ == State::unmade) make_first();
  if (way == Way::tributary && state_ != State::made) return {};  // the trials go on when the manager is back
  return {way, &trials};
}

Way Communicator::way_without_waiting(Collective collective, std::uint64_t bytes) const {
  const Settings* const settings = job_settings();
  if (settings == nullptr || state_ != State::made) return Way::mpi;
  if (!settings->measured) return Way::tributary;
  return trials_[static_cast<std::size_t>(collective)][class_of(bytes)].decision();
}

void Communicator::agree(Trials& trials) const {
  std::array<double, 2> times{trials.times().mpi, trials.times().tributary};
  if (PMPI_Allreduce(MPI_IN_PLACE, times.data(), 2, MPI_DOUBLE, MPI_MAX, comm_) != MPI_SUCCESS) times = {0, 1};
  trials.agree({.mpi = times[0], .tributary = times[1]});
}

std::uint64_t Communicator::longest_message(std::uint64_t bytes) {
  if (!longest_.count(bytes)) return longest_.everywhere();
  std::uint64_t everywhere = longest_.here();
  if (PMPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_UINT64_T, MPI_MAX, comm_) != MPI_SUCCESS) everywhere = 0;
  longest_.agree(everywhere);
  return everywhere;
}

void Communicator::make_first() {
  tributary_ = make();
  state_ = tributary_ != nullptr ? State::made : absence_.known() ? State::unmade : State::passed;
}

/// Makes a communicator of libtributary; nullptr on all ranks if a rank could not. Collective. If no manager answers, the
/// ranks try again in a later call: absence_ knows in which one, the same on all ranks.
tributary_comm* Communicator::make() {
  if (absence_.known() && !absence_.due()) return nullptr;
  if (!room_everywhere()) {
    note_reason("a rank has " + std::to_string(kCommunicatorsMax) + " communicators already");
    absence_ = {};
    return nullptr;
  }
  tributary_unique_id id{};
  const Offer outcome = offered(comm_, rank_, absence_.known(), id);
  if (outcome == Offer::later) {
    absence_.note();
    return nullptr;
  }
  absence_ = {};
  return outcome == Offer::made ? join(id) : nullptr;
}

bool Communicator::room_everywhere() const {
  bool room = false;
  {
    const std::lock_guard lock(registry().mutex);  // not held while this rank waits for other ranks
    room = registry().made < kCommunicatorsMax;
  }
  return holds_everywhere(room, comm_);
}

tributary_comm* Communicator::join(const tributary_unique_id& id) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.still_wanted = &turn_mpi_and_go_on;
  turn_mpi_by(config);
  config.numerics = numerics_of(comm_);
  tributary_comm* comm = nullptr;
  const tributary_status status = tributary_comm_init_rank_config(&comm, size_, &id, rank_, &config);
  if (status != TRIBUTARY_OK) {
    const std::string reason = tributary_last_error(nullptr);
    note_reason(reason);
    say("a communicator of " + std::to_string(size_) + " ranks goes by MPI: " + reason);
  }
  if (!holds_everywhere(status == TRIBUTARY_OK, comm_)) {
    if (status == TRIBUTARY_OK) tributary_comm_abort(comm);
    return nullptr;
  }
  const std::lock_guard lock(registry().mutex);
  ++registry().made;
  auto& all = registry().all;
  if (std::ranges::find(all, this) == all.end()) all.push_back(this);
  return comm;
}

tributary_comm* Communicator::reserve(Collective collective, std::uint64_t bytes) {
  const Settings* const settings = job_settings();
  if (settings == nullptr || state_ == State::passed || refused_) return nullptr;
  if (settings->measured && way_without_waiting(collective, bytes) != Way::tributary) return nullptr;
  // A rank may have freed a request that another rank has not freed yet.
  std::uint64_t unused_everywhere = unused();
  const int code = PMPI_Allreduce(MPI_IN_PLACE, &unused_everywhere, 1, MPI_UINT64_T, MPI_BAND, comm_);
  if (code != MPI_SUCCESS) return nullptr;
  if (unused_everywhere != 0) {
    const std::lock_guard lock(registry().mutex);
    Reserved& one = reserved_[static_cast<std::size_t>(std::countr_zero(unused_everywhere))];
    one.used = true;
    return one.comm;
  }
  if (absence_.known() && !absence_.count()) return nullptr;
  tributary_comm* const made = make();
  refused_ = made == nullptr && !absence_.known();
  const std::lock_guard lock(registry().mutex);
  if (made != nullptr) reserved_.push_back({made, true});
  return made;
}

/// Returns a bit for each reserved communicator that no request of this rank uses.
std::uint64_t Communicator::unused() const {
  const std::lock_guard lock(registry().mutex);
  std::uint64_t bits = 0;
  for (std::size_t index = 0; index < reserved_.size(); ++index) {
    if (!reserved_[index].used) bits |= std::uint64_t{1} << index;
  }
  return bits;
}

void Communicator::release(tributary_comm* reserved) {
  const std::lock_guard lock(registry().mutex);
  for (Reserved& one : reserved_) {
    if (one.comm == reserved) one.used = false;
  }
}

void Communicator::renew() {
  if (tributary_ == nullptr && reserved_.empty()) return;
  end();
  state_ = State::unmade;
}

void Communicator::end() {
  state_ = State::passed;
  forget_persistent(*this);
  std::vector<tributary_comm*> made;
  if (tributary_ != nullptr) made.push_back(tributary_);
  for (const Reserved& one : reserved_) made.push_back(one.comm);
  for (tributary_comm* const one : made) end_one(one);
  tributary_ = nullptr;
  reserved_.clear();
  const std::lock_guard lock(registry().mutex);
  registry().made -= made.size();
}

int Communicator::deleted(MPI_Comm /*comm*/, int /*key*/, void* attribute, void* /*extra*/) {
  const std::unique_ptr<Communicator> communicator(static_cast<Communicator*>(attribute));
  {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().all, communicator.get());
  }
  communicator->end();
  return MPI_SUCCESS;
}

void Communicator::end_all() {
  std::vector<Communicator*> all;
  {
    const std::lock_guard lock(registry().mutex);
    all.swap(registry().all);
  }
  for (Communicator* one : all) one->end();
  manager_watch().end();
}

}  // namespace tributary::mpi
