#pragma once
// The state of a SimNetwork, and its three tasks: time and hosts (sim_core.cc), connections and their frames
// (sim_connections.cc, sim_delivery.cc), and faults (sim_faults.cc).
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/random/random.h"
#include "transport/sim/memory/connection.h"
#include "transport/sim/memory/event_queue.h"
#include "tributary/transport/device_memory.h"
#include "tributary/transport/sim_network.h"

namespace tributary::transport {

class SimTransport;

struct SimListener {
  std::uint16_t port;
  std::uint64_t id;  // unique in the network, so that a replaced listener gets no event of its successor
  Acceptor* acceptor;
};

struct SimHost {
  std::string name;
  std::vector<std::unique_ptr<SimTransport>> transports;  // one for each process that ran here; the last one runs now
  std::uint32_t generation = 0;                           // number of times that the host was killed
  bool alive = true;
  bool paused = false;
  bool woken = false;    // a wake-up came while paused
  bool polling = false;  // inside poll(): other code must not run it
  bool turn_scheduled = false;
  std::uint32_t refuse_percent = 0;
  Duration per_turn{};
  TimePoint busy_until;
  TimePoint wake_at = TimePoint::max();
  std::vector<Event> due;
  std::vector<Event> due_now;  // events that poll() is handling; swapped with `due`
  std::deque<std::function<void()>> posted;
  std::vector<SimListener> listeners;
  std::uint16_t next_port = 49152;
  std::shared_ptr<const std::function<void()>> runner;  // shared, so that it may replace itself while it runs
};

class SimCore : public std::enable_shared_from_this<SimCore> {
 public:
  explicit SimCore(const SimSettings& settings);
  ~SimCore();
  /// Shuts down, because the network is gone: destroys the functions that tests have posted, without a call of them.
  void shut_down();

  // ---- Time and hosts: sim_core.cc
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  bool step();
  bool step_until(TimePoint limit);  // runs one event if it is not later than `limit`
  void advance(TimePoint time) { now_ = std::max(now_, time); }
  [[nodiscard]] bool idle();
  std::uint32_t host_index(std::string_view name);  // makes the host if there is none
  [[nodiscard]] SimHost& host(std::uint32_t index) { return *hosts_[index]; }
  SimTransport& transport(std::uint32_t host_index);
  void wake_at(std::uint32_t host_index, TimePoint time);
  void call_at(TimePoint time, std::function<void()> call);
  void post(std::uint32_t host_index, std::function<void()> call);
  std::size_t poll(std::uint32_t host_index, Duration wait);

  // ---- Connections: sim_connections.cc
  Result<std::unique_ptr<Listener>> listen(std::uint32_t host_index, const Endpoint& at, Acceptor& acceptor);
  void unlisten(std::uint32_t host_index, std::uint64_t listener);
  std::unique_ptr<Channel> connect(std::uint32_t host_index, const Endpoint& to, ChannelHandler& handler,
                                   Duration limit);
  bool send(std::uint32_t connection_index, unsigned side, const FrameHeader& header,
            std::span<const std::byte> payload, std::uint64_t cookie);
  void send_copy(std::uint32_t connection_index, unsigned side, const FrameHeader& header,
                 std::span<const std::byte> payload);
  void expect(std::uint32_t connection_index, unsigned side, const FrameHeader& header, std::span<std::byte> place);
  void resume_reading(std::uint32_t connection_index, unsigned side);
  void close(std::uint32_t connection_index, unsigned side);
  void close_after_flush(std::uint32_t connection_index, unsigned side, Duration limit);
  void channel_destroyed(std::uint32_t connection_index, unsigned side);
  [[nodiscard]] SimConnection& connection(std::uint32_t index) { return *connections_[index]; }

  // ---- Faults: sim_faults.cc
  void cut(std::uint32_t connection_index);
  void cut(std::uint32_t host_a, std::uint32_t host_b);
  void kill(std::uint32_t host_index);
  void restart(std::uint32_t host_index);
  void partition(std::uint32_t host_index, bool on);
  void partition(std::uint32_t host_a, std::uint32_t host_b, bool on);
  void pause(std::uint32_t host_index);
  void resume(std::uint32_t host_index);
  void set_link(std::uint32_t host_a, std::uint32_t host_b, const LinkSettings& link);

  // ---- Memory that the processor does not reach: sim_delivery.cc
  [[nodiscard]] std::uint64_t keep_device_memory(std::span<const std::byte> memory,
                                                 std::shared_ptr<DeviceMemory> owner);
  void unkeep(std::uint64_t number) { device_memory_.erase(number); }
  [[nodiscard]] DeviceMemory* owner_of(std::span<const std::byte> memory) const;

