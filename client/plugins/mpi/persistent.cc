#include "client/plugins/mpi/persistent.h"

#include <atomic>
#include <map>
#include <mutex>

#include "client/plugins/mpi/nonblocking.h"

namespace tributary::mpi {
namespace {

struct Persistent {
  Call call;
  MPI_Comm comm;
  Communicator* communicator;  // null once it has ended
  tributary_comm* on;
  MPI_Request generalized = MPI_REQUEST_NULL;  // the request of the start that has not ended
};

struct Requests {
  std::mutex mutex;
  std::map<MPI_Request, Persistent> all;
};

Requests& requests() {
  static Requests one;
  return one;
}

std::atomic<std::size_t> by_tributary{0};  // requests that go by libtributary
std::atomic<std::size_t> not_ended{0};     // starts whose operation has not ended

}  // namespace

void remember_persistent(MPI_Request request, Call call, MPI_Comm comm, Communicator& communicator,
                         tributary_comm* on) {
  const std::lock_guard lock(requests().mutex);
  requests().all.insert_or_assign(request, Persistent{std::move(call), comm, &communicator, on});
  by_tributary.store(requests().all.size(), std::memory_order_release);
}

void forget_persistent(const Communicator& communicator) {
  const std::lock_guard lock(requests().mutex);
  for (auto& [request, one] : requests().all) {
    if (one.communicator == &communicator) one.communicator = nullptr;
  }
}

void forget_persistent(MPI_Request request) {
  if (!any_persistent()) return;
  const std::lock_guard lock(requests().mutex);
  const auto found = requests().all.find(request);
  if (found == requests().all.end()) return;
  const Persistent& one = found->second;
  const bool ended = one.generalized == MPI_REQUEST_NULL;
  // A program must not free a request that is under way; if it does, its communicator serves no other request.
  if (one.communicator != nullptr && ended) one.communicator->release(one.on);
  requests().all.erase(found);
  by_tributary.store(requests().all.size(), std::memory_order_release);
}

std::optional<int> start_persistent(MPI_Request request) {
  if (!any_persistent()) return std::nullopt;
  const std::lock_guard lock(requests().mutex);
  const auto found = requests().all.find(request);
  if (found == requests().all.end() || found->second.communicator == nullptr) return std::nullopt;
  Persistent& one = found->second;
  if (one.generalized != MPI_REQUEST_NULL) return MPI_ERR_REQUEST;
  count_call(one.call.collective, Way::tributary, one.call.bytes);
  return start(one.call, one.on, one.comm, &one.generalized);
}

std::optional<MPI_Request> stand_in(MPI_Request request) {
  const std::lock_guard lock(requests().mutex);
  const auto found = requests().all.find(request);
  if (found == requests().all.end()) return std::nullopt;
  const Persistent& one = found->second;
  if (one.communicator == nullptr && one.generalized == MPI_REQUEST_NULL) return std::nullopt;
  return one.generalized;
}

void end_persistent(MPI_Request request) {
  const std::lock_guard lock(requests().mutex);
  const auto found = requests().all.find(request);
  if (found != requests().all.end()) found->second.generalized = MPI_REQUEST_NULL;
}

bool any_persistent() noexcept {
  return by_tributary.load(std::memory_order_acquire) != 0;
}

}  // namespace tributary::mpi
