// Where other ranks are: asked for, told, and said of a rank that was lost.
#include <nlohmann/json.hpp>

#include "client/communicator/communicator.h"
#include "client/control/control_link.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::client {

using nlohmann::json;

void Communicator::ask_for_members() {
  if (const auto ranks = directory_.take_wanted(); !ranks.empty() && settings_.rank != 0)
    tell_rank_0({.type = FrameType::whereabouts, .body = json(ranks).dump()});
}

/// Rank 0.
void Communicator::answer_whereabouts(std::uint32_t from, const std::string& body) {
  const auto ranks = decode_ranks(body, settings_.nranks);
  if (!mesh_ || !ranks) return;
  send(from, {.type = FrameType::members,
              .body = members_to_json(directory_, *ranks).dump(-1, ' ', false, json::error_handler_t::replace)});
}

void Communicator::on_members(const std::string& body) {
  if (!mesh_ || error_ || failing_) return;
  try {
    for (const std::uint32_t rank : learn_members(directory_, json_or_discarded(body))) mesh_->found(rank);
  } catch (const std::exception&) {
    begin_failing({Errc::corrupt, "rank 0 sent a malformed table of members"});
  }
}

ControlMessage Communicator::report_of(const LostPeer& lost) const {
  return {.type = FrameType::abort,
          .value = static_cast<std::uint64_t>(Errc::peer_gone),
          .body = "rank " + std::to_string(known_as(settings_.rank)) + " lost its connection to rank " +
                  std::to_string(known_as(lost.peer)) + directory_.on_host(lost.peer) + ": " + lost.reason};
}

}  // namespace tributary::client
