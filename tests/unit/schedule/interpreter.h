#pragma once
// Runs the schedules of all ranks of one call in memory, one random action at a time, and checks every access.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tests/unit/schedule/call.h"

namespace tributary::schedule {

/// An exception: a schedule has broken a promise.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Interval {
  std::uint64_t begin;
  std::uint64_t end;
  [[nodiscard]] bool overlaps(const Interval& other) const {
    return begin < end && other.begin < other.end && begin < other.end && other.begin < end;
  }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// A rank's arrays in one row of cells. They lie apart, or share cells if the call is in place. Reads of cells that
/// were never written, writes to the input and accesses out of bounds throw Broken.
template <class T>
class Memory {
 public:
  Memory(const Call& call, std::uint32_t rank, std::uint64_t scratch_count) {
    send_ = {0, send_extent(call, rank)};
    recv_ = {0, recv_extent(call, rank)};
    const bool both = send_.end > 0 && recv_.end > 0;
    if (both && call.in_place[rank]) {
      if (recv_.end < send_.end) shift(recv_, rank * call.count);
      if (send_.end < recv_.end) shift(send_, rank * call.count);
    } else {
      shift(recv_, send_.end);
    }
    const std::uint64_t user_end = std::max(send_.end, recv_.end);
    scratch_ = {user_end, user_end + scratch_count};
    cells_.resize(scratch_.end);
    for (std::uint64_t i = send_.begin; i < send_.end; ++i) cells_[i] = input<T>(call, rank, i - send_.begin);
  }

  [[nodiscard]] Interval place(const Slice& slice) const {
    const Interval& bounds = of(slice.buffer);
    if (slice.count == 0) return {bounds.begin, bounds.begin};
    const Interval interval{bounds.begin + slice.offset, bounds.begin + slice.offset + slice.count};
    if (interval.end > bounds.end) throw Broken("a slice beyond its buffer");
    return interval;
  }
  [[nodiscard]] std::vector<T> read(const Slice& slice) const {
    const Interval interval = place(slice);
    std::vector<T> values;
    for (std::uint64_t i = interval.begin; i < interval.end; ++i) {
      if (!cells_[i]) throw Broken("a read of memory that was never written");
      values.push_back(*cells_[i]);
    }
    return values;
  }
  void write(const Slice& slice, std::span<const T> values) {
    if (slice.buffer == Buffer::send) throw Broken("a write to the input");
    const Interval interval = place(slice);
    if (interval.end - interval.begin != values.size()) throw Broken("a write of another size");
    for (std::uint64_t i = 0; i < values.size(); ++i) cells_[interval.begin + i] = values[i];
  }
  [[nodiscard]] std::vector<T> output() const { return read({Buffer::recv, 0, recv_.end - recv_.begin}); }
  [[nodiscard]] std::vector<T> input_now() const { return read({Buffer::send, 0, send_.end - send_.begin}); }

 private:
  static void shift(Interval& interval, std::uint64_t by) { interval = {interval.begin + by, interval.end + by}; }
  [[nodiscard]] const Interval& of(Buffer buffer) const {
    return buffer == Buffer::send ? send_ : buffer == Buffer::recv ? recv_ : scratch_;
  }

  Interval send_{};
  Interval recv_{};
  Interval scratch_{};
  std::vector<std::optional<T>> cells_;
};

/// The amount of data that a channel holds before the receiver asks for it: none (a send waits for its receive), or any
/// amount.
enum class Channels : std::uint8_t { rendezvous, unbounded };

template <class T>
class Interpreter {
 public:
  Interpreter(const Call& call, Channels channels, std::uint64_t seed)
      : call_(call), channels_(channels), random_(seed), queues_(std::size_t{call.ranks} * call.ranks) {
    ranks_.reserve(call.ranks);
    for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
      const Schedule schedule(call.at(rank, sizeof(T)));
      ranks_.push_back(Rank{schedule, Memory<T>(call, rank, schedule.scratch_count()), 0, {}, {}});
      if (schedule.rounds() > 0) start_round(ranks_.back());
    }
  }

  /// Throws Broken.
  void run() {
    std::uniform_int_distribution<std::uint32_t> any_rank(0, call_.ranks - 1);
    while (true) {
      const std::uint32_t first = any_rank(random_);
      bool progress = false;
      for (std::uint32_t i = 0; i < call_.ranks && !progress; ++i) progress = act((first + i) % call_.ranks);
      if (!progress) break;
    }
    for (const Rank& rank : ranks_) {
      if (rank.round < rank.schedule.rounds()) throw Broken("deadlock");
    }
    for (const auto& queue : queues_) {
      if (!queue.empty()) throw Broken("a message that nobody received");
    }
  }

