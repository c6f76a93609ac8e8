#pragma once
// One rank's side of collectives among several hosts, where the ranks of one host share memory.
//
//            up                      between                        down
//   ranks of a host  ->  leader  ==  leaders of all hosts  ==  leader  ->  ranks of a host
//   shared memory                    tree, or fallback                     shared memory
//
// A call is cut into pieces (cut.h), and each piece goes through the three stages. In each stage, every rank of a host
// takes the pieces in the order of the calls, so no rank has to say which piece is next. The stages do not wait for
// each other: while one piece is between the hosts, the ranks reduce the next pieces and hand earlier pieces down. For
// this, each of the two stages within the host has its own group.
//
// The stage up reduces into the leader's result buffer, if this buffer holds the same elements in the end, else into
// scratch memory. For an exact sum it gathers the inputs of the host's ranks at the leader, who sends their exact sum. The stage between the hosts works in place on the same memory, and the stage down copies from it.
//
// One thread uses a runner, and no function except sleep() blocks.
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/collectives/hosts/cut.h"
#include "client/collectives/hosts/host_map.h"
#include "client/collectives/hosts/piece_memory.h"
#include "client/collectives/local/local_group.h"
#include "client/operation/operation.h"

namespace tributary::client::hosts {

class HostRunner {
 public:
  struct Parts {
    std::uint32_t rank = 0;
    HostMap map{{}};
    std::unique_ptr<local::LocalGroup> up, down;  // nullptr: this rank is alone on its host
    /// Called on a leader: begins an operation among the leaders. Operations begin in the order of these calls.
    std::function<void(std::unique_ptr<Operation>)> between;
    /// Called on every rank: this operation has ended.
    std::function<void(Operation&)> done;
    /// Called on every rank when it has its part of a piece, before done().
    std::function<void(const Operation&)> came{};
  };
  explicit HostRunner(Parts parts) : parts_(std::move(parts)), alive_(std::make_shared<bool>(true)) {}
  HostRunner(const HostRunner&) = delete;
  HostRunner& operator=(const HostRunner&) = delete;
  ~HostRunner() { *alive_ = false; }

  /// The operation and its buffers belong to the runner until it is done. Cut::can() must hold.
  void submit(Operation& operation);
  /// Does all work that need not wait. Returns true if it did any work.
  bool advance();
  /// Looks for processes that have ended; call it a few times a second. The communicator watches the time-outs.
  void inspect() const;
  /// Stops for good: from now on no rank of this host ends an operation or uses its buffers.
  void fail(const Error& error) noexcept;
  /// Returns the reason why no operation will ever end.
  [[nodiscard]] std::optional<Error> error() const;

  /// Returns the number of the operation in which a rank of this host found a failure.
  [[nodiscard]] std::optional<std::uint64_t> disputed() const;
  /// Returns the operation that had the leaders' operation `between` as a piece; nullopt if `between` is long past.
  [[nodiscard]] std::optional<std::uint64_t> operation_of(std::uint64_t between) const;

  [[nodiscard]] bool idle() const noexcept { return line_.empty(); }
  /// True if this rank waits for another rank of this host, which does not announce its progress.
  [[nodiscard]] bool waits_here() const noexcept { return up_runs_ || down_runs_; }
  /// True if this leader waits for other leaders, while its own host is ready.
  [[nodiscard]] bool waits_between() const noexcept { return between_ > 0; }
  /// Returns the regions of the stages up and down, for buffers that the ranks of this host map.
  [[nodiscard]] std::vector<std::shared_ptr<local::Regions>> regions() const;
  /// Maps and drops regions between operations; call it now and then.
  void attend();
  /// Counts long pieces on this host that needed no copies.
  [[nodiscard]] std::uint64_t direct_pieces() const noexcept;
  /// On a leader: counts the bytes of a piece that has been between the hosts, before the leader hands it down.
  void count(local::BytesBetweenHosts bytes) noexcept;
  /// Returns the bytes that this host's leader has counted.
  [[nodiscard]] local::BytesBetweenHosts bytes_between_hosts() const noexcept;
  /// Returns the reason why the ranks of this host do not copy from each other's memory through the kernel.
  [[nodiscard]] std::string attach_refusal() const { return alone() ? "" : parts_.up->attach_refusal(); }
  /// Sleeps until another rank of this host has done something, or for `limit`. Call it only if waits_here().
  void sleep(std::chrono::nanoseconds limit) noexcept;
  /// Returns the stage of the oldest operation, for people.
  [[nodiscard]] std::string waits_for() const;
  /// Counts the pieces that have gone through all stages.
  [[nodiscard]] std::uint64_t steps() const noexcept { return first_; }

 private:
  struct Task {
    Operation* operation;
    std::uint64_t pieces_left;
    std::uint32_t tag;
  };
  /// A piece on its way.
  struct Flight {
    std::shared_ptr<Task> task;
    Piece piece;
    bool returned = false;  // the stage between the hosts has ended; only leaders use this
  };

  bool step_up();
  bool step_down();
  [[nodiscard]] std::optional<local::Call> call_up(const Flight& flight, std::uint64_t number);
  [[nodiscard]] std::optional<local::Call> call_down(const Flight& flight, std::uint64_t number);
  void send_between(Flight& flight, std::uint64_t number);
  void bring_sum(const Flight& flight, std::uint64_t number, Operation& between);
  void finish_average(const Flight& flight, std::uint64_t number);
  [[nodiscard]] bool passes_leader(const Flight& flight) const noexcept;
  [[nodiscard]] std::byte* sum_of(const Flight& flight, std::uint64_t number);
  [[nodiscard]] Flight& at(std::uint64_t number) { return line_[number - first_]; }
  [[nodiscard]] local::Call call(const Flight& flight, Collective collective, std::uint32_t root) const noexcept;
  void returned(std::uint64_t number, const Status& status);

  [[nodiscard]] bool leads() const noexcept { return parts_.map.leads(parts_.rank); }
  [[nodiscard]] bool alone() const noexcept { return parts_.up == nullptr; }
  [[nodiscard]] std::uint32_t host() const noexcept { return parts_.map.host_of(parts_.rank); }
  [[nodiscard]] bool is_here(std::uint32_t rank) const noexcept { return parts_.map.host_of(rank) == host(); }
  [[nodiscard]] std::uint32_t leader() const noexcept { return parts_.map.leader(host()); }

  Parts parts_;
  std::deque<Flight> line_;  // pieces that have not gone through all stages, in their order
  std::uint64_t first_ = 0;  // number of line_'s first piece, counted since the beginning; it goes down next
  std::uint64_t next_up_ = 0;
  bool up_runs_ = false, down_runs_ = false;
  std::uint64_t between_ = 0;                    // pieces that are between the hosts
  std::uint64_t begun_between_ = 0;              // pieces begun between the hosts since the beginning
  local::BytesBetweenHosts own_bytes_;           // bytes of a leader that is alone on its host
  std::array<std::uint64_t, 1024> pieces_of_{};  // by number of the leaders' operation: the rank's own operation
  bool advancing_ = false;
  PieceMemory sums_;
  PieceMemory inputs_;  // of an exact sum: the inputs of the host's ranks, in their order
  std::optional<Error> between_error_;
  bool failed_ = false;
  std::shared_ptr<bool> alive_;
};

}  // namespace tributary::client::hosts
