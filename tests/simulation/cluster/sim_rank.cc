#include "tests/simulation/cluster/sim_rank.h"

#include <algorithm>
#include <utility>

#include "client/api/arguments.h"
#include "client/api/products.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/sim_group_service.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::simulation {

using namespace std::chrono_literals;
using transport::Duration;
using transport::TimePoint;

SimRank::SimRank(Cluster& cluster, std::uint32_t group, std::uint32_t rank, std::uint32_t nranks, std::uint32_t lanes,
                 const client::UniqueId& id, std::shared_ptr<const std::vector<Call>> calls)
    : cluster_(cluster),
      group_(group),
      rank_(rank),
      nranks_(nranks),
      host_("g" + std::to_string(group) + "r" + std::to_string(rank)),
      calls_(std::move(calls)),
      random_(cluster.settings().seed * 1000 + group * 100 + rank),
      service_(std::make_unique<SimGroupService>(cluster, nranks)),
      ways_(cluster.settings().devices ? two_ways() : nullptr),
      buffers_(calls_->size()) {
  auto& network = cluster.network();
  auto& transport =
      ways_ ? static_cast<transport::Transport&>(*ways_) : cluster.between(host_, network.transport(host_));
  communicator_ = std::make_unique<client::Communicator>(transport, rank == 0 ? service_.get() : nullptr,
                                                         communicator_settings(id, lanes));
  if (rank == 0) {
    auto& star = ways_ ? ways_->second_way() : transport;
    listener_ = std::move(*star.listen({host_, kRankPort}, *communicator_));
  }
  const auto turn = [this, &transport] {
    transport.poll(Duration::zero());
    pump();
  };
  network.on_due(host_, turn);
  if (ways_) network.on_due(device_of(host_), turn);
  network.wake_at(host_, network.now() + 1us);
  communicator_->start([this](const Status& status) {
    if (!status) {
      failed_ = status.error();
      return;
    }
    ready_ = true;
  });
}

std::unique_ptr<TwoWays> SimRank::two_ways() const {
  auto& network = cluster_.network();
  const auto& net = cluster_.settings().network;
  return std::make_unique<TwoWays>(
      network, host_, net.early_sent_percent > 0 ? static_cast<std::uint32_t>(net.early_sent_bytes_max) : 0,
      cluster_.between(device_of(host_), network.transport(device_of(host_))),
      cluster_.between(host_, network.transport(host_)));
}

client::CommunicatorSettings SimRank::communicator_settings(const client::UniqueId& id, std::uint32_t lanes) const {
  client::CommunicatorSettings settings;
  settings.rank = rank_;
  settings.nranks = nranks_;
  settings.id = id;
  settings.listen = {host_, 0};
  settings.advertised_host = host_;
  settings.host_id = host_;
  settings.lanes = lanes;
  settings.manager_configured = true;
  settings.path = cluster_.settings().path;
  settings.require_trees = cluster_.settings().require_trees;
  settings.timeout = cluster_.settings().timeout;
  if (cluster_.settings().tuning && rank_ == 0) {  // the other ranks must learn the tuning from rank 0
    settings.tuning = client::TuningMode::table;
    settings.tuning_table = *cluster_.settings().tuning;
  } else if (cluster_.settings().automatic && rank_ == 0) {
    settings.tuning = client::TuningMode::automatic;
  }
  if (rank_ == 0) settings.amendments = cluster_.settings().amendments;
  return settings;
}

SimRank::~SimRank() {
  kill();
  if (distant_) distant_->abandon();
}

void SimRank::kill() {
  if (!communicator_) return;
  cluster_.network().kill(host_);
  if (ways_) cluster_.network().kill(device_of(host_));
  listener_.reset();
  communicator_.reset();
}

void SimRank::lose_device(bool silent) {
  if (!communicator_ || !has_device()) return;
  std::vector<std::string> others;
  for (const auto& ranks : cluster_.groups()) {
    for (const auto& rank : ranks) others.push_back(device_of(rank->host()));
  }
  for (const auto& aggregator : cluster_.aggregators()) others.push_back(aggregator->name());
  ways_->lose_device(others, silent);
}

