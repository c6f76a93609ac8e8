// The way of a frame: the sender queues it, the link delays it, the receiver gives the place of its bytes and gets them
// in pieces, and the sender learns that it has arrived.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "transport/sim/memory/sim_core.h"
#include "transport/sim/memory/sim_endpoints.h"

namespace tributary::transport {

constexpr std::uint8_t kPiecesMax = 3;

// ---- Sending

SimFrame& SimCore::enqueue(SimConnection& c, unsigned side, const FrameHeader& header,
                           std::span<const std::byte> payload) {
  SimFrame& frame = c.pipes[side].frames.push();
  frame.header = header;
  frame.header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  frame.payload = payload.data();
  return frame;
}

bool SimCore::send(std::uint32_t connection_index, unsigned side, const FrameHeader& header,
                   std::span<const std::byte> payload, std::uint64_t cookie) {
  SimConnection& c = connection(connection_index);
  End& end = c.ends[side];
  Pipe& pipe = c.pipes[side];
  if (end.closed || end.flushing || pipe.borrowed_queued >= settings_.frames_queued_max) return false;
  SimFrame& frame = enqueue(c, side, header, payload);
  frame.cookie = cookie;
  frame.borrowed = true;
  frame.owned = false;
  ++pipe.borrowed_queued;
  write_early(c, side, frame);
  if (!end.opened) return true;
  stamp(pipe, frame);
  release_early(pipe, frame);
  advance_released(connection_index, side);
  schedule(connection_index, side);
  return true;
}

void SimCore::send_copy(std::uint32_t connection_index, unsigned side, const FrameHeader& header,
                        std::span<const std::byte> payload) {
  SimConnection& c = connection(connection_index);
  End& end = c.ends[side];
  if (end.closed || end.flushing) return;
  SimFrame& frame = enqueue(c, side, header, payload);
  frame.borrowed = false;
  frame.owned = true;
  frame.copy.assign(payload.begin(), payload.end());
  frame.payload = frame.copy.data();
  if (!end.opened) return;
  stamp(c.pipes[side], frame);
  advance_released(connection_index, side);
  schedule(connection_index, side);
}

void SimCore::expect(std::uint32_t connection_index, unsigned side, const FrameHeader& header,
                     std::span<std::byte> place) {
  SimConnection& c = connection(connection_index);
  if (settings_.expected_places && !c.ends[side].closed && !c.ends[side].flushing)
    c.pipes[1 - side].expected.push_back({header, place});
}

namespace {

bool same(const FrameHeader& a, const FrameHeader& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

std::uint64_t SimCore::keep_device_memory(std::span<const std::byte> memory, std::shared_ptr<DeviceMemory> owner) {
  device_memory_.emplace(next_kept_, KeptMemoryOfDevice{memory, std::move(owner)});
  return next_kept_++;
}

DeviceMemory* SimCore::owner_of(std::span<const std::byte> memory) const {
  for (const auto& [number, kept] : device_memory_) {
    if (kept.memory.data() <= memory.data() &&
        memory.data() + memory.size() <= kept.memory.data() + kept.memory.size()) {
      return kept.owner.get();
    }
  }
  return nullptr;
}

/// Copies memory as the network's devices would: they reach memory that the processor does not reach.
void SimCore::move(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceMemory* const source = device_memory_.empty() ? nullptr : owner_of({from, bytes});
  DeviceMemory* const target = device_memory_.empty() ? nullptr : owner_of({to, bytes});
  if (source == nullptr && target == nullptr) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::vector<std::byte> between(from, from + (source == nullptr ? bytes : 0));
  between.resize(bytes);
  if (source != nullptr) static_cast<void>(source->copy(between.data(), from, bytes));
  if (target == nullptr) {
    std::memcpy(to, between.data(), bytes);
  } else {
    static_cast<void>(target->copy(to, between.data(), bytes));
  }
}

/// Does the worst that a transport may do with an announced place: it writes the bytes there as soon as they are sent,
/// long before on_header, and even if the connection breaks before the frame arrives.
void SimCore::write_early(SimConnection& c, unsigned side, const SimFrame& frame) {
  const End& receiver = c.ends[1 - side];
  if (receiver.closed || receiver.channel == nullptr) return;
  for (const Pipe::Expected& one : c.pipes[side].expected) {
    if (same(one.header, frame.header)) move(one.place.data(), frame.payload, one.place.size());
  }
}

/// Checks that a frame goes to the place that the receiver has announced.
void SimCore::check_expected(Pipe& pipe, const FrameHeader& header, std::span<const std::byte> destination) {
  std::erase_if(pipe.expected, [&](const Pipe::Expected& one) {
    if (!same(one.header, header)) return false;
    if (one.place.data() != destination.data())
      throw std::logic_error("an expected frame was placed elsewhere than announced");
    return true;
  });
}

void SimCore::stamp(Pipe& pipe, SimFrame& frame) {
  Duration on_the_wire{};
  if (pipe.link.bytes_per_second != 0) {
    const double seconds = static_cast<double>(kFrameHeaderBytes + frame.header.payload_bytes) /
                           static_cast<double>(pipe.link.bytes_per_second);
    on_the_wire = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  const TimePoint alone = now_ + pipe.link.latency + jitter(pipe.link);
  frame.ready_at = pipe.last_arrival = std::max(pipe.last_arrival, alone) + on_the_wire;
}

/// At random, the sender's kernel has room and takes over the frame at once, if it has taken all earlier frames.
void SimCore::release_early(Pipe& pipe, SimFrame& frame) {
  const std::size_t bytes = frame.header.payload_bytes;
  if (pipe.frames.released + 1 != pipe.frames.tail) return;
  if (pipe.early_bytes + bytes > settings_.early_sent_bytes_max) return;
  if (!random.chance(settings_.early_sent_percent)) return;
  pipe.early_bytes += bytes;
  frame.copy.resize(bytes);
  move(frame.copy.data(), frame.payload, bytes);
  frame.payload = frame.copy.data();
  frame.owned = true;
}

/// Moves the mark `released` past frames whose bytes the sender may now change, and makes their on_sent due.
void SimCore::advance_released(std::uint32_t index, unsigned side) {
  SimConnection& c = connection(index);
  Pipe& pipe = c.pipes[side];
  FrameRing& frames = pipe.frames;
  frames.released = std::max(frames.released, frames.delivered);
  while (frames.released < frames.tail && frames.at(frames.released).owned) ++frames.released;
  while (frames.told < frames.released && !frames.at(frames.told).borrowed) ++frames.told;
  if (frames.told == frames.released || pipe.sent_scheduled || c.ends[side].handler == nullptr) return;
  pipe.sent_scheduled = true;
  push(now_ + jitter(pipe.link), EventKind::sent, index, c.generation, side);
}

void SimCore::tell_sent(const Event& event) {
  SimConnection& c = connection(event.target);
  Pipe& pipe = c.pipes[event.side];
  pipe.sent_scheduled = false;
  while (alive(event, event.side) && pipe.frames.told < pipe.frames.released) {
    const SimFrame& frame = pipe.frames.at(pipe.frames.told++);
    if (!frame.borrowed) continue;
    --pipe.borrowed_queued;
    const std::uint64_t cookie = frame.cookie;
    trace(event, cookie);
    c.ends[event.side].handler->on_sent(*c.ends[event.side].channel, cookie);
  }
}

// ---- Frames under way

/// Puts the next event of this direction into the queue of events, unless it is there.
void SimCore::schedule(std::uint32_t index, unsigned side) {
  SimConnection& c = connection(index);
  Pipe& pipe = c.pipes[side];
  const End& sender = c.ends[side];
  if (pipe.scheduled || pipe.reader.stalled() || pipe.dead || c.accept_pending || !(sender.opened || sender.closed))
    return;
  TimePoint at = now_;
  if (pipe.frames.delivered < pipe.frames.tail) {
    at = pipe.frames.at(pipe.frames.delivered).ready_at;
  } else if (pipe.fin && !c.ends[1 - side].closed) {
    at = pipe.fin_at;
  } else {
    return;
  }
  pipe.scheduled = true;
  push(std::max(at, now_), EventKind::arrive, index, c.generation, side);
}

/// Drops frames unseen, because the receiving side has closed, so that a flush of the sender can end.
void SimCore::swallow(std::uint32_t index, unsigned side) {
  SimConnection& c = connection(index);
  Pipe& pipe = c.pipes[side];
  pipe.scheduled = false;
  if (pipe.frames.delivered < pipe.frames.tail) {
    ++pipe.frames.delivered;
    pipe.reader.drop_frame();
    advance_released(index, side);
    if (c.ends[side].flushing && pipe.frames.delivered == pipe.frames.tail) close_end(c, index, side);
  } else if (pipe.fin) {
    close_end(c, index, 1 - side);
  }
  schedule(index, side);
}

// ---- Arriving frames

/// True if a callback has neither closed nor killed this side, and the connection was not used again.
bool SimCore::alive(const Event& event, unsigned side) {
  const SimConnection& c = connection(event.target);
  return c.generation == event.generation && !c.ends[side].closed && c.ends[side].handler != nullptr;
}

void SimCore::deliver(const Event& event) {
  SimConnection& c = connection(event.target);
  Pipe& pipe = c.pipes[event.side];
  const unsigned receiver = 1U - event.side;
  pipe.scheduled = false;
  if (pipe.dead) return;
  if (c.ends[receiver].closed || c.ends[receiver].flushing) return swallow(event.target, event.side);
  if (!c.ends[receiver].opened) {  // a partition has just ended, and the news of the opening comes right
                                   // now
    if (receiver == 1 && !c.accept_pending) return;  // the receiver refused the connection, so it never opens
    pipe.scheduled = true;                           // the news may never come, so this event runs again later
    return push(now_ + std::max<Duration>(pipe.link.latency, std::chrono::microseconds(10)), EventKind::arrive,
                event.target, c.generation, event.side);
  }
  if (pipe.frames.delivered == pipe.frames.tail) {
    if (!pipe.fin) return;
    const std::string peer = to_string(c.ends[event.side].name);
    return end_with(event.target, receiver, {Errc::peer_gone, peer + " closed the connection."}, event);
  }
  if (event.side == 1 && c.breaks_at_once)
    return break_connection(event.target, "broke before a word of the other side had come.");
  if (!pipe.reader.in_frame() && !place(event)) return;
  if (land(event)) schedule(event.target, event.side);
}

/// The receiving side of an event, in the form that FrameReader needs.
class SimCore::Receiver {
 public:
  Receiver(SimCore& core, const Event& event) : core_(core), event_(event), frame_(pipe().frames.delivered) {}
  [[nodiscard]] ChannelHandler* handler() const { return end().handler; }
  [[nodiscard]] Channel* channel() const { return end().channel; }
  void count_callback() const noexcept {}
  /// True if the callback has changed neither this side nor the frame.
  [[nodiscard]] bool serving() const {
    if (!core_.alive(event_, side())) return false;
    const Pipe& now = pipe();
    return !now.dead && now.frames.delivered == frame_ && now.frames.tail != frame_;
  }
  void tell_closed(Error error) const { core_.end_with(event_.target, side(), std::move(error), event_); }
  void make_due() const noexcept { pipe().go_on(); }

 private:
  [[nodiscard]] unsigned side() const noexcept { return 1U - event_.side; }
  [[nodiscard]] End& end() const { return core_.connection(event_.target).ends[side()]; }
  [[nodiscard]] Pipe& pipe() const { return core_.connection(event_.target).pipes[event_.side]; }

  SimCore& core_;
  const Event& event_;
  const std::uint64_t frame_;
};

/// Asks the receiver where the payload goes. Returns false if the receiver does not take it now.
bool SimCore::place(const Event& event) {
  SimConnection& c = connection(event.target);
  Pipe& pipe = c.pipes[event.side];
  const unsigned receiver = 1U - event.side;
  FrameBytes bytes;
  encode(pipe.frames.at(pipe.frames.delivered).header, bytes);
  const auto header = decode(bytes);
  if (!header) {
    end_with(event.target, receiver, corrupt_frame(to_string(c.ends[event.side].name), header.error()), event);
    return false;
  }
  trace(event, header->sequence ^ static_cast<std::uint64_t>(header->type) << 56);
  Receiver asked(*this, event);
  if (!pipe.reader.place(asked, *header)) {
    if (alive(event, receiver)) schedule(event.target, event.side);
    return false;
  }
  check_expected(pipe, *header, pipe.reader.payload());
  pipe.pieces = 0;
  return true;
}

/// Copies the next piece, and hands the frame over after the last piece. Returns false if nothing more can be done now.
bool SimCore::land(const Event& event) {
  SimConnection& c = connection(event.target);
  Pipe& pipe = c.pipes[event.side];
  const unsigned receiver = 1U - event.side;
  const SimFrame& frame = pipe.frames.at(pipe.frames.delivered);
  const std::span<std::byte> rest = pipe.reader.rest();
  const bool split = !rest.empty() && ++pipe.pieces < kPiecesMax && random.chance(settings_.split_percent);
  const std::size_t piece = split ? static_cast<std::size_t>(random.below(rest.size())) : rest.size();
  if (piece > 0) move(rest.data(), frame.payload + (pipe.reader.payload().size() - rest.size()), piece);
  pipe.reader.land(piece);
  statistics.bytes += piece;
  if (split) {
    pipe.scheduled = true;
    push(now_ + Duration(1) + jitter(pipe.link), EventKind::arrive, event.target, c.generation, event.side);
    return false;
  }
  const FrameHeader header = frame.header;
  if (frame.borrowed && frame.owned) pipe.early_bytes -= header.payload_bytes;
  if (overhear && event.side == 0 && pipe.frames.delivered == 0)
    overhear(c.ends[0].name, c.to, header, pipe.reader.payload());
  ++pipe.frames.delivered;
  ++statistics.frames;
  SimTraffic& traffic = statistics.by_type[static_cast<std::size_t>(header.type)];
  ++traffic.frames;
  traffic.bytes += kFrameHeaderBytes + header.payload_bytes;
  advance_released(event.target, event.side);
  if (c.ends[event.side].flushing && pipe.frames.delivered == pipe.frames.tail) close_end(c, event.target, event.side);
  trace(event, header.sequence + header.payload_bytes);
  Receiver told(*this, event);
  static_cast<void>(pipe.reader.deliver(told));
  return alive(event, receiver);
}

void SimCore::resume_reading(std::uint32_t connection_index, unsigned side) {
  SimConnection& c = connection(connection_index);
  Pipe& incoming = c.pipes[1 - side];
  if (c.ends[side].closed) return;
  incoming.go_on();
  schedule(connection_index, 1 - side);
}

}  // namespace tributary::transport
