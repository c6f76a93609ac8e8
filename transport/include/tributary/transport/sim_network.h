#pragma once
// A network inside one process, with its own time. The simulator and most tests run on it.
//
// Hosts have names; every host has one Transport that keeps the contract of channel.h, with endpoints "host-name":port.
// One queue holds all events. They run in order of their virtual time; events of the same time run in the order in
// which they were made. Every random choice comes from one seed. So the same program with the same seed runs in exactly
// the same way (trace_hash() shows it).
//
// The network imitates these properties of real networks, because the correctness of recovery depends on them:
//   - a frame arrives in up to three pieces, so that a broken connection leaves a payload half written;
//   - payloads are read from the sender's borrowed memory when they arrive, not when they are sent, so that wrong sums
//     show a sender that reuses the memory too early; for some frames on_sent comes before the frame arrives, as with a
//     kernel's socket buffer, and a break then loses a frame that was reported as sent;
//   - on_sent, the peer's answer and the news of a break come in any order that real networks allow.
//
// Callbacks run inside Transport::poll of their host, as in every transport. step() polls the host of the event, or
// calls the function that on_due() has set for this host; the function then polls. Transport::poll(wait) of a host
// without work drives the whole network for up to `wait` of virtual time, so that plain blocking loops also work.
//
// Threads: the network starts none. The network, its transports (post() included) and their users live on one thread.
// Channels and listeners may be destroyed after the network, whose destructor kills all hosts.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "tributary/transport/channel.h"

