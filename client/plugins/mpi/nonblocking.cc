#include "client/plugins/mpi/nonblocking.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "client/plugins/mpi/errors.h"
#include "client/plugins/mpi/progress.h"

namespace tributary::mpi {
namespace {

// A program that waits stays in libtributary for this long before it looks at MPI's requests again.
constexpr std::int64_t kLookNanoseconds = 20'000;

struct Operation {
  Ended ended;
  tributary_comm* comm = nullptr;
  MPI_Request of_mpi = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
};

struct UnderWay {
  std::mutex mutex;
  std::vector<Operation*> operations;
};

UnderWay& under_way() {
  static UnderWay one;
  return one;
}

std::atomic<std::size_t> count{0};

// MPI calls these three functions. An operation belongs to its generalized request.
int query(void* state, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return static_cast<Operation*>(state)->code;
}

int free_operation(void* state) {
  delete static_cast<Operation*>(state);
  return MPI_SUCCESS;
}

int cancel(void* /*state*/, int /*complete*/) {
  return MPI_SUCCESS;  // MPI lets no program cancel a collective
}

/// Tells MPI, which may then free the operation at once.
void finish(Operation& operation, int code) {
  operation.code = code;
  operation.ended = nullptr;
  count.fetch_sub(1, std::memory_order_release);
  PMPI_Grequest_complete(operation.of_mpi);
}

/// Returns what looks for the end of a call, and then moves its result to its place.
Ended end_of(Call call, tributary_comm* on, tributary_request* request) {
  return [call = std::move(call), on, request](std::int64_t nanoseconds) -> std::optional<int> {
    const auto status = wait_a_while(request, nanoseconds);
    if (!status) return std::nullopt;
    if (*status != TRIBUTARY_OK) return code_of(*status, tributary_last_error(on));
    return call.finish ? call.finish() : MPI_SUCCESS;
  };
}

}  // namespace

int make_request(Ended ended, tributary_comm* on, MPI_Request* request) {
  auto operation = std::make_unique<Operation>();
  operation->ended = std::move(ended);
  operation->comm = on;
  const int code = PMPI_Grequest_start(&query, &free_operation, &cancel, operation.get(), &operation->of_mpi);
  if (code != MPI_SUCCESS) return code;
  *request = operation->of_mpi;
  const std::lock_guard lock(under_way().mutex);
  under_way().operations.push_back(operation.release());  // free_operation() frees it
  count.fetch_add(1, std::memory_order_release);
  return MPI_SUCCESS;
}

int start(Call call, tributary_comm* on, MPI_Comm comm, MPI_Request* request) {
  tributary_request* started = nullptr;
  const tributary_status status = call.start(on, &started);
  if (status != TRIBUTARY_OK) return told(code_of(status, tributary_last_error(on)), comm);
  return make_request(end_of(std::move(call), on, started), on, request);
}

bool any_under_way() noexcept {
  return count.load(std::memory_order_acquire) != 0;
}

void finish_ended() {
  std::unique_lock lock(under_way().mutex, std::try_to_lock);
  if (!lock) {
    std::this_thread::yield();  // another thread ends the operations
    return;
  }
  auto& operations = under_way().operations;
  const std::size_t before = operations.size();
  std::erase_if(operations, [](Operation* one) {
    const auto code = one->ended(0);
    if (code) finish(*one, *code);
    return code.has_value();
  });
  if (operations.empty() || operations.size() != before) return;
  Operation* const first = operations.front();
  if (const auto code = first->ended(kLookNanoseconds)) {
    operations.erase(operations.begin());
    finish(*first, *code);
  }
}

void finish_all(tributary_comm* on) {
  const std::lock_guard lock(under_way().mutex);
  std::erase_if(under_way().operations, [on](Operation* one) {
    if (one->comm != on) return false;
    const auto code = one->ended(-1);
    finish(*one, code.value_or(MPI_ERR_OTHER));
    return true;
  });
}

}  // namespace tributary::mpi
