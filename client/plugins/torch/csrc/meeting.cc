#include "meeting.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "error.h"

namespace tributary::torch {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTitle = "tributary:init_process_group";
constexpr const char* kUniqueIdKey = "tributary/unique_id";
constexpr std::uint8_t kIdFollows = 1;
constexpr std::uint8_t kErrorFollows = 0;
// The pause between two reads of the Store. It grows, so that many ranks do not keep the Store's server busy.
constexpr auto kPauseFirst = 5ms;
constexpr auto kPauseLast = 500ms;
constexpr auto kStoreLook = 1s;  // pause between two reads of the Store while the ranks meet
constexpr auto kLogFirst = 5s;
// An earlier rank 0 may have left an error in the Store. So a rank waits this long for another value in its place.
constexpr auto kErrorStays = 10s;

bool is_id(const std::vector<std::uint8_t>& value) {
  return value.size() == 1 + sizeof(tributary_unique_id::bytes) && value[0] == kIdFollows;
}

}  // namespace

tributary_config config_of(const GroupSettings& settings, std::chrono::milliseconds timeout) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.timeout_ms = std::max(timeout, 1ms).count();
  if (!settings.numerics.empty()) config.numerics = settings.numerics.c_str();
  if (!settings.check_values.empty()) config.check_values = settings.check_values.c_str();
  return config;
}

Meeting::Meeting(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout, GroupSettings settings,
                 std::function<void()> check_signals)
    : store_(store),
      rank_(rank),
      size_(size),
      timeout_(std::max(timeout, 1ms)),
      settings_(std::move(settings)),
      check_signals_(std::move(check_signals)),
      give_up_at_(began_ + timeout_),
      log_at_(began_ + kLogFirst),
      log_pause_(kLogFirst) {}

tributary_comm* Meeting::meet() {
  return rank_ == 0 ? meet_as_rank_0() : meet_rank_0();
}

double Meeting::waited_seconds() const {
  return std::round(std::chrono::duration<double>(Clock::now() - began_).count() * 10) / 10;
}

void Meeting::look() {
  check_signals_();
  const auto now = Clock::now();
  if (now < log_at_) return;
  log_pause_ *= 2;
  log_at_ = now + log_pause_;
  LOG(WARNING) << kTitle << ": rank " << rank_ << " of " << size_ << " waits for " << waits_for_ << ": "
               << waited_seconds() << " s so far, of " << static_cast<double>(timeout_.count()) / 1000 << " s";
}

void Meeting::publish(const tributary_unique_id& id, tributary_status status, const std::string& error) {
  std::vector<std::uint8_t> value{status == TRIBUTARY_OK ? kIdFollows : kErrorFollows};
  if (status == TRIBUTARY_OK) {
    value.insert(value.end(), id.bytes, id.bytes + sizeof id.bytes);
  } else {
    value.insert(value.end(), error.begin(), error.end());
  }
  store_.set(kUniqueIdKey, value);
}

tributary_comm* Meeting::meet_as_rank_0() {
  tributary_unique_id id{};
  tributary_status status = tributary_get_unique_id(&id);
  const std::string error = status == TRIBUTARY_OK ? std::string() : sentence(kTitle, status);
  publish(id, status, error);
  if (status != TRIBUTARY_OK) C10_THROW_ERROR(DistBackendError, error);
  waits_for_ = "the other ranks to come";
  tributary_comm* comm = try_to_meet(id, status);
  if (status != TRIBUTARY_OK) C10_THROW_ERROR(DistBackendError, sentence(kTitle, status));
  return comm;
}

tributary_comm* Meeting::meet_rank_0() {
  std::string refusal;
  while (true) {
    waits_for_ = refusal.empty()
                     ? "rank 0 to leave the group's unique id in the store"
                     : "rank 0 to leave another unique id in the store than the one that failed (" + refusal + ")";
    found_ = fetch_another_id(found_);
    if (!is_id(found_)) {
      // This rank 0 or an earlier rank 0 left the error. An earlier rank 0's error is soon replaced by the right id.
      refusal = "on rank 0, " + std::string(found_.begin() + (found_.empty() ? 0 : 1), found_.end());
      give_up_at_ = std::min(began_ + timeout_, Clock::now() + kErrorStays);
      continue;
    }
    give_up_at_ = began_ + timeout_;
    tributary_unique_id id{};
    std::copy(found_.begin() + 1, found_.end(), id.bytes);
    waits_for_ = "all ranks to meet at rank 0";
    tributary_status status = TRIBUTARY_OK;
    tributary_comm* comm = try_to_meet(id, status);
    if (status == TRIBUTARY_OK) return comm;
    refusal = sentence(kTitle, status);
    // These errors mean that another process has this address now, or that the Store has another id. Any other error
    // would come again.
    if (status != TRIBUTARY_ERROR_DENIED && status != TRIBUTARY_ERROR_UNREACHABLE && status != TRIBUTARY_ERROR_ABORTED)
      C10_THROW_ERROR(DistBackendError, refusal);
  }
}

std::vector<std::uint8_t> Meeting::fetch_another_id(const std::vector<std::uint8_t>& than) {
  auto pause = std::chrono::duration_cast<Clock::duration>(kPauseFirst);
  while (true) {
    if (store_.check({kUniqueIdKey})) {
      auto value = store_.get(kUniqueIdKey);
      if (value != than) return value;
    }
    if (Clock::now() >= give_up_at_) give_up();
    look();
    std::this_thread::sleep_for(std::min(pause, std::chrono::duration_cast<Clock::duration>(100ms)));
    pause = std::min<Clock::duration>(2 * pause, kPauseLast);
  }
}

void Meeting::give_up() const {
  C10_THROW_ERROR(DistBackendError, c10::str(kTitle, ": timed out after ", waited_seconds(), " s: rank ", rank_,
                                             " waits for ", waits_for_));
}

// Catches all exceptions, because they must not pass through the library.
bool Meeting::still_wanted() noexcept {
  try {
    look();
    if (rank_ == 0) return true;
    // After an earlier id failed, the library's own time-out began later than this object's time-out.
    if (Clock::now() >= began_ + timeout_ * 6 / 5) give_up();
    if (Clock::now() < look_at_store_at_) return true;
    look_at_store_at_ = Clock::now() + kStoreLook;
    return store_.get(kUniqueIdKey) == found_;
  } catch (...) {
    stop_ = std::current_exception();
    return false;
  }
}

tributary_comm* Meeting::try_to_meet(const tributary_unique_id& id, tributary_status& status) {
  tributary_config config = config_of(settings_, timeout_);
  config.still_wanted = [](void* self) { return static_cast<Meeting*>(self)->still_wanted() ? 1 : 0; };
  config.still_wanted_context = this;
  tributary_comm* comm = nullptr;
  status = tributary_comm_init_rank_config(&comm, size_, &id, rank_, &config);
  if (stop_) {
    if (status == TRIBUTARY_OK) tributary_comm_abort(comm);
    std::rethrow_exception(stop_);
  }
  return comm;
}

}  // namespace tributary::torch