void SimRank::pump() {
  if (!communicator_) return;
  const TimePoint now = cluster_.network().now();
  communicator_->tick(now);
  while (ready_ && !failed_ && next_ < calls_->size() && under_way_ < outstanding_max && now >= next_call_at_)
    call_next();
  if (ready_ && !failed_ && next_ == calls_->size() && under_way_ == 0 && !finalizing_) finalize();
  TimePoint wake = std::min(now + kTick, move_memory(now));
  if (next_call_at_ > now) wake = std::min(wake, next_call_at_);
  cluster_.network().wake_at(host_, wake);
}

void SimRank::finalize() {
  finalizing_ = true;
  communicator_->finalize([this](const Status& status) {
    finalized_ = status.has_value();
    if (!status) failed_ = status.error();
  });
}

TimePoint SimRank::move_memory(TimePoint now) {
  TimePoint wake = TimePoint::max();
  if (!slow_.empty()) {
    let_input_arrive();
    wake = now + 1us + Duration(static_cast<std::int64_t>(random_() % 100'000));
  }
  if (distant_ && !distant_->idle()) {
    if (now >= distant_at_) {
      distant_->advance(random_() % 4);
      distant_at_ =
          now + 1us +
          Duration(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(distant_pause_max.count())));
    }
    wake = std::min(wake, distant_at_);
  }
  return wake;
}

void SimRank::use_distant_memory(bool refuses) {
  distant_ =
      std::make_shared<DistantDevice>(DistantDevice::Settings{.wake =
                                                                  [this] {
                                                                    cluster_.network().transport(host_).post([this] {
                                                                      if (communicator_)
                                                                        communicator_->staged_input_arrived();
                                                                    });
                                                                  },
                                                              .refuses = refuses});
}

void SimRank::let_input_arrive() {
  std::vector<std::shared_ptr<SlowMemory>> under_way;
  for (const auto& [index, slow] : slow_) under_way.push_back(slow);
  for (const auto& slow : under_way) {
    if (slow->input_whole()) continue;
    slow->arrive(1 + random_() % arriving_bytes_max);
    communicator_->staged_input_arrived();
  }
}

const Call& SimRank::call_of(std::size_t index) const {
  const auto other = other_calls.find(index);
  return other == other_calls.end() ? (*calls_)[index] : other->second;
}

std::uint64_t SimRank::salt_of(std::size_t index) const {
  return cluster_.settings().seed * 7919 + group_ * 1000 + index;
}

void SimRank::call_next() {
  const std::size_t index = next_++;
  const Call& call = call_of(index);
  buffers_[index] = std::make_unique<Buffers>(make_buffers(call, salt_of(index), rank_, nranks_));
  Buffers& b = *buffers_[index];
  auto operation = std::make_unique<client::Operation>();
  operation->signature = call.signature;
  operation->recv = b.recv.data();
  operation->send = b.send.data();
  if (b.send.empty() && call.in_place && !b.recv.empty()) put_in_place(*operation, b);
  if (is_exact_of_hosts(call.signature.op)) {
    operation->rank_inputs = {operation->send};
    for (const auto& other : b.others) operation->rank_inputs.push_back(other.data());
  }
  if (call.multiplied) operation = multiplied(*operation, call, b);
  operation->on_done = [this, index](const Status& status) { on_result(index, status); };
  if (!call.multiplied) place_memory(*operation, call, index);
  ++under_way_;
  if (think_max.count() > 0)
    next_call_at_ = cluster_.network().now() + Duration(random_() % static_cast<std::uint64_t>(think_max.count()));
  communicator_->submit(std::move(operation));
}

void SimRank::put_in_place(client::Operation& operation, Buffers& buffers) const {
  const Signature& s = operation.signature;
  const bool root = s.root == rank_;
  const bool has_input = !(s.collective == Collective::broadcast || s.collective == Collective::scatter) || root;
  const bool has_output = !(s.collective == Collective::reduce || s.collective == Collective::gather) || root;
  if (!has_input || !has_output) return;
  operation.send = buffers.recv.data() + buffers.in_place_offset;
  operation.in_place = true;
  const std::size_t chunk = s.count * size_of(s.dtype) * rank_;
  if (s.collective == Collective::reduce_scatter || s.collective == Collective::scatter)
    operation.recv = buffers.recv.data() + chunk;
}

std::unique_ptr<client::Operation> SimRank::multiplied(const client::Operation& operation, const Call& call,
                                                       Buffers& buffers) {
  const Signature& s = call.signature;
  const auto dtype = static_cast<int>(s.dtype);
  const auto op = factors_.add(*client::check_factor("simulation", factor_of(call, rank_).data(), dtype));
  auto checked = client::check({.function = "simulation",
                                .collective = s.collective,
                                .send = operation.send,
                                .recv = operation.recv,
                                .count = s.count,
                                .dtype = dtype,
                                .op = *op,
                                .root = static_cast<int>(s.root)},
                               rank_, nranks_, Numerics::fast, &factors_);
  TRIBUTARY_ASSERT(checked && factors_.remove(*op), "{}", checked ? "the op is gone" : checked.error().message);
  buffers.products = client::multiply_input(*checked);
  return client::make_operation(*checked);
}

void SimRank::place_memory(client::Operation& operation, const Call& call, std::size_t index) {
  const Signature& s = call.signature;
  const std::size_t bytes = input_elements(call, rank_, nranks_) * size_of(s.dtype);
  if (arriving_bytes_max > 0) {
    slow_[index] = std::make_shared<SlowMemory>(std::span(const_cast<std::byte*>(operation.send), bytes));
    operation.staged = slow_[index];
  }
  if (!distant_ || !in_network_capable(s.collective) || is_exact_of_hosts(s.op)) return;
  const auto distant = std::make_shared<DistantCall>(distant_, *buffers_[index], operation, bytes);
  operation.direct = distant;
  operation.on_done = [this, index, distant](const Status& status) {
    ++(distant->materialized() ? materialized : went_direct);
    distant->finish(status.has_value(), [this, index, status] { on_result(index, status); });
  };
}

void SimRank::on_result(std::size_t index, const Status& status) {
  --under_way_;
  const auto slow = slow_.extract(index);
  if (!status) {
    if (!failed_) failed_ = status.error();
    return;
  }
  const Call& call = call_of(index);
  const std::string name = host_ + ": operation " + std::to_string(index) + " (" + to_string(call.signature);
  if (const auto wrong = check(call, *buffers_[index], salt_of(index), rank_, nranks_); !wrong.empty())
    cluster_.violation(name + (call.in_place ? ", in place" : "") + "): " + wrong);
  if (const auto wrong = slow ? slow.mapped()->check() : std::string(); !wrong.empty())
    cluster_.violation(name + "): " + wrong);
  ++completed_;
  // The buffers belong to the caller again: overwrite them, so that the run detects later reads and writes.
  for (auto* buffer : {&buffers_[index]->send, &buffers_[index]->recv})
    std::fill(buffer->begin(), buffer->end(), std::byte{0xA5});
  for (auto& other : buffers_[index]->others) std::fill(other.begin(), other.end(), std::byte{0xA5});
  if (auto* const products = buffers_[index]->products.get(); products != nullptr)
    std::fill_n(products, input_elements(call, rank_, nranks_) * size_of(call.signature.dtype), std::byte{0xA5});
}

std::string SimRank::state() const {
  std::string text = host_ + ": ";
  if (!communicator_) return text + "killed";
  text += std::to_string(completed_) + "/" + std::to_string(calls_->size()) + " done, " + std::to_string(under_way_) +
          " under way";
  if (!ready_) text += ", not ready";
  if (failed_) text += ", failed: " + failed_->message;
  if (finalized_) text += ", finalized";
  return text + "; path: " + communicator_->info().reason;
}

}  // namespace tributary::simulation