  [[nodiscard]] const Memory<T>& memory(std::uint32_t rank) const { return ranks_[rank].memory; }
  [[nodiscard]] std::uint64_t elements_sent(std::uint32_t rank) const { return ranks_[rank].elements_sent; }

 private:
  struct Rank {
    Schedule schedule;
    Memory<T> memory;
    std::uint64_t round;
    Actions actions;
    std::vector<std::size_t> open;  // actions of this round that the rank has not done yet, in the order of the list
    std::uint64_t elements_sent = 0;
  };

  [[nodiscard]] T combine(T first, T second, std::uint32_t divisor) const {
    const T sum = static_cast<T>(first + second);
    return call_.op == ReduceOp::avg ? static_cast<T>(sum / static_cast<T>(divisor)) : sum;
  }

  /// Checks that the operand contains the inputs of as many ranks as the reduction says.
  static void check_ranks(const std::vector<T>& operand, std::uint32_t ranks) {
    if constexpr (std::is_same_v<T, Counted>) {
      for (const Counted& element : operand)
        if (element.ranks != ranks) throw Broken("an operand of another number of ranks than the action says");
    }
  }

  void start_round(Rank& rank) {
    rank.schedule.actions(rank.round, rank.actions);
    check_hazards(rank);
    rank.open.clear();
    for (std::size_t i = 0; i < rank.actions.size(); ++i) {
      const Action& action = rank.actions[i];
      const bool local = !std::holds_alternative<Send>(action) && !std::holds_alternative<Receive>(action);
      if (local && !rank.open.empty()) throw Broken("a local action after a message");
      if (const auto* copy = std::get_if<LocalCopy>(&action))
        rank.memory.write(copy->into, rank.memory.read(copy->from));
      if (const auto* reduce = std::get_if<LocalReduce>(&action)) local_reduce(rank, *reduce);
      if (!local) rank.open.push_back(i);
    }
    if (rank.open.empty()) next_round(rank);
  }

  void next_round(Rank& rank) {
    if (++rank.round < rank.schedule.rounds()) start_round(rank);
  }

  void local_reduce(Rank& rank, const LocalReduce& action) {
    if (action.operands < 2 || (action.operands > 64 && !call_.exact))
      throw Broken("a reduction of too few or too many operands");
    Slice operand = action.first;
    std::vector<T> sum = rank.memory.read(operand);
    check_ranks(sum, action.first_ranks);
    for (std::uint32_t i = 1; i < action.operands; ++i) {
      operand.offset += operand.count;
      const std::vector<T> next = rank.memory.read(operand);
      check_ranks(next, 1);
      const std::uint32_t divisor = i + 1 == action.operands ? action.divisor : 1;
      for (std::size_t at = 0; at < sum.size(); ++at) sum[at] = combine(sum[at], next[at], divisor);
    }
    rank.memory.write(action.into, sum);
  }

  /// Checks that no other message of the round touches memory that a receive writes.
  static void check_hazards(const Rank& rank) {
    for (const Action& action : rank.actions) {
      if (const auto* copy = std::get_if<LocalCopy>(&action)) {
        if (rank.memory.place(copy->from).overlaps(rank.memory.place(copy->into))) throw Broken("a copy onto itself");
      }
      const auto* receive = std::get_if<Receive>(&action);
      if (receive == nullptr) continue;
      const Interval into = rank.memory.place(receive->into);
      if (receive->landing != Landing::copy) {
        const Interval operand = rank.memory.place(receive->operand);
        if (!(operand == into) && operand.overlaps(into)) throw Broken("an operand that overlaps its result in part");
      }
      for (const Action& other : rank.actions) {
        if (const auto* send = std::get_if<Send>(&other)) {
          if (into.overlaps(rank.memory.place(send->from))) throw Broken("a receive into what the round sends");
        }
        const auto* second = std::get_if<Receive>(&other);
        if (second == nullptr || second == receive) continue;
        const bool reads = second->landing != Landing::copy && into.overlaps(rank.memory.place(second->operand));
        if (reads || into.overlaps(rank.memory.place(second->into))) throw Broken("two receives at one place");
      }
    }
  }

