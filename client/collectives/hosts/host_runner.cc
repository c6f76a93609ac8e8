#include "client/collectives/hosts/host_runner.h"

#include <algorithm>

#include "client/tuning/cost_model.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/scaled_sum.h"

namespace tributary::client::hosts {

namespace {

constexpr std::uint32_t kRoundsMax = 64;

/// True for an average that travels as a scaled sum; such a sum is never larger than its inputs.
bool travels_scaled(const Signature& s) noexcept {
  return s.op == ReduceOp::avg && kernels::averages_in_steps(s.dtype);
}

/// An average is a sum until its end: hosts with different numbers of ranks have no common average. An exact average
/// travels with its number of ranks.
ReduceOp op_of_pieces(const Signature& s) noexcept {
  if (is_exact(s.op)) return between_hosts(s.op);
  if (s.op != ReduceOp::avg) return s.op;
  return travels_scaled(s) ? kScaledSum : ReduceOp::sum;
}

}  // namespace

void HostRunner::submit(Operation& operation) {
  const Cut cut(operation.signature, parts_.map.ranks(), parts_.map.largest());
  const auto task = std::make_shared<Task>(&operation, cut.pieces(), tag_of(operation.signature));
  for (std::uint64_t i = 0; i < cut.pieces(); ++i) line_.push_back({task, cut.at(i)});
  advance();
}

// Calls of advance() do not nest: done() may begin the next operation, which calls advance() again.
bool HostRunner::advance() {
  if (advancing_ || failed_) return false;
  advancing_ = true;
  bool any = false;
  // The stage down comes first: other ranks wait for its results, and it makes room for further pieces.
  for (std::uint32_t rounds = 0; rounds < kRoundsMax; ++rounds) {
    const bool down = step_down();
    const bool up = !failed_ && step_up();
    if (!down && !up) break;
    any = true;
  }
  advancing_ = false;
  return any;
}

bool HostRunner::step_up() {
  if (!up_runs_) {
    if (next_up_ == first_ + line_.size()) return false;
    if (leads() && next_up_ - first_ >= kAheadMax) return false;
    const auto call = call_up(at(next_up_), next_up_);
    if (call) {
      parts_.up->begin(*call);
      up_runs_ = true;
    }
  }
  if (up_runs_) {
    const std::uint64_t steps = parts_.up->steps();
    if (!parts_.up->advance()) return parts_.up->steps() != steps;
    up_runs_ = false;
    if (!parts_.up->outcome()) return false;  // error() reports the failure
  }
  Flight& flight = at(next_up_);
  const std::uint64_t number = next_up_++;
  if (leads()) send_between(flight, number);
  return true;
}

bool HostRunner::step_down() {
  if (!down_runs_) {
    if (next_up_ == first_) return false;
    Flight& flight = line_.front();
    if (leads()) {
      if (!flight.returned) return false;
      finish_average(flight, first_);
    }
    const auto call = call_down(flight, first_);
    if (call) {
      parts_.down->begin(*call);
      down_runs_ = true;
    }
  }
  if (down_runs_) {
    const std::uint64_t steps = parts_.down->steps();
    if (!parts_.down->advance()) return parts_.down->steps() != steps;
    down_runs_ = false;
    if (!parts_.down->outcome()) return false;
  }
  const std::shared_ptr<Task> task = std::move(line_.front().task);
  line_.pop_front();
  ++first_;
  if (parts_.came) parts_.came(*task->operation);
  TRIBUTARY_ASSERT(task->pieces_left > 0, "operation {} has more pieces than were cut", task->operation->number);
  if (--task->pieces_left == 0) parts_.done(*task->operation);
  return true;
}

local::Call HostRunner::call(const Flight& flight, Collective collective, std::uint32_t root) const noexcept {
  const Signature& whole = flight.task->operation->signature;
  local::Call call;
  call.signature.collective = collective;
  call.signature.root = root;
  if (collective != Collective::barrier) {
    call.signature.dtype = whole.dtype;
    call.signature.op = op_of_pieces(whole);
    call.signature.count = flight.piece.segment.count;
  }
  call.number = flight.task->operation->number;
  return call;
}

/// True if the rank that gets or has the piece is on the leader's host, but is not the leader.
bool HostRunner::passes_leader(const Flight& flight) const noexcept {
  return is_here(flight.piece.segment.owner) && flight.piece.segment.owner != leader();
}

/// Returns the memory in which the leader keeps the sum of its host's ranks and, in the end, of all ranks.
std::byte* HostRunner::sum_of(const Flight& flight, std::uint64_t number) {
  const Operation& o = *flight.task->operation;
  const Segment& segment = flight.piece.segment;
  if (flight.piece.kind != Collective::reduce || segment.owner == parts_.rank) return o.result_of(segment);
  return sums_.of(number, segment.count * o.element_bytes());
}

std::optional<local::Call> HostRunner::call_up(const Flight& flight, std::uint64_t number) {
  if (alone()) return std::nullopt;
  const Operation& o = *flight.task->operation;
  const Segment& segment = flight.piece.segment;
  const bool exact = is_exact(o.signature.op);
  local::Call up;
  switch (flight.piece.kind) {
    case Collective::all_reduce:
    case Collective::reduce:
      up = call(flight, exact ? Collective::gather : Collective::reduce, 0);
      up.send = o.input_of(segment);
      if (leads() && exact) {
        up.recv = inputs_.of(number, parts_.map.members(host()).size() * segment.count * o.element_bytes());
      } else if (leads()) {
        up.recv = sum_of(flight, number);
      }
      break;
    case Collective::broadcast:
      if (!passes_leader(flight)) return std::nullopt;
      up = call(flight, Collective::broadcast, parts_.map.place_of(segment.owner));
      if (segment.owner == parts_.rank) up.send = o.input_of(segment);
      if (segment.owner == parts_.rank || leads()) up.recv = o.result_of(segment);
      break;
    default:
      up = call(flight, Collective::barrier, flight.piece.announces ? flight.task->tag : 0);
      break;
  }
  up.in_place = up.recv != nullptr && up.send == up.recv;
  return up;
}

std::optional<local::Call> HostRunner::call_down(const Flight& flight, std::uint64_t number) {
  if (alone() || flight.piece.announces) return std::nullopt;
  const Operation& o = *flight.task->operation;
  const Segment& segment = flight.piece.segment;
  if (flight.piece.kind == Collective::barrier) return call(flight, Collective::barrier, 0);
  local::Call down = call(flight, Collective::broadcast, 0);
  down.in_place = leads();
  if (leads()) down.send = down.recv = sum_of(flight, number);
  if (flight.piece.kind == Collective::reduce) {
    if (!passes_leader(flight)) return std::nullopt;
    if (segment.owner == parts_.rank) down.recv = o.result_of(segment);
    return down;
  }
  if (!leads()) {
    const bool has_it = flight.piece.kind == Collective::broadcast && segment.owner == parts_.rank;
    if (!has_it) down.recv = o.result_of(segment);
  }
  return down;
}

/// Sets the input of this host in a reduction between the hosts: of an exact sum the inputs of its ranks, else their
/// sum. Every host scales its sum as the host with the most ranks does.
void HostRunner::bring_sum(const Flight& flight, std::uint64_t number, Operation& between) {
  const Operation& o = *flight.task->operation;
  const Segment& segment = flight.piece.segment;
  const std::size_t ranks = parts_.map.members(host()).size(), bytes = segment.count * o.element_bytes();
  if (is_exact(o.signature.op)) {
    between.send = alone() ? o.input_of(segment) : inputs_.of(number, ranks * bytes);
    for (std::size_t i = 0; i < ranks; ++i) between.rank_inputs.push_back(between.send + i * bytes);
    return;
  }
  between.send = alone() ? o.input_of(segment) : sum_of(flight, number);
  const int lacks = kernels::scale_of_ranks(parts_.map.largest()) - kernels::scale_of_ranks(ranks);
  TRIBUTARY_ASSERT(lacks >= 0, "host {} has {} ranks, and the largest {}", host(), ranks, parts_.map.largest());
  if (!travels_scaled(o.signature) || lacks == 0) return;
  std::byte* const scaled = sum_of(flight, number);
  kernels::rescale(o.signature.dtype, between.send, scaled, segment.count, 1, 1U << lacks);
  between.send = scaled;
}

void HostRunner::send_between(Flight& flight, std::uint64_t number) {
  const Operation& o = *flight.task->operation;
  const Piece& piece = flight.piece;
  const Segment& segment = piece.segment;
  // In an all_reduce the tag travels with each piece, so the hosts need no barrier that carries the tag.
  if (piece.announces && o.signature.collective == Collective::all_reduce) {
    flight.returned = true;
    return;
  }
  auto between = std::make_unique<Operation>();
  between->signature = call(flight, piece.kind, flight.task->tag).signature;
  between->part_of_bytes =
      amount_in_all(o.signature.collective, o.signature.count * o.element_bytes(), parts_.map.ranks());
  switch (piece.kind) {
    case Collective::all_reduce:
      between->recv = sum_of(flight, number);
      bring_sum(flight, number, *between);
      break;
    case Collective::reduce:
      between->signature.root = parts_.map.host_of(segment.owner);
      between->recv = is_here(segment.owner) ? sum_of(flight, number) : nullptr;
      bring_sum(flight, number, *between);
      break;
    case Collective::broadcast:
      between->signature.root = parts_.map.host_of(segment.owner);
      between->recv = o.result_of(segment);
      if (is_here(segment.owner)) {
        between->send = segment.owner == parts_.rank ? o.input_of(segment) : between->recv;
      }
      break;
    default:
      break;
  }
  between->memory_kept = piece.kind != Collective::reduce;  // a reduce may use scratch memory
  between->in_place = between->recv != nullptr && between->send == between->recv;
  between->on_done = [this, alive = alive_, number](const Status& status) {
    if (*alive) returned(number, status);
  };
  ++between_;
  pieces_of_[begun_between_++ % pieces_of_.size()] = o.number;
  parts_.between(std::move(between));
}

void HostRunner::returned(std::uint64_t number, const Status& status) {
  --between_;
  if (status) {
    at(number).returned = true;
  } else if (!between_error_) {
    between_error_ = status.error();
  }
}

// Divides the sum of an average. Every leader divides the same bits, and so gets the same result.
void HostRunner::finish_average(const Flight& flight, std::uint64_t number) {
  const Operation& o = *flight.task->operation;
  const Piece& piece = flight.piece;
  if (o.signature.op != ReduceOp::avg || piece.announces) return;
  const bool wanted =
      piece.kind == Collective::all_reduce || (piece.kind == Collective::reduce && is_here(piece.segment.owner));
  if (!wanted) return;
  std::byte* const sum = sum_of(flight, number);
  const HostMap& map = parts_.map;
  if (travels_scaled(o.signature)) {
    const int scale = kernels::scale_of_ranks(map.largest()) + kernels::scale_of_ranks(map.hosts());
    TRIBUTARY_ASSERT(scale < 32, "2^{} for {} ranks on {} hosts", scale, map.ranks(), map.hosts());
    kernels::rescale(o.signature.dtype, sum, sum, piece.segment.count, 1U << scale, map.ranks());
  } else {
    const std::array<const void*, 1> input{sum};
    kernels::reduce(o.signature.dtype, ReduceOp::avg, input, sum, piece.segment.count, map.ranks());
  }
}

void HostRunner::inspect() const {
  if (up_runs_) parts_.up->inspect();
  if (down_runs_) parts_.down->inspect();
}

void HostRunner::fail(const Error& error) noexcept {
  failed_ = true;
  for (const auto* group : {&parts_.up, &parts_.down}) {
    if (*group) (*group)->fail(error);
  }
  for (const auto* group : {&parts_.up, &parts_.down}) {
    if (*group) (*group)->withdraw();
  }
}

std::optional<std::uint64_t> HostRunner::disputed() const {
  const auto failed = [](const auto& group) { return group != nullptr && group->failed(); };
  const std::uint64_t up = next_up_ - first_;
  if (failed(parts_.up) && up < line_.size()) return line_[up].task->operation->number;
  if (failed(parts_.down) && !line_.empty()) return line_.front().task->operation->number;
  return std::nullopt;
}

std::optional<std::uint64_t> HostRunner::operation_of(std::uint64_t between) const {
  if (between >= begun_between_ || begun_between_ - between > pieces_of_.size()) return std::nullopt;
  return pieces_of_[between % pieces_of_.size()];
}

std::optional<Error> HostRunner::error() const {
  for (const auto* group : {&parts_.up, &parts_.down}) {
    if (*group && (*group)->failed()) return (*group)->failure();
  }
  return between_error_;
}

std::vector<std::shared_ptr<local::Regions>> HostRunner::regions() const {
  if (alone()) return {};
  return {parts_.up->regions(), parts_.down->regions()};
}

void HostRunner::attend() {
  if (alone()) return;
  parts_.up->attend();
  parts_.down->attend();
}

std::uint64_t HostRunner::direct_pieces() const noexcept {
  return alone() ? 0 : parts_.up->direct_calls() + parts_.down->direct_calls();
}

void HostRunner::count(local::BytesBetweenHosts bytes) noexcept {
  TRIBUTARY_ASSERT(leads(), "rank {} counts the bytes of rank {}", parts_.rank, leader());
  if (!alone()) return parts_.down->count(bytes);
  own_bytes_.in_network += bytes.in_network;
  own_bytes_.between_ranks += bytes.between_ranks;
}

local::BytesBetweenHosts HostRunner::bytes_between_hosts() const noexcept {
  return alone() ? own_bytes_ : parts_.down->bytes_between_hosts();
}

void HostRunner::sleep(std::chrono::nanoseconds limit) noexcept {
  local::LocalGroup& group = down_runs_ ? *parts_.down : *parts_.up;
  group.bell().sleep(limit, [this] { return advance(); });
}

std::string HostRunner::waits_for() const {
  if (line_.empty()) return "nothing";
  const bool is_up = next_up_ > first_;
  const std::uint64_t of_operation = line_.front().task->pieces_left;
  std::string where = "among the ranks of this host";
  if (is_up && leads() && !line_.front().returned) where = "between the hosts";
  if (is_up && !leads()) where = "for rank " + std::to_string(leader()) + ", the leader of this host";
  return where + ", " + std::to_string(of_operation) + " piece(s) before the end";
}

}  // namespace tributary::client::hosts
