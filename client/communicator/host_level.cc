#include "client/communicator/host_level.h"

#include <sched.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/communicator/communicator.h"
#include "client/communicator/local_meeting.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/transport/second_way.h"

namespace tributary::client {

using nlohmann::json;
using transport::Duration;
using transport::TimePoint;

namespace {

using namespace std::chrono_literals;

// The longest wait for the transport while the other ranks of the host work: their next piece will come soon.
constexpr Duration kEager = 200us;
// The longest wait at other times. A rank in this wait notices another rank's work only when the wait has ended.
constexpr Duration kPatient = 1ms;
// The limit of a meeting: long enough, because all ranks of a host have started, and each only maps some memory.
constexpr Duration kMeetingLimit = 10s;
constexpr Duration kLeaveLimit = 1s;

Duration meeting_limit(Duration timeout) {
  return std::min<Duration>(timeout / 5, kMeetingLimit);
}

}  // namespace

std::string encode_between(const CommunicatorInfo& i) {
  return json{{"in_network", i.in_network},
              {"epoch", i.epoch},
              {"lanes", i.lanes},
              {"levels", i.levels},
              {"window", i.window},
              {"segment_bytes", i.segment_bytes},
              {"failovers", i.failovers},
              {"returns", i.returns},
              {"last_pause_us", i.last_pause_us},
              {"longest_pause_us", i.longest_pause_us},
              {"lacks_tree", i.lacks_tree},
              {"reason", i.reason}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

void decode_between(const std::string& body, CommunicatorInfo& info) {
  const json o = json_or_discarded(body);
  if (!o.is_object()) return;
  const auto take = [&o](const char* name, auto& into) {
    const auto it = o.find(name);
    if (it != o.end() && (it->is_number_unsigned() || it->is_boolean() || it->is_string())) it->get_to(into);
  };
  try {
    take("in_network", info.in_network);
    take("epoch", info.epoch);
    take("lanes", info.lanes);
    take("levels", info.levels);
    take("window", info.window);
    take("segment_bytes", info.segment_bytes);
    take("failovers", info.failovers);
    take("returns", info.returns);
    take("last_pause_us", info.last_pause_us);
    take("longest_pause_us", info.longest_pause_us);
    take("lacks_tree", info.lacks_tree);
    take("reason", info.reason);
  } catch (const json::exception&) {
    info.reason = "rank 0 told something malformed";
  }
}

HostLevel::HostLevel(Parts parts) : parts_(std::move(parts)), alive_(std::make_shared<bool>(true)) {}

HostLevel::~HostLevel() {
  *alive_ = false;
}

// Returns the settings of the leaders' communicator. They leave it to the outer communicator, which knows all ranks, to
// name a late rank. But the leaders notice a hanging tree as soon as a communicator without hosts would.
CommunicatorSettings HostLevel::settings_between() const {
  CommunicatorSettings s = parts_.settings;
  const std::uint32_t host = parts_.map.host_of(s.rank);
  s.rank = host;
  s.nranks = parts_.map.hosts();
  s.processes = parts_.settings.nranks;
  s.id = {place_, derived(parts_.settings.id.secret, "the leaders", 0)};
  s.local = false;
  s.local_left_alone = nullptr;
  s.flight_record = nullptr;  // the outer communicator records the operations
  s.timeout = 2 * parts_.settings.timeout;
  if (s.suspect_after == Duration::zero()) s.suspect_after = std::min<Duration>(parts_.settings.timeout / 10, 5s);
  s.known_as.clear();
  for (std::uint32_t h = 0; h < parts_.map.hosts(); ++h) s.known_as.push_back(parts_.map.leader(h));
  s.on_bytes = [this](std::uint64_t in_network, std::uint64_t between_ranks) {
    if (runner_) runner_->count({in_network, between_ranks});
  };
  return s;
}

local::GroupSettings HostLevel::settings_here() const {
  const auto& members = parts_.map.members(parts_.map.host_of(parts_.settings.rank));
  local::GroupSettings s;
  s.rank = parts_.map.place_of(parts_.settings.rank);
  s.ranks = static_cast<std::uint32_t>(members.size());
  s.timeout = std::chrono::hours(24 * 365);  // see settings_between()
  s.host = parts_.settings.host_id;
  s.crowded = s.ranks > local::usable_cores();
  s.attach = parts_.settings.attach;
  s.known_as = members;
  return s;
}

Result<Endpoint> HostLevel::open() {
  place_ = {parts_.settings.id.root.host, 0};
  between_ = std::make_unique<Communicator>(parts_.transport, parts_.service, settings_between());
  auto listener = transport::lasting_way(parts_.transport).listen(place_, *between_);
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::move(*listener);
  place_.port = listener_->local().port;
  return place_;
}

void HostLevel::start(const Endpoint& place, std::function<void(const Status&)> then) {
  place_ = place;
  then_ = std::move(then);
  late_at_ = parts_.transport.now() + 2 * meeting_limit(parts_.settings.timeout) + 1s;
  if (parts_.settings.rank == 0) meet_leaders();  // other leaders may come before this host's ranks have met
  if (!parts_.map.alone(parts_.settings.rank)) return meet_here();
  on_met_here({});
}

bool HostLevel::late(TimePoint now) const {
  return meeting() && now >= late_at_ && !(between_ && between_->has_met());
}

void HostLevel::meet_here() {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(meeting_limit(parts_.settings.timeout));
  const std::uint32_t host = parts_.map.host_of(parts_.settings.rank);
  const std::array secrets{derived(parts_.settings.id.secret, "the way up", host),
                           derived(parts_.settings.id.secret, "the way down", host)};
  auto meet = [secrets, settings = settings_here(), limit](int stop) -> LocalMeeting::Outcome {
    LocalMeeting::Outcome groups;
    std::vector<local::MeetingPlace> places;
    for (const Secret& secret : secrets) {
      if (settings.rank != 0) break;
      auto place = local::MeetingPlace::open(secret);
      if (!place) return std::unexpected(place.error());
      places.push_back(std::move(*place));
    }
    for (std::size_t i = 0; i < secrets.size(); ++i) {
      auto group = settings.rank == 0
                       ? places[i].gather(settings, limit, stop)
                       : local::come(secrets[i], settings, 2 * limit, stop, local::Place::may_open_later);
      if (!group) return std::unexpected(group.error());
      groups->push_back(std::move(*group));
    }
    return groups;
  };
  meeting_ = std::make_unique<LocalMeeting>(std::move(meet), [this](LocalMeeting::Outcome outcome) {
    // This object lives until the meeting has ended, but may be gone when the posted call runs.
    const auto shared = std::make_shared<LocalMeeting::Outcome>(std::move(outcome));
    parts_.transport.post([this, alive = alive_, shared] {
      if (*alive) on_met_here(std::move(*shared));
    });
  });
}

void HostLevel::on_met_here(LocalMeeting::Outcome groups) {
  meeting_.reset();
  if (!groups) return answer(std::unexpected(groups.error()));
  groups_ = std::move(*groups);
  hosts::HostRunner::Parts runner{
      .rank = parts_.settings.rank, .map = parts_.map, .done = parts_.done, .came = parts_.came};
  if (!groups_.empty()) {
    runner.up = std::move(groups_[0]);
    runner.down = std::move(groups_[1]);
  }
  if (leads()) runner.between = [this](std::unique_ptr<Operation> o) { between_->submit(std::move(o)); };
  runner_ = std::make_unique<hosts::HostRunner>(std::move(runner));
  if (!leads()) return answer({});
  if (parts_.settings.rank != 0) return meet_leaders();
  if (between_->ready()) answer({});
}

void HostLevel::meet_leaders() {
  if (!between_) between_ = std::make_unique<Communicator>(parts_.transport, nullptr, settings_between());
  // The leaders' communicator also calls this after a change of tuning, which does not change the text.
  between_->on_path_change = [this](const std::string&, bool) {
    std::string now = encode_between(between_->info());
    if (now == std::exchange(told_between_, now)) return;
    if (parts_.path_changed) parts_.path_changed();
  };
  between_->on_second_way = parts_.second_way;
  between_->on_late = parts_.late;
  between_->start([this](const Status& status) {
    if (!status || runner_) answer(status);
  });
}

void HostLevel::answer(const Status& status) {
  if (auto then = std::exchange(then_, nullptr)) then(status);
}

void HostLevel::submit(Operation& operation) {
  moved_at_ = parts_.transport.now();
  runner_->submit(operation);
}

Duration HostLevel::attend(TimePoint now, Duration limit, bool quiet) {
  if (!runner_ || runner_->idle()) return limit;
  if (runner_->advance()) {
    moved_at_ = now;
    return Duration::zero();
  }
  if (!runner_->waits_here()) return limit;
  if (now - moved_at_ < kEager) {
    sched_yield();
    return Duration::zero();
  }
  if (!quiet || runner_->waits_between()) return std::min(limit, kPatient);
  runner_->sleep(std::min(limit, kPatient));
  return Duration::zero();
}

void HostLevel::tick(TimePoint now) {
  if (between_) between_->tick(now);
  if (runner_) {
    runner_->inspect();
    runner_->attend();
  }
  if (now >= leaves_until_) {
    if (auto left = std::exchange(left_, nullptr)) left();
  }
}

void HostLevel::excuse(Duration absence) noexcept {
  for (TimePoint* limit : {&late_at_, &leaves_until_}) {
    if (*limit != TimePoint::max()) *limit += absence;
  }
}

std::optional<Error> HostLevel::error() const {
  if (meeting()) return std::nullopt;
  if (runner_) {
    if (auto error = runner_->error()) return error;
  }
  return between_ ? between_->error() : std::nullopt;
}

std::optional<std::uint64_t> HostLevel::disputed() const {
  if (!runner_) return std::nullopt;
  if (auto here = runner_->disputed()) return here;
  if (between_ && between_->error()) return runner_->operation_of(between_->disputed());
  return std::nullopt;
}

void HostLevel::fail(const Error& error) {
  if (runner_) runner_->fail(error);
  if (between_) between_->abort(error.message);
}

void HostLevel::finalize(std::function<void()> done) {
  if (!between_ || between_->error()) return done();
  left_ = std::move(done);
  leaves_until_ = parts_.transport.now() + std::min<Duration>(kLeaveLimit, parts_.settings.timeout);
  between_->finalize([this, alive = alive_](const Status&) {
    if (!*alive) return;
    if (auto left = std::exchange(left_, nullptr)) left();
  });
}

TimePoint HostLevel::progress_at() const noexcept {
  return between_ ? std::max(moved_at_, between_->progress_at()) : moved_at_;
}

}  // namespace tributary::client
