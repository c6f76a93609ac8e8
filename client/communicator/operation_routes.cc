#include "client/communicator/operation_routes.h"

#include <algorithm>

#include "client/communicator/path_report.h"
#include "client/operation/payload.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {

void OperationRoutes::prepare_memory(Operation& o) {
  settle_memory(o);
  // Where a host's leader speaks for it, the other ranks' transports never see the buffers.
  const bool stays_here = parts_.hosts.takes(o) && parts_.hosts.between() == nullptr;
  if (!o.direct && !stays_here) parts_.memory.keep_registered(o);
}

bool OperationRoutes::may_begin() const {
  return shared_.life.has_begun() && shared_.life.well() && !parts_.trees.holding();
}

Operation::State OperationRoutes::way_of(const Operation& o) const {
  using enum Operation::State;
  if (parts_.hosts.takes(o)) return by_hosts;
  const Collective collective = o.signature.collective;
  if (!parts_.trees.serve(o) || !in_network_capable(collective)) return fallback;
  if (shared_.settings.path == PathMode::in_network) return in_network;
  const std::uint64_t bytes = std::max(
      o.part_of_bytes, amount_in_all(collective, o.signature.count * o.element_bytes(), shared_.settings.nranks));
  return policy_.at(collective, bytes).path == tuning::Path::tree ? in_network : fallback;
}

void OperationRoutes::settle_memory(Operation& o) {
  if (o.direct) parts_.memory.settle(o, way_of(o) == Operation::State::in_network);
}

void OperationRoutes::begin(Operation& o) {
  switch (o.state) {
    case Operation::State::by_hosts:
      return parts_.hosts.level()->submit(o);
    case Operation::State::in_network:
      return parts_.trees.start(o);
    default:
      break;
  }
  const bool wants_tree = shared_.settings.path == PathMode::in_network && shared_.settings.nranks > 1;
  if (wants_tree && in_network_capable(o.signature.collective)) {
    return parts_.operations.finish(
        o, fail(Errc::unreachable, "TRIBUTARY_PATH=in-network, but there is no tree: " + shared_.info.reason));
  }
  run_remainder(o, {whole(o)});
}

void OperationRoutes::run_remainder(Operation& o, std::vector<Piece> pieces) {
  TRIBUTARY_ASSERT(o.input_whole(), "{} runs between the ranks before its input is there", to_string(o));
  parts_.traffic.run(o, std::move(pieces), [this, &o] { parts_.operations.fallback_ended(o); });
}

void OperationRoutes::account(const Operation& o, Operation::State way, bool success) {
  parts_.operations.touch(shared_.clock.now());
  if (!success) return;
  CommunicatorInfo& info = shared_.info;
  ++info.operations;
  const std::uint64_t bytes = payload_bytes(o.signature, shared_.settings.nranks);
  const bool by_hosts = way == Operation::State::by_hosts;
  if (by_hosts && parts_.hosts.between() != nullptr) return;  // a leader has it from the leaders' communicator
  std::uint64_t in_network = 0;
  if (by_hosts) {
    in_network = info.in_network ? bytes : 0;
  } else if (o.segments > 0) {
    in_network = static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(o.segments_in_network) /
                                            static_cast<double>(o.segments));
  }
  info.bytes_in_network += in_network;
  info.bytes_fallback += bytes - in_network;
}

std::string OperationRoutes::waits_for(const Operation& o) const {
  const std::string name = to_string(o);
  switch (o.state) {
    case Operation::State::in_network:
      return name + ", " + parts_.trees.waits_for(o);
    case Operation::State::by_hosts:
      return name + ", " + parts_.hosts.level()->waits_for();
    case Operation::State::queued:
      return name + ", segment 0 (not begun)";
    default:
      break;
  }
  return name + ", " + parts_.traffic.waits_for();
}

std::uint64_t OperationRoutes::steps(const Operation& o) const {
  return o.state == Operation::State::in_network ? o.segments_done
         : o.state == Operation::State::by_hosts ? parts_.hosts.level()->steps()
                                                 : parts_.traffic.round();
}

void OperationRoutes::report_path(const std::string& reason) {
  const Trees* const in_use = parts_.trees.in_use() ? parts_.trees.trees() : nullptr;
  CommunicatorInfo& info = shared_.info;
  info.local = parts_.shares_all_memory();
  describe_trees(in_use, reason, info);
  shared_.whole.path_changed(shared_.log_prefix() + path_line(info, in_use, shared_.settings.host_id));
}

}  // namespace tributary::client
