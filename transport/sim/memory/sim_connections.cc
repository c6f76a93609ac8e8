// Class SimCore: begins and ends connections.
#include <algorithm>

#include "transport/sim/memory/sim_core.h"
#include "transport/sim/memory/sim_endpoints.h"

namespace tributary::transport {
namespace {

bool is_wildcard(std::string_view host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}
bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

constexpr std::uint16_t kFirstDynamicPort = 49152;

std::uint16_t next_dynamic_port(SimHost& host) {
  const std::uint16_t port = host.next_port;
  host.next_port = port == 65535 ? kFirstDynamicPort : static_cast<std::uint16_t>(port + 1);
  return port;
}

std::uint64_t pair_key(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint64_t>(a) << 32 | b;
}

auto find_port(SimHost& host, std::uint16_t port) {
  return std::ranges::find(host.listeners, port, &SimListener::port);
}

}  // namespace

// ---- Listeners

Result<std::unique_ptr<Listener>> SimCore::listen(std::uint32_t host_index, const Endpoint& at, Acceptor& acceptor) {
  SimHost& listens = host(host_index);
  if (!is_wildcard(at.host) && !is_loopback(at.host) && at.host != listens.name) {
    return fail(Errc::io, "cannot listen on " + to_string(at) + ": not an address of host " + listens.name + ".");
  }
  std::uint16_t port = at.port;
  if (port == 0) {
    do port = next_dynamic_port(listens);
    while (find_port(listens, port) != listens.listeners.end());
  } else if (find_port(listens, port) != listens.listeners.end()) {
    return fail(Errc::io, "cannot listen on " + to_string(at) + ": the address is in use.");
  }
  const std::uint64_t id = next_listener_++;
  listens.listeners.push_back({port, id, &acceptor});
  return std::make_unique<SimListenerHandle>(shared_from_this(), host_index, id, Endpoint{listens.name, port});
}

void SimCore::unlisten(std::uint32_t host_index, std::uint64_t listener) {
  std::erase_if(host(host_index).listeners, [listener](const SimListener& l) { return l.id == listener; });
}

// ---- The table of connections

std::uint32_t SimCore::claim_connection() {
  std::uint32_t index = static_cast<std::uint32_t>(connections_.size());
  if (free_connections_.empty()) {
    connections_.push_back(std::make_unique<SimConnection>());
  } else {
    index = free_connections_.back();
    free_connections_.pop_back();
  }
  connections_[index]->in_use = true;
  connections_[index]->expected_places = settings_.expected_places;
  ++statistics.connections;
  return index;
}

void SimCore::release_if_unused(std::uint32_t index) {
  SimConnection& c = connection(index);
  if (!c.in_use || c.accept_pending || c.ends[0].channel != nullptr || c.ends[1].channel != nullptr) return;
  const std::uint32_t generation = c.generation + 1;
  for (Pipe& pipe : c.pipes) {
    FrameRing frames = std::move(pipe.frames);  // keeps its memory for the next connection
    frames.clear();
    pipe = Pipe{};
    pipe.frames = std::move(frames);
  }
  c.ends = {};
  c.generation = generation;
  c.in_use = c.breaks_at_once = false;
  free_connections_.push_back(index);
  --statistics.connections;
}

LinkSettings SimCore::link_between(std::uint32_t a, std::uint32_t b) const {
  const auto own = links_.find(pair_key(a, b));
  return own == links_.end() ? settings_.link : own->second;
}

void SimCore::set_link(std::uint32_t a, std::uint32_t b, const LinkSettings& link) {
  links_[pair_key(a, b)] = link;
  links_[pair_key(b, a)] = link;
  for (const auto& c : connections_) {
    const bool between =
        (c->ends[0].host == a && c->ends[1].host == b) || (c->ends[0].host == b && c->ends[1].host == a);
    if (!c->in_use || !between) continue;
    for (Pipe& pipe : c->pipes) pipe.link = link;
  }
}

// ---- Opening connections

Result<std::uint32_t> SimCore::resolve(std::uint32_t from, const Endpoint& to) {
  if (is_loopback(to.host)) return from;
  if (const auto known = host_names_.find(to.host); known != host_names_.end()) return known->second;
  return fail(Errc::unreachable, "cannot connect to " + to_string(to) + ": there is no such host.");
}

std::unique_ptr<Channel> SimCore::connect(std::uint32_t host_index, const Endpoint& to, ChannelHandler& handler,
                                          Duration limit) {
  const std::uint32_t index = claim_connection();
  SimConnection& c = connection(index);
  c.to = to;
  c.limit = limit;
  auto channel = std::make_unique<SimChannel>(shared_from_this(), index, 0);
  c.ends[0] = {.host = host_index,
               .name = {host(host_index).name, next_dynamic_port(host(host_index))},
               .channel = channel.get(),
               .handler = &handler};
  c.ends[1].name = to;
  const auto target = resolve(host_index, to);
  if (!target) {
    c.ends[0].broken_by = target.error();
    push(now_ + jitter(settings_.link), EventKind::broken, index, c.generation, 0);
    return channel;
  }
  c.ends[1].host = *target;
  c.pipes[0].link = c.pipes[1].link = link_between(host_index, *target);
  c.accept_pending = true;
  push(now_ + c.pipes[0].link.latency + jitter(c.pipes[0].link), EventKind::knock, index, c.generation);
  push(now_ + limit, EventKind::connect_limit, index, c.generation);
  return channel;
}

/// Takes the connection as the kernel of the listening host would, even if the process is paused.
void SimCore::knock(const Event& event) {
  SimConnection& c = connection(event.target);
  if (!c.accept_pending) return;
  if (c.ends[0].closed) {
    c.accept_pending = false;
    return release_if_unused(event.target);
  }
  SimHost& target = host(c.ends[1].host);
  const auto listener = find_port(target, c.to.port);
  if (!target.alive || listener == target.listeners.end()) return refuse(event, "nobody listens there");
  if (random.chance(target.refuse_percent)) {
    ++statistics.refused;
    c.breaks_at_once = random.chance(50);
    if (!c.breaks_at_once) return refuse(event, "its queue is full");
  }
  const TimePoint answer_at = now_ + c.pipes[1].link.latency + jitter(c.pipes[1].link);
  c.listener = listener->id;
  c.pipes[1].last_arrival = answer_at;
  push(answer_at, EventKind::opened, event.target, c.generation);
  make_due(c.ends[1].host, {now_, 0, event.target, c.generation, EventKind::accept, 1});
}

void SimCore::refuse(const Event& event, const std::string& why) {
  SimConnection& c = connection(event.target);
  c.accept_pending = false;
  c.ends[0].broken_by =
      Error{Errc::unreachable, "cannot connect to " + to_string(c.to) + ": connection refused, " + why + "."};
  push(now_ + c.pipes[1].link.latency + jitter(c.pipes[1].link), EventKind::reset, event.target, c.generation, 0);
}

void SimCore::accept(const Event& event) {
  SimConnection& c = connection(event.target);
  if (!c.accept_pending) return;
  c.accept_pending = false;
  if (c.pipes[0].dead) return release_if_unused(event.target);  // the process that connects was killed meanwhile
  auto& listeners = host(c.ends[1].host).listeners;
  const auto listener = std::ranges::find(listeners, c.listener, &SimListener::id);
  if (listener == listeners.end()) {  // the listener has stopped after the kernel took the connection
    c.ends[1].closed = true;
    if (c.ends[0].channel == nullptr) return release_if_unused(event.target);
    c.ends[0].broken_by = Error{Errc::peer_gone, to_string(c.to) + " stopped listening."};
    return push(now_ + c.pipes[1].link.latency, EventKind::reset, event.target, c.generation, 0);
  }
  auto channel = std::make_unique<SimChannel>(shared_from_this(), event.target, 1);
  End& end = c.ends[1];
  end.channel = channel.get();
  end.opened = true;
  trace(event, c.to.port);
  ChannelHandler* handler = listener->acceptor->on_accept(std::move(channel));
  if (c.generation != event.generation || end.closed) return;
  if (handler == nullptr) return close_end(c, event.target, 1);
  end.handler = handler;
  schedule(event.target, 0);
}

void SimCore::opened(const Event& event) {
  SimConnection& c = connection(event.target);
  End& end = c.ends[0];
  if (end.closed || c.pipes[0].dead) return;
  end.opened = true;
  Pipe& pipe = c.pipes[0];
  for (std::uint64_t i = pipe.frames.delivered; i < pipe.frames.tail; ++i) stamp(pipe, pipe.frames.at(i));
  advance_released(event.target, 0);
  schedule(event.target, 0);
  if (end.flushing) {
    if (pipe.frames.delivered == pipe.frames.tail) close_end(c, event.target, 0);
    return;
  }
  trace(event, 0);
  end.handler->on_open(*end.channel);
}

void SimCore::connect_limit(const Event& event) {
  const SimConnection& c = connection(event.target);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(c.limit).count();
  end_with(event.target, 0,
           {Errc::unreachable,
            "cannot connect to " + to_string(c.to) + ": no answer within " + std::to_string(milliseconds) + " ms."},
           event);
}

void SimCore::told_broken(const Event& event) {
  End& end = connection(event.target).ends[event.side];
  if (end.closed || !end.broken_by) return;
  end_with(event.target, event.side, std::move(*end.broken_by), event);
}

// ---- Ending connections

void SimCore::close(std::uint32_t connection_index, unsigned side) {
  close_end(connection(connection_index), connection_index, side);
}

void SimCore::close_after_flush(std::uint32_t connection_index, unsigned side, Duration limit) {
  SimConnection& c = connection(connection_index);
  End& end = c.ends[side];
  if (end.closed || end.flushing) return;
  end.flushing = true;
  end.handler = nullptr;
  if (end.opened && c.pipes[side].frames.delivered == c.pipes[side].frames.tail)
    return close_end(c, connection_index, side);
  push(now_ + limit, EventKind::flush_limit, connection_index, c.generation, side);
  c.pipes[1 - side].go_on();  // throws away frames that still come in
  schedule(connection_index, 1 - side);
}

void SimCore::flush_limit(const Event& event) {
  close_end(connection(event.target), event.target, event.side);
}

void SimCore::channel_destroyed(std::uint32_t connection_index, unsigned side) {
  SimConnection& c = connection(connection_index);
  close_end(c, connection_index, side);
  c.ends[side].channel = nullptr;
  release_if_unused(connection_index);
}

void SimCore::count_loss(Pipe& pipe) {
  for (std::uint64_t i = pipe.frames.delivered; i < pipe.frames.released; ++i) {
    if (pipe.frames.at(i).borrowed) ++statistics.lost_after_sent;
  }
  const std::size_t missing = pipe.reader.in_frame() ? pipe.reader.rest().size() : 0;
  if (missing > 0 && missing < pipe.reader.payload().size()) ++statistics.half_written;
}

void SimCore::drop_frames(Pipe& pipe) {
  count_loss(pipe);
  pipe.frames.clear();
  pipe.reader.drop_frame();
  pipe.borrowed_queued = 0;
  pipe.early_bytes = 0;
}

/// Ends a direction whose sender is gone, together with the memory that it lent. A part of the bytes that the sender's
/// kernel had copied still arrives.
void SimCore::keep_some_owned_frames(Pipe& pipe) {
  FrameRing& frames = pipe.frames;
  std::uint64_t owned = 0;
  while (frames.delivered + owned < frames.tail && frames.at(frames.delivered + owned).owned) ++owned;
  const std::uint64_t kept = owned == 0 ? 0 : random.below(owned + 1);
  if (kept == 0) return drop_frames(pipe);
  frames.truncate(frames.delivered + kept);
  frames.told = frames.released = frames.tail;
}

/// Ends one side without a callback there. The other side learns of the end after the frames that still arrive.
void SimCore::close_end(SimConnection& c, std::uint32_t index, unsigned side) {
  End& end = c.ends[side];
  if (end.closed) return;
  const bool flushed = end.flushing && c.pipes[side].frames.delivered == c.pipes[side].frames.tail;
  end.closed = true;
  end.handler = nullptr;
  Pipe& out = c.pipes[side];
  if (out.dead) return;
  if (!flushed) end.opened ? keep_some_owned_frames(out) : drop_frames(out);
  out.fin = true;
  out.fin_at = std::max(out.last_arrival, now_ + out.link.latency + jitter(out.link));
  schedule(index, side);
  c.pipes[1 - side].go_on();  // throws away frames that still come in
  schedule(index, 1 - side);
}

/// Ends one side, and calls on_closed there.
void SimCore::end_with(std::uint32_t index, unsigned side, Error error, const Event& event) {
  SimConnection& c = connection(index);
  End& end = c.ends[side];
  ChannelHandler* handler = end.handler;
  drop_frames(c.pipes[side]);
  close_end(c, index, side);
  if (handler == nullptr) return;
  trace(event, static_cast<std::uint64_t>(error.code));
  handler->on_closed(*end.channel, error);
}

}  // namespace tributary::transport
