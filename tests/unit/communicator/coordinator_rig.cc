#include "tests/unit/communicator/coordinator_rig.h"

#include <stdexcept>

namespace tributary::client {

using namespace std::chrono_literals;

namespace {

std::string number_of(std::uint64_t operation) {
  return operation == kNever ? "never" : std::to_string(operation);
}

std::string line_of(const ControlMessage& m) {
  switch (m.type) {
    case FrameType::commit:
      return "commit " + number_of(m.operation);
    case FrameType::amended:
      return "amended " + number_of(m.operation) + " by " + m.body;
    case FrameType::freeze:
      return m.value == kMoves ? "freeze to move" : "freeze";
    case FrameType::inquiry:
      return "inquiry " + number_of(m.operation);
    case FrameType::abort:
      return "abort: " + std::string(tributary::to_string(static_cast<Errc>(m.value)));
    default:
      return std::string(tributary::to_string(m.type));
  }
}

}  // namespace

void RecordingOutput::broadcast(const ControlMessage& message) {
  record_.add(line_of(message));
  last = message;
}

void RecordingOutput::send(std::uint32_t rank, const ControlMessage& message) {
  if (message.type == FrameType::inquiry)
    record_.add(line_of(message) + " of " + std::to_string(rank) + " about " + std::to_string(message.value - 1));
  else if (rank == 0)
    record_.add(line_of(message) + " to each");
  sent.emplace_back(rank, message);
}

void ManagerOnDemand::request(const GroupRequest& request, DescriptorAnswer answer) {
  record_.add("asks for a group");
  link_rate = request.link_rate;
  rail = request.rail;
  attempts.push_back(request.attempt);
  trees.push_back(std::move(answer));
}

void ManagerOnDemand::places(std::uint64_t, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
                             PageAnswer answer) {
  record_.add("asks for places " + std::to_string(first) + " to " + std::to_string(first + count - 1) + " of epoch " +
              std::to_string(epoch));
  pages.push_back(std::move(answer));
}

void ManagerOnDemand::rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed,
                              bool in_use, DescriptorAnswer answer) {
  std::string line = in_use ? "asks for better trees of " : "asks for trees of ";
  line += std::to_string(group) + " after epoch " + std::to_string(epoch);
  for (const auto& name : failed) line += " without " + name;
  record_.add(line);
  trees.push_back(std::move(answer));
}

void ManagerOnDemand::renew(std::uint64_t group, const GroupTraffic& told,
                            std::function<void(Result<GroupLease>)> answer) {
  traffic = told;
  record_.add("renews " + std::to_string(group));
  leases.push_back(std::move(answer));
}

void ManagerOnDemand::release(std::uint64_t group, const std::vector<std::string>& named) {
  lost = named;
  record_.add("releases " + std::to_string(group));
}

GroupDescriptor descriptor_of(std::uint32_t epoch, std::uint32_t ranks) {
  GroupDescriptor d;
  d.group = kGroup;
  d.epoch = epoch;
  d.job = "test";
  LaneDescriptor& lane = d.lanes.emplace_back();
  lane.window = 4;
  lane.segment_bytes = 1024;
  lane.levels = 1;
  lane.entries.assign(ranks, {.aggregator = {"aggregator1", 7471}, .aggregator_name = "aggregator1", .tokens = {}});
  return d;
}

const char* to_string(At state) {
  switch (state) {
    case At::resting:
      return "resting";
    case At::asking:
      return "asking";
    case At::joining:
      return "joining";
    case At::proposing:
      return "proposing";
    case At::in_network:
      return "in_network";
    case At::amending:
      return "amending";
    case At::freezing:
      return "freezing";
    case At::stopped:
      return "stopped";
  }
  return "?";
}

CoordinatorSettings Rig::usual() {
  CoordinatorSettings s;
  s.nranks = kRanks;
  s.hosts = {"alpha", "beta", "gamma"};
  s.link_rate = kLinkRate;
  s.rail = "rail-1";
  s.job = "test";
  s.use_trees = true;
  s.join_limit = 2s;
  s.answer_limit = 3s;
  s.begin_within = transport::Duration::max();
  s.retry_first = 200ms;
  s.retry_last = 1s;
  s.inquiry_limit = 1s;
  s.finalize_limit = 10s;
  return s;
}

Rig::Rig(CoordinatorSettings settings) : coordinator(output, &manager, std::move(settings)) {}

void Rig::bring_to(At state) {
  const auto form = [this] {
    answer(descriptor_of(1));
    from_all(joined());
  };
  switch (state) {
    case At::resting:
      bring_to(At::freezing);
      from_all(holdings({5}));
      break;
    case At::asking:
      start();
      break;
    case At::joining:
      start();
      answer(descriptor_of(1));
      break;
    case At::proposing:
      start();
      form();
      break;
    case At::in_network:
      start();
      form();
      from_all(next_operation(7));
      break;
    case At::amending:
      bring_to(At::in_network);
      (void)coordinator.amend("the amendment");
      break;
    case At::freezing:
      bring_to(At::in_network);
      from(1, lane_failed());
      break;
    case At::stopped:
      start();
      coordinator.stop();
      break;
  }
  (void)said();
}

void Rig::answer(Result<GroupDescriptor> answer) {
  if (manager.trees.empty()) throw std::logic_error("the manager was asked nothing");
  const auto respond = std::move(manager.trees.front());
  manager.trees.pop_front();
  respond(std::move(answer));
  forward_generation();
}

void Rig::answer_lease(Result<GroupLease> answer) {
  if (manager.leases.empty()) throw std::logic_error("the coordinator renewed no lease");
  const auto respond = std::move(manager.leases.front());
  manager.leases.pop_front();
  respond(std::move(answer));
}

void Rig::from_all(const ControlMessage& message) {
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) from(rank, message);
  forward_generation();
}

void Rig::wait(transport::Duration time) {
  for (const auto end = now + time; now < end;) coordinator.tick(now += std::min<transport::Duration>(10ms, end - now));
}

/// The ranks know the generation from the descriptor that they get.
void Rig::forward_generation() {
  for (const auto& [rank, message] : output.sent) {
    if (message.type == FrameType::descriptor) generation = message.epoch;
  }
}

ControlMessage Rig::not_joined(int stale) const {
  auto message = joined(stale);
  message.body = encode(LaneFailure{"aggregator1", "it refused"});
  return message;
}

ControlMessage Rig::cannot_join(int stale) const {
  auto message = joined(stale);
  message.value = kCannotJoin;
  message.body = encode(LaneFailure{"", "no device"});
  return message;
}

ControlMessage Rig::next_operation(std::uint64_t operation, int stale) const {
  auto message = of(FrameType::next_operation, stale);
  message.operation = operation;
  return message;
}

ControlMessage Rig::lane_failed(int stale, const std::string& aggregator) const {
  auto message = of(FrameType::lane_failed, stale);
  message.body = encode(LaneFailure{aggregator, "its connection broke"});
  return message;
}

ControlMessage Rig::holdings(const Holdings& prefixes, int stale) const {
  auto message = of(FrameType::holdings, stale);
  message.body = encode(prefixes);
  return message;
}

ControlMessage Rig::stalled(std::uint64_t operation, std::uint64_t kind) {
  return {.type = FrameType::stalled, .operation = operation, .value = kind, .body = "segment 1 of lane 0"};
}

ControlMessage Rig::progress(std::uint64_t operation, const Progress& progress) {
  return {.type = FrameType::progress, .operation = operation, .body = encode(progress)};
}

}  // namespace tributary::client
