#include "transport/sim/memory/sim_core.h"

#include <stdexcept>
#include <utility>

#include "transport/sim/memory/sim_endpoints.h"

namespace tributary::transport {
namespace {

constexpr std::uint8_t kUserWake = 0;
constexpr std::uint8_t kTurnWake = 1;

/// Sets a flag as long as this object lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

SimCore::SimCore(const SimSettings& settings) : random(settings.seed), settings_(settings) {}
SimCore::~SimCore() = default;

void SimCore::shut_down() {
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) kill(i);
  std::exchange(calls_, {}).clear();
}

std::uint32_t SimCore::host_index(std::string_view name) {
  const auto [at, is_new] = host_names_.try_emplace(std::string(name), static_cast<std::uint32_t>(hosts_.size()));
  if (is_new) {
    hosts_.push_back(std::make_unique<SimHost>());
    hosts_.back()->name = name;
    hosts_.back()->transports.push_back(std::make_unique<SimTransport>(*this, at->second, 0));
    cut_off_.push_back(false);
  }
  return at->second;
}

SimTransport& SimCore::transport(std::uint32_t host_index) {
  return *host(host_index).transports.back();
}

// ---- Events

bool SimCore::stale(const Event& event) {
  switch (event.kind) {
    case EventKind::call:
      return false;
    case EventKind::posted:
      return host(event.target).generation != event.generation;
    case EventKind::wake: {
      const SimHost& woken = host(event.target);
      return woken.generation != event.generation || (event.side == kUserWake && woken.wake_at != event.at);
    }
    case EventKind::connect_limit: {
      const SimConnection& c = connection(event.target);
      return c.generation != event.generation || c.ends[0].opened || c.ends[0].closed;
    }
    case EventKind::flush_limit: {
      const SimConnection& c = connection(event.target);
      return c.generation != event.generation || c.ends[event.side].closed;
    }
    default:
      return connection(event.target).generation != event.generation;
  }
}

/// A stale timer must not move the time.
void SimCore::drop_stale() {
  while (!events_.empty() && stale(events_.top())) events_.pop();
}

bool SimCore::idle() {
  drop_stale();
  return events_.empty();
}

bool SimCore::step() {
  return step_until(TimePoint::max());
}

bool SimCore::step_until(TimePoint limit) {
  if (stepping_) throw std::logic_error("SimNetwork::step() was called from inside a callback");
  drop_stale();
  if (events_.empty() || events_.top().at > limit) return false;
  const Flag flag(stepping_);
  const Event event = events_.pop();
  advance(event.at);
  ++statistics.events;
  handle(event);
  return true;
}

void SimCore::handle(const Event& event) {
  if (held(event)) return;
  switch (event.kind) {
    case EventKind::arrive:
      if (const End& receiver = connection(event.target).ends[1 - event.side]; receiver.closed || receiver.flushing) {
        swallow(event.target, event.side);
      } else {
        make_due(receiver.host, event);
      }
      return;
    case EventKind::knock:
      return knock(event);
    case EventKind::flush_limit:
      return flush_limit(event);
    case EventKind::sent:
    case EventKind::accept:
    case EventKind::opened:
    case EventKind::reset:
    case EventKind::broken:
    case EventKind::connect_limit:
    case EventKind::posted:
      return make_due(host_of(event), event);
    case EventKind::wake: {
      SimHost& woken = host(event.target);
      (event.side == kUserWake) ? void(woken.wake_at = TimePoint::max()) : void(woken.turn_scheduled = false);
      return run_host(event.target);
    }
    case EventKind::call: {
      const auto call = std::move(calls_[event.target]);
      free_calls_.push_back(event.target);
      return call();
    }
  }
}

std::uint32_t SimCore::host_of(const Event& event) {
  switch (event.kind) {
    case EventKind::posted:
      return event.target;
    case EventKind::accept:
      return connection(event.target).ends[1].host;
    case EventKind::opened:
    case EventKind::connect_limit:
      return connection(event.target).ends[0].host;
    default:
      return connection(event.target).ends[event.side].host;
  }
}

void SimCore::make_due(std::uint32_t host_index, const Event& event) {
  host(host_index).due.push_back(event);
  run_host(host_index);
}

// ---- Hosts

void SimCore::run_host(std::uint32_t host_index) {
  SimHost& runs = host(host_index);
  if (!runs.alive || runs.polling) return;
  if (runs.paused) {
    runs.woken = true;
    return;
  }
  if (runs.per_turn > Duration::zero()) {
    if (now_ < runs.busy_until) {
      if (!runs.turn_scheduled) push(runs.busy_until, EventKind::wake, host_index, runs.generation, kTurnWake);
      runs.turn_scheduled = true;
      return;
    }
    const auto spread = random.below(static_cast<std::uint64_t>(runs.per_turn.count()) + 1);
    runs.busy_until = now_ + runs.per_turn / 2 + Duration(static_cast<Duration::rep>(spread));
  }
  if (const auto runner = runs.runner) {
    (*runner)();
  } else {
    poll(host_index, Duration::zero());
  }
}

std::size_t SimCore::poll(std::uint32_t host_index, Duration wait) {
  SimHost& polled = host(host_index);
  if (!polled.alive || polled.polling) return 0;
  const Flag flag(polled.polling);
  const std::uint32_t generation = polled.generation;
  if (wait > Duration::zero() && !stepping_) {
    const TimePoint deadline = now_ + std::min<Duration>(wait, std::chrono::hours(1));  // "for ever" must not overflow
    const auto has_work = [&] { return !polled.paused && !polled.due.empty(); };
    while (!has_work() && step_until(deadline)) {
    }
    if (!has_work()) advance(deadline);
  }
  return polled.generation == generation && !polled.paused ? run_all_due(polled) : 0;
}

/// Work that becomes due meanwhile waits for the next poll: a turn is bounded.
std::size_t SimCore::run_all_due(SimHost& runs) {
  const std::uint64_t callbacks_before = statistics.callbacks;
  const std::uint32_t generation = runs.generation;
  runs.due_now.swap(runs.due);
  std::size_t done = 0;
  while (done < runs.due_now.size() && runs.generation == generation && !runs.paused) {
    const Event event = runs.due_now[done++];
    run_due(event);
  }
  if (runs.generation == generation && done < runs.due_now.size()) {  // one of its own callbacks has paused the host
    runs.due.insert(runs.due.begin(), runs.due_now.begin() + static_cast<std::ptrdiff_t>(done), runs.due_now.end());
  }
  runs.due_now.clear();
  return static_cast<std::size_t>(statistics.callbacks - callbacks_before);
}

void SimCore::run_due(const Event& event) {
  if (stale(event)) return;
  switch (event.kind) {
    case EventKind::arrive:
      return deliver(event);
    case EventKind::sent:
      return tell_sent(event);
    case EventKind::accept:
      return accept(event);
    case EventKind::opened:
      return opened(event);
    case EventKind::reset:
    case EventKind::broken:
      return told_broken(event);
    case EventKind::connect_limit:
      return connect_limit(event);
    case EventKind::posted:
      return run_posted(event.target);
    default:
      return;
  }
}

void SimCore::run_posted(std::uint32_t host_index) {
  auto& posted = host(host_index).posted;
  if (posted.empty()) return;
  const auto call = std::move(posted.front());
  posted.pop_front();
  ++statistics.callbacks;
  call();
}

void SimCore::post(std::uint32_t host_index, std::function<void()> call) {
  host(host_index).posted.push_back(std::move(call));
  push(now_, EventKind::posted, host_index, host(host_index).generation);
}

void SimCore::wake_at(std::uint32_t host_index, TimePoint time) {
  SimHost& sleeper = host(host_index);
  time = std::max(time, now_);
  if (!sleeper.alive || time >= sleeper.wake_at) return;
  sleeper.wake_at = time;
  push(time, EventKind::wake, host_index, sleeper.generation, kUserWake);
}

void SimCore::call_at(TimePoint time, std::function<void()> call) {
  std::uint32_t slot = static_cast<std::uint32_t>(calls_.size());
  if (free_calls_.empty()) {
    calls_.emplace_back();
  } else {
    slot = free_calls_.back();
    free_calls_.pop_back();
  }
  calls_[slot] = std::move(call);
  push(std::max(time, now_), EventKind::call, slot, 0);
}

// ---- State for users of the network

void SimCore::trace(const Event& event, std::uint64_t what) {
  const auto mix = [this](std::uint64_t value) {
    trace_hash_ = (trace_hash_ ^ value) * 0x100000001B3ULL;
    trace_hash_ ^= trace_hash_ >> 32;
  };
  mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  mix(static_cast<std::uint64_t>(event.kind) << 40 | static_cast<std::uint64_t>(event.side) << 32 | event.target);
  mix(what);
  ++statistics.callbacks;
}

Duration SimCore::jitter(const LinkSettings& link) {
  return Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(link.jitter.count()) + 1)));
}

}  // namespace tributary::transport
