// Class SimCore: makes faults on purpose.
#include <algorithm>

#include "transport/sim/memory/sim_core.h"
#include "transport/sim/memory/sim_endpoints.h"

namespace tributary::transport {

// ---- Breaks

void SimCore::break_connection(std::uint32_t index, const std::string& why) {
  SimConnection& c = connection(index);
  c.accept_pending = false;
  for (unsigned side = 0; side < 2; ++side) {
    drop_frames(c.pipes[side]);
    c.pipes[side].dead = true;
    if (c.ends[side].closed || c.ends[side].broken_by) continue;
    c.ends[side].broken_by =
        Error{Errc::peer_gone, "the connection to " + to_string(c.ends[1 - side].name) + " " + why};
    if (c.ends[side].channel == nullptr) continue;
    push(now_ + jitter(c.pipes[side].link), EventKind::broken, index, c.generation, side);
  }
  release_if_unused(index);
}

void SimCore::cut(std::uint32_t connection_index) {
  break_connection(connection_index, "was cut.");
}

void SimCore::cut(std::uint32_t host_a, std::uint32_t host_b) {
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    const SimConnection& c = connection(i);
    const bool between = (c.ends[0].host == host_a && c.ends[1].host == host_b) ||
                         (c.ends[0].host == host_b && c.ends[1].host == host_a);
    if (c.in_use && between) cut(i);
  }
}

// ---- Processes

/// Ends a process's connections as the kernel would. Half of them end in order, so that the bytes that the kernel had
/// taken over still arrive; the other half end by a reset.
void SimCore::kill(std::uint32_t host_index) {
  SimHost& victim = host(host_index);
  if (!victim.alive) return;
  victim.alive = false;
  ++victim.generation;
  victim.due.clear();
  victim.posted.clear();
  victim.listeners.clear();
  victim.runner.reset();
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    if (!connection(i).in_use) continue;
    for (unsigned side = 0; side < 2; ++side) {
      if (connection(i).ends[side].host == host_index) kill_end(i, side);
    }
    release_if_unused(i);
  }
}

void SimCore::kill_end(std::uint32_t index, unsigned side) {
  SimConnection& c = connection(index);
  End& end = c.ends[side];
  const bool came_to_be = end.channel != nullptr || c.accept_pending;
  if (end.closed || !came_to_be) return;
  if (c.accept_pending || random.chance(50)) reset_by(index, side);
  close_end(c, index, side);
}

/// Drops the frames under way, and sends a reset to the other side, if there is one.
void SimCore::reset_by(std::uint32_t index, unsigned side) {
  SimConnection& c = connection(index);
  for (Pipe& pipe : c.pipes) {
    drop_frames(pipe);
    pipe.dead = true;
  }
  if (side == 1) c.accept_pending = false;
  End& other = c.ends[1 - side];
  if (other.closed || other.broken_by || other.channel == nullptr) return;
  other.broken_by = Error{Errc::peer_gone, to_string(c.ends[side].name) + " died: connection reset."};
  const LinkSettings& link = c.pipes[side].link;
  push(now_ + link.latency + jitter(link), EventKind::reset, index, c.generation, 1 - side);
}

void SimCore::restart(std::uint32_t host_index) {
  SimHost& fresh = host(host_index);
  if (fresh.alive) kill(host_index);
  fresh.alive = true;
  fresh.paused = fresh.woken = fresh.turn_scheduled = false;
  fresh.per_turn = Duration::zero();
  fresh.wake_at = TimePoint::max();
  fresh.transports.push_back(std::make_unique<SimTransport>(*this, host_index, fresh.generation));
}

void SimCore::pause(std::uint32_t host_index) {
  host(host_index).paused = true;
}

void SimCore::resume(std::uint32_t host_index) {
  SimHost& continues = host(host_index);
  if (!continues.paused) return;
  continues.paused = false;
  if (continues.woken || !continues.due.empty()) wake_at(host_index, now_);
  continues.woken = false;
}

// ---- Partitions

bool SimCore::blocked(std::uint32_t a, std::uint32_t b) const {
  if (a == b) return false;
  if (cut_off_[a] || cut_off_[b]) return true;
  if (cut_apart_.empty()) return false;
  const auto pair = cut_apart_.find(static_cast<std::uint64_t>(std::min(a, b)) << 32 | std::max(a, b));
  return pair != cut_apart_.end() && pair->second;
}

/// Keeps back events that cannot travel now.
bool SimCore::held(const Event& event) {
  const bool travels = event.kind == EventKind::arrive || event.kind == EventKind::knock ||
                       event.kind == EventKind::opened || event.kind == EventKind::reset;
  if (!travels) return false;
  const SimConnection& c = connection(event.target);
  if (!blocked(c.ends[0].host, c.ends[1].host)) return false;
  held_.push_back(event);
  return true;
}

/// Lets frames that can travel again go on, in their old order.
void SimCore::release_held() {
  std::vector<Event> waiting;
  waiting.swap(held_);
  for (const Event& event : waiting) {
    if (stale(event)) continue;
    const SimConnection& c = connection(event.target);
    if (blocked(c.ends[0].host, c.ends[1].host)) {
      held_.push_back(event);
    } else {
      events_.push(now_, event.kind, event.target, event.generation, event.side);
    }
  }
}

void SimCore::partition(std::uint32_t host_index, bool on) {
  cut_off_[host_index] = on;
  if (!on) release_held();
}

void SimCore::partition(std::uint32_t host_a, std::uint32_t host_b, bool on) {
  cut_apart_[static_cast<std::uint64_t>(std::min(host_a, host_b)) << 32 | std::max(host_a, host_b)] = on;
  if (!on) release_held();
}

}  // namespace tributary::transport
