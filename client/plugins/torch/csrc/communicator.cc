#include "communicator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "error.h"

namespace tributary_torch {
namespace {

constexpr const char* kUniqueIdKey = "tributary/unique_id";
constexpr std::uint8_t kIdFollows = 1;
constexpr std::uint8_t kErrorFollows = 0;

void publish(c10d::Store& store, const tributary_unique_id& id, tributary_status status, const std::string& error) {
  std::vector<std::uint8_t> value{status == TRIBUTARY_OK ? kIdFollows : kErrorFollows};
  if (status == TRIBUTARY_OK) {
    value.insert(value.end(), id.bytes, id.bytes + sizeof id.bytes);
  } else {
    value.insert(value.end(), error.begin(), error.end());
  }
  store.set(kUniqueIdKey, value);
}

tributary_unique_id make_unique_id(c10d::Store& store) {
  tributary_unique_id id{};
  const tributary_status status = tributary_get_unique_id(&id);
  const std::string error = status == TRIBUTARY_OK ? std::string() : sentence("tributary:init_process_group", status);
  publish(store, id, status, error);
  if (status != TRIBUTARY_OK) C10_THROW_ERROR(DistBackendError, error);
  return id;
}

tributary_unique_id fetch_unique_id(c10d::Store& store) {
  const std::vector<std::uint8_t> value = store.get(kUniqueIdKey);
  tributary_unique_id id{};
  if (value.size() != 1 + sizeof id.bytes || value[0] != kIdFollows) {
    C10_THROW_ERROR(DistBackendError,
                    "on rank 0, " + std::string(value.begin() + (value.empty() ? 0 : 1), value.end()));
  }
  std::copy(value.begin() + 1, value.end(), id.bytes);
  return id;
}

}  // namespace

Communicator::Communicator(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout) {
  const tributary_unique_id id = rank == 0 ? make_unique_id(store) : fetch_unique_id(store);
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.timeout_ms = std::max<std::int64_t>(timeout.count(), 1);
  check(tributary_comm_init_rank_config(&comm_, size, &id, rank, &config), "tributary:init_process_group");
}

bool Communicator::use(const std::function<void(tributary_comm*)>& call) {
  std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return false;
  call(comm_);
  return true;
}

tributary_comm* Communicator::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(comm_, nullptr);
}

tributary_status Communicator::close() {
  tributary_comm* comm = take();
  return comm != nullptr ? tributary_comm_destroy(comm) : TRIBUTARY_OK;
}

void Communicator::abort() {
  if (tributary_comm* comm = take()) tributary_comm_abort(comm);
}

}  // namespace tributary_torch
