#include "client/communicator/path_report.h"

namespace tributary::client {

void describe_trees(const Trees* in_use, const std::string& reason, CommunicatorInfo& info) {
  info.in_network = in_use != nullptr;
  if (in_use == nullptr) {
    info.lanes = info.levels = info.window = info.segment_bytes = 0;
    if (!reason.empty()) info.reason = reason;
    return;
  }
  const GroupDescriptor& d = in_use->descriptor;
  info.epoch = d.epoch;
  info.lanes = static_cast<std::uint32_t>(d.lanes.size());
  info.levels = d.lanes[0].levels;
  info.window = d.lanes[0].window;
  info.segment_bytes = d.lanes[0].segment_bytes;
  info.reason = "in use";
}

std::string path_line(const CommunicatorInfo& info, const Trees* in_use, const std::string& host) {
  if (info.local)
    return "collectives in shared memory of host " + host + ", in-network reduction not needed: " + info.reason;
  if (in_use == nullptr) return "in-network reduction not in use: " + info.reason;
  return "in-network reduction in use: epoch " + std::to_string(info.epoch) + ", " + std::to_string(info.lanes) +
         " lane(s), tree depth " + std::to_string(info.levels) + ", window " + std::to_string(info.window) + " x " +
         std::to_string(info.segment_bytes) + " bytes, from operation " + std::to_string(in_use->terms.first_operation);
}

}  // namespace tributary::client
