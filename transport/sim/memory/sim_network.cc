#include "tributary/transport/sim_network.h"

#include <stdexcept>

#include "transport/sim/memory/sim_core.h"
#include "transport/sim/memory/sim_endpoints.h"

namespace tributary::transport {

SimNetwork::SimNetwork(const SimSettings& settings) : core_(std::make_shared<SimCore>(settings)) {}
SimNetwork::~SimNetwork() {
  core_->shut_down();
}

Transport& SimNetwork::transport(std::string_view host) {
  return core_->transport(core_->host_index(host));
}

TimePoint SimNetwork::now() const noexcept {
  return core_->now();
}
bool SimNetwork::step() {
  return core_->step();
}

std::size_t SimNetwork::run_until(TimePoint time) {
  std::size_t steps = 0;
  while (core_->step_until(time)) ++steps;
  core_->advance(time);
  return steps;
}

std::size_t SimNetwork::run_for(Duration duration) {
  return run_until(now() + duration);
}

bool SimNetwork::run_until(const std::function<bool()>& done, TimePoint limit) {
  while (!done()) {
    if (!core_->step_until(limit)) return false;
  }
  return true;
}

bool SimNetwork::run_until_idle(std::size_t events_max) {
  for (std::size_t i = 0; i < events_max; ++i) {
    if (!core_->step()) return true;
  }
  return core_->idle();
}

bool SimNetwork::idle() const {
  return core_->idle();
}

void SimNetwork::on_due(std::string_view host, std::function<void()> run) {
  auto& runner = core_->host(core_->host_index(host)).runner;
  runner = run ? std::make_shared<const std::function<void()>>(std::move(run)) : nullptr;
}
void SimNetwork::wake_at(std::string_view host, TimePoint time) {
  core_->wake_at(core_->host_index(host), time);
}
void SimNetwork::call_at(TimePoint time, std::function<void()> call) {
  core_->call_at(time, std::move(call));
}

void SimNetwork::cut(Channel& channel) {
  auto* simulated = dynamic_cast<SimChannel*>(&channel);
  if (simulated == nullptr) throw std::invalid_argument("SimNetwork::cut() takes a channel of a SimNetwork");
  core_->cut(simulated->connection());
}
void SimNetwork::cut(std::string_view a, std::string_view b) {
  core_->cut(core_->host_index(a), core_->host_index(b));
}
void SimNetwork::kill(std::string_view host) {
  core_->kill(core_->host_index(host));
}
Transport& SimNetwork::restart(std::string_view host) {
  const std::uint32_t index = core_->host_index(host);
  core_->restart(index);
  return core_->transport(index);
}
bool SimNetwork::alive(std::string_view host) const {
  return core_->host(core_->host_index(host)).alive;
}
void SimNetwork::partition(std::string_view host) {
  core_->partition(core_->host_index(host), true);
}
void SimNetwork::partition(std::string_view a, std::string_view b) {
  core_->partition(core_->host_index(a), core_->host_index(b), true);
}
void SimNetwork::heal(std::string_view host) {
  core_->partition(core_->host_index(host), false);
}
void SimNetwork::heal(std::string_view a, std::string_view b) {
  core_->partition(core_->host_index(a), core_->host_index(b), false);
}
void SimNetwork::pause(std::string_view host) {
  core_->pause(core_->host_index(host));
}
void SimNetwork::resume(std::string_view host) {
  core_->resume(core_->host_index(host));
}
void SimNetwork::slow_down(std::string_view host, Duration per_turn) {
  core_->host(core_->host_index(host)).per_turn = per_turn;
}
void SimNetwork::refuse_connections(std::string_view host, std::uint32_t percent) {
  core_->host(core_->host_index(host)).refuse_percent = percent;
}
void SimNetwork::set_link(std::string_view a, std::string_view b, const LinkSettings& link) {
  core_->set_link(core_->host_index(a), core_->host_index(b), link);
}

void SimNetwork::overhear(Overhear listener) {
  core_->overhear = std::move(listener);
}

SimStatistics SimNetwork::statistics() const {
  return core_->statistics;
}
std::uint64_t SimNetwork::trace_hash() const noexcept {
  return core_->trace_hash();
}
std::uint64_t SimNetwork::random_below(std::uint64_t bound) {
  return core_->random.below(bound);
}

}  // namespace tributary::transport
