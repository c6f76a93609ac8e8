#include "client/communicator/second_way_use.h"

#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"

namespace tributary::client {

PeerWays SecondWayUse::ways() const {
  if (two_ways_ == nullptr) {
    return {.first = transport::io_way(shared_.transport),
            .io = dynamic_cast<transport::HasIoThreads*>(&shared_.transport)};
  }
  return {.first = shared_.transport,
          .second = &two_ways_->second_way(),
          .early_bytes_max = two_ways_->sent_early_bytes_max()};
}

void SecondWayUse::watch(PeerMesh& mesh, std::string device_address) {
  TRIBUTARY_ASSERT(mesh_ == nullptr, "rank {} watches a second mesh", shared_.rank());
  mesh_ = &mesh;
  device_address_ = std::move(device_address);
}

void SecondWayUse::tell_user(const std::string& whose, const std::string& reason, bool device_gone) const {
  if (!on_use || shared_.life.leaving()) return;  // ranks that leave close connections, too
  const Reason code = device_gone ? Reason::rdma_device_gone : Reason::rdma_connection_lost;
  if (const auto& record = shared_.settings.flight_record) record->noted(code);
  on_use("tributary: rank " + std::to_string(shared_.known_as()) + ": its connections to " + whose +
             " go over TCP from now on: " + coded(code, reason),
         device_gone);
}

void SecondWayUse::tell_others(std::uint64_t whom, const std::string& reason) {
  const ControlMessage message{
      .type = FrameType::second_way, .operation = shared_.rank(), .value = whom, .body = reason};
  shared_.rank() == 0 ? spread(message) : shared_.whole.tell_rank_0(message);
}

void SecondWayUse::broken_with(std::uint32_t peer, const std::string& reason) {
  if (!shared_.life.well() || shared_.life.left()) return;
  tell_user("rank " + std::to_string(shared_.known_as(peer)), reason, false);
  check_device();
  if (!device_gone_ && shared_.rank() < peer) tell_others(peer, reason);
}

void SecondWayUse::check_device() {
  if (two_ways_ == nullptr || device_gone_ || mesh_ == nullptr || device_address_.empty()) return;
  const Status there = two_ways_->first_way(device_address_);
  if (there) return;
  device_gone_ = true;
  const std::string& reason = there.error().message;
  tell_user("the other ranks", reason, true);
  for (std::uint32_t peer = 0; peer < shared_.settings.nranks; ++peer) mesh_->leave_first_way(peer, reason);
  tell_others(kNever, reason);
}

void SecondWayUse::spread(const ControlMessage& message) {
  TRIBUTARY_ASSERT(shared_.rank() == 0, "rank {} passes a message on, which is rank 0's part", shared_.rank());
  for (std::uint32_t rank = 0; rank < shared_.settings.nranks; ++rank) {
    if (rank != message.operation && (message.value == kNever || message.value == rank))
      shared_.whole.tell(rank, message);
  }
}

void SecondWayUse::on_word(const ControlMessage& message) {
  if (mesh_ == nullptr || !shared_.life.well() || shared_.life.left() || message.operation >= shared_.rank()) return;
  mesh_->leave_first_way(static_cast<std::uint32_t>(message.operation),
                         "rank " + std::to_string(message.operation) + " has left the first way: " + message.body);
}

Status SecondWayUse::may_reach_trees() const {
  if (two_ways_ == nullptr) return {};
  const Status there = two_ways_->first_way("");
  if (there) return {};
  return fail(Errc::unreachable, Reason::no_way_to_trees,
              "rank " + std::to_string(shared_.known_as()) + " has no way to aggregators: " + there.error().message);
}

}  // namespace tributary::client