  [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_hash_; }
  SimStatistics statistics;
  SimNetwork::Overhear overhear;
  Random random;

 private:
  // sim_core.cc
  [[nodiscard]] bool stale(const Event& event);
  void drop_stale();
  void handle(const Event& event);
  void make_due(std::uint32_t host_index, const Event& event);
  void run_host(std::uint32_t host_index);
  void run_due(const Event& event);
  void run_posted(std::uint32_t host_index);
  std::size_t run_all_due(SimHost& runs);
  [[nodiscard]] std::uint32_t host_of(const Event& event);
  void trace(const Event& event, std::uint64_t what);
  void push(TimePoint at, EventKind kind, std::uint32_t target, std::uint32_t generation, unsigned side = 0) {
    events_.push(at, kind, target, generation, static_cast<std::uint8_t>(side));
  }
  Duration jitter(const LinkSettings& link);

  // sim_connections.cc
  std::uint32_t claim_connection();
  void release_if_unused(std::uint32_t index);
  LinkSettings link_between(std::uint32_t host_a, std::uint32_t host_b) const;
  Result<std::uint32_t> resolve(std::uint32_t from, const Endpoint& to);
  void knock(const Event& event);
  void refuse(const Event& event, const std::string& why);
  void accept(const Event& event);
  void opened(const Event& event);
  void connect_limit(const Event& event);
  void flush_limit(const Event& event);
  void told_broken(const Event& event);
  void drop_frames(Pipe& pipe);
  void keep_some_owned_frames(Pipe& pipe);
  void close_end(SimConnection& connection, std::uint32_t index, unsigned side);
  void end_with(std::uint32_t index, unsigned side, Error error, const Event& event);
  void count_loss(Pipe& pipe);

  // sim_delivery.cc
  SimFrame& enqueue(SimConnection& connection, unsigned side, const FrameHeader& header,
                    std::span<const std::byte> payload);
  void move(std::byte* to, const std::byte* from, std::size_t bytes);
  void write_early(SimConnection& c, unsigned side, const SimFrame& frame);
  class Receiver;
  friend class Receiver;
  static void check_expected(Pipe& pipe, const FrameHeader& header, std::span<const std::byte> destination);
  void stamp(Pipe& pipe, SimFrame& frame);
  void schedule(std::uint32_t index, unsigned side);
  void advance_released(std::uint32_t index, unsigned side);
  void release_early(Pipe& pipe, SimFrame& frame);
  void swallow(std::uint32_t index, unsigned side);
  void arrive(const Event& event);
  bool place(const Event& event);
  bool land(const Event& event);
  void deliver(const Event& event);
  void tell_sent(const Event& event);
  [[nodiscard]] bool alive(const Event& event, unsigned side);

  // sim_faults.cc
  [[nodiscard]] bool blocked(std::uint32_t host_a, std::uint32_t host_b) const;
  [[nodiscard]] bool held(const Event& event);
  void release_held();
  void kill_end(std::uint32_t index, unsigned side);
  void reset_by(std::uint32_t index, unsigned side);
  void break_connection(std::uint32_t index, const std::string& why);

  SimSettings settings_;
  TimePoint now_ = TimePoint(std::chrono::seconds(1));  // not 0, so that a missing time stamp is noticed
  EventQueue events_;
  bool stepping_ = false;
  std::vector<std::unique_ptr<SimHost>> hosts_;
  std::unordered_map<std::string, std::uint32_t> host_names_;  // only looked up and never walked, as its order may
                                                               // differ from run to run
  std::vector<std::unique_ptr<SimConnection>> connections_;
  std::vector<std::uint32_t> free_connections_;
  std::vector<std::function<void()>> calls_;
  std::vector<std::uint32_t> free_calls_;
  std::unordered_map<std::uint64_t, LinkSettings> links_;  // key: both hosts
  std::vector<bool> cut_off_;                              // index: host
  std::unordered_map<std::uint64_t, bool> cut_apart_;      // key: both hosts
  std::vector<Event> held_;                                // events that partitions keep back, in order
  std::uint64_t next_listener_ = 1;
  struct KeptMemoryOfDevice {
    std::span<const std::byte> memory;
    std::shared_ptr<DeviceMemory> owner;
  };
  std::map<std::uint64_t, KeptMemoryOfDevice> device_memory_;  // key: number of the promise
  std::uint64_t next_kept_ = 1;
  std::uint64_t trace_hash_ = 0xCBF29CE484222325ULL;
};

}  // namespace tributary::transport