namespace tributary::transport {

class SimCore;

/// One direction of the link between two hosts.
struct LinkSettings {
  Duration latency = std::chrono::microseconds(5);
  Duration jitter =
      std::chrono::microseconds(2);    // a random time from 0 to this one is added; a channel keeps its order
  std::uint64_t bytes_per_second = 0;  // rate of each channel; 0: no limit
};

struct SimSettings {
  std::uint64_t seed = 1;
  LinkSettings link;                          // link between hosts for which set_link() was not called
  std::uint32_t frames_queued_max = 1024;     // most frames in a channel's queue; when it is full, send() returns false
  std::uint32_t split_percent = 30;           // chance that a payload lands in more than one piece
  std::uint32_t early_sent_percent = 25;      // chance that on_sent comes before the frame arrives
  std::size_t early_sent_bytes_max = 262144;  // most bytes of such frames that a channel has under way
  bool expected_places = true;                // Channel::expect() has an effect
};

struct SimTraffic {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;  // bytes of frames, headers included
};

struct SimStatistics {
  std::uint64_t events = 0;               // events taken from the queue that were still valid
  std::uint64_t callbacks = 0;            // callbacks of handlers and acceptors
  std::uint64_t frames = 0;               // frames that were delivered whole
  std::uint64_t bytes = 0;                // bytes of delivered payloads
  std::uint64_t half_written = 0;         // payloads that a break left with some but not all of their bytes
  std::uint64_t refused = 0;              // connections refused because of refuse_connections()
  std::uint64_t lost_after_sent = 0;      // frames that a break lost after their on_sent came, or was due
  std::size_t connections = 0;            // connections whose channels are not all destroyed
  std::array<SimTraffic, 256> by_type{};  // delivered frames, by FrameType
  [[nodiscard]] const SimTraffic& of(FrameType type) const noexcept { return by_type[static_cast<std::size_t>(type)]; }
};

class SimNetwork {
 public:
  explicit SimNetwork(const SimSettings& settings = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// The host's transport; the first call makes the host. The reference is valid as long as the network lives, but the
  /// transport has no effect after kill().
  [[nodiscard]] Transport& transport(std::string_view host);

  // ---- Time. Inside a callback, only now(), call_at() and wake_at() may be called.
  [[nodiscard]] TimePoint now() const noexcept;
  /// Takes the next event, moves the time to it, and runs the event's host. Returns false if there is no event.
  bool step();
  /// Steps through all events up to and at `time`, which is then now(). Returns the number of events.
  std::size_t run_until(TimePoint time);
  std::size_t run_for(Duration duration);
  /// Calls `done()` before every step, and steps until it returns true. Returns false if `limit` or the last event
  /// came first.
  bool run_until(const std::function<bool()>& done, TimePoint limit);
  /// Steps until there is no event. Returns false if events_max came first.
  bool run_until_idle(std::size_t events_max = 10'000'000);
  /// True if no event is waiting. A frame that waits for a paused or partitioned host is no event.
  [[nodiscard]] bool idle() const;

  // ---- Driving hosts
  /// Calls `run` instead of the host's Transport::poll whenever an event is due for the host, and at wake_at() times.
  /// An empty function, or kill(), restores Transport::poll.
  void on_due(std::string_view host, std::function<void()> run);
  /// Runs the host once at `time`, for its timers, even if no frame arrives. If there are several calls, the earliest
  /// time counts.
  void wake_at(std::string_view host, TimePoint time);
  /// Runs a part of the test's script, outside all hosts, at `time`.
  void call_at(TimePoint time, std::function<void()> call);

  // ---- Faults. These functions may be called anywhere, inside callbacks, too.
  /// Breaks one connection, or all connections between two hosts: frames under way are lost, and both sides get
  /// on_closed within the jitter.
  void cut(Channel& channel);
  void cut(std::string_view host_a, std::string_view host_b);
  /// Ends a host's process: none of its callbacks runs any more, its listeners vanish, and its channels break. Its
  /// handlers, buffers and channels may be destroyed at once, except objects whose callback is running. The other sides
  /// get on_closed.
  void kill(std::string_view host);
  /// Starts a new process on a killed host.
  [[nodiscard]] Transport& restart(std::string_view host);
  [[nodiscard]] bool alive(std::string_view host) const;
  /// Stops all frames from and to the host until heal(), without telling any side. With two hosts: only frames between
  /// them.
  void partition(std::string_view host);
  void partition(std::string_view host_a, std::string_view host_b);
  /// Ends a partition: the frames that it has stopped arrive now.
  void heal(std::string_view host);
  void heal(std::string_view host_a, std::string_view host_b);
  /// Hangs the process: it runs no callbacks, and frames that arrive wait. Connections to it still open, as with a real
  /// kernel.
  void pause(std::string_view host);
  void resume(std::string_view host);
  /// Makes every turn of the host take a random time from 0.5 to 1.5 times `per_turn`; frames that come meanwhile wait.
  /// 0: turns take no time.
  void slow_down(std::string_view host, Duration per_turn);
  /// From now on, ends this percentage of the connections that come to this host before the other side gets a frame
  /// from its process. Such a connection is refused, as by a kernel whose queue is full, or breaks.
  void refuse_connections(std::string_view host, std::uint32_t percent);
  /// Sets both directions, for open connections, too.
  void set_link(std::string_view host_a, std::string_view host_b, const LinkSettings& link);

  /// Gives `listener` the first frame that the connecting side of each connection sends, when it has arrived, as an
  /// eavesdropper would see it. The listener must not call the network. It replaces an earlier listener.
  using Overhear = std::function<void(const Endpoint& from, const Endpoint& to, const FrameHeader&,
                                      std::span<const std::byte> payload)>;
  void overhear(Overhear listener);

  [[nodiscard]] SimStatistics statistics() const;
  /// Digest of the time, the host and the frame of every callback so far. Equal runs have equal digests.
  [[nodiscard]] std::uint64_t trace_hash() const noexcept;
  /// Returns a number in [0, bound) from the network's own seed, for scripts that are a part of the same deterministic
  /// run.
  [[nodiscard]] std::uint64_t random_below(std::uint64_t bound);

 private:
  std::shared_ptr<SimCore> core_;
};

}  // namespace tributary::transport