  /// Does one action that a rank can do now; returns false if it can do none.
  bool act(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.round >= rank.schedule.rounds()) return false;
    std::vector<std::size_t> ready;
    for (std::size_t at = 0; at < rank.open.size(); ++at) {
      if (is_first(rank, at) && can_do(number, rank.actions[rank.open[at]])) ready.push_back(at);
    }
    if (ready.empty()) return false;
    const std::size_t at = ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_)];
    const Action action = rank.actions[rank.open[at]];
    rank.open.erase(rank.open.begin() + static_cast<std::ptrdiff_t>(at));
    if (const auto* send = std::get_if<Send>(&action)) do_send(number, *send);
    if (const auto* receive = std::get_if<Receive>(&action)) do_receive(number, *receive);
    if (rank.open.empty()) next_round(rank);
    return true;
  }

  /// True if the rank has no earlier open message to or from the same peer: messages between two ranks keep their
  /// order.
  [[nodiscard]] static bool is_first(const Rank& rank, std::size_t at) {
    const Action& action = rank.actions[rank.open[at]];
    for (std::size_t before = 0; before < at; ++before) {
      const Action& other = rank.actions[rank.open[before]];
      if (action.index() == other.index() && peer_of(action) == peer_of(other)) return false;
    }
    return true;
  }
  [[nodiscard]] static std::uint32_t peer_of(const Action& action) {
    if (const auto* send = std::get_if<Send>(&action)) return send->peer;
    return std::get<Receive>(action).peer;
  }
  [[nodiscard]] bool can_do(std::uint32_t number, const Action& action) {
    if (const auto* send = std::get_if<Send>(&action)) {
      if (send->peer >= call_.ranks || send->peer == number) throw Broken("a message to nobody");
      return channels_ == Channels::unbounded;  // otherwise the send happens with its receive
    }
    const std::uint32_t peer = std::get<Receive>(action).peer;
    if (peer >= call_.ranks || peer == number) throw Broken("a message from nobody");
    return channels_ == Channels::unbounded ? !queue(peer, number).empty() : waiting_send(peer, number).has_value();
  }

  /// Returns the first send to `receiver` that `sender` has posted, as an index into its open actions.
  [[nodiscard]] std::optional<std::size_t> waiting_send(std::uint32_t sender, std::uint32_t receiver) const {
    const Rank& rank = ranks_[sender];
    if (rank.round >= rank.schedule.rounds()) return std::nullopt;
    for (std::size_t at = 0; at < rank.open.size(); ++at) {
      const auto* send = std::get_if<Send>(&rank.actions[rank.open[at]]);
      if (send != nullptr && send->peer == receiver) return at;
    }
    return std::nullopt;
  }

  void do_send(std::uint32_t number, const Send& send) {
    ranks_[number].elements_sent += send.from.count;
    queue(number, send.peer).push_back(ranks_[number].memory.read(send.from));
  }

  void do_receive(std::uint32_t number, const Receive& receive) {
    if (channels_ == Channels::rendezvous) {
      Rank& sender = ranks_[receive.peer];
      const std::size_t at = *waiting_send(receive.peer, number);
      const Send send = std::get<Send>(sender.actions[sender.open[at]]);
      sender.open.erase(sender.open.begin() + static_cast<std::ptrdiff_t>(at));
      do_send(receive.peer, send);
      land(number, receive);
      if (sender.open.empty()) next_round(sender);
    } else {
      land(number, receive);
    }
  }

  void land(std::uint32_t number, const Receive& receive) {
    auto& messages = queue(receive.peer, number);
    std::vector<T> values = std::move(messages.front());
    messages.pop_front();
    if (values.size() != receive.into.count) throw Broken("a message of another size than its receive");
    Memory<T>& memory = ranks_[number].memory;
    if (receive.landing != Landing::copy) {
      const std::vector<T> operand = memory.read(receive.operand);
      if (operand.size() != values.size()) throw Broken("an operand of another size");
      check_ranks(values, receive.received_ranks);
      check_ranks(operand, receive.operand_ranks);
      const bool received_first = receive.landing == Landing::received_first;
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = received_first ? combine(values[i], operand[i], receive.divisor)
                                   : combine(operand[i], values[i], receive.divisor);
      }
    }
    memory.write(receive.into, values);
  }

  [[nodiscard]] std::deque<std::vector<T>>& queue(std::uint32_t from, std::uint32_t to) {
    return queues_[std::size_t{from} * call_.ranks + to];
  }

  const Call& call_;
  Channels channels_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::vector<std::deque<std::vector<T>>> queues_;
};

}  // namespace tributary::schedule
