#include "transport/packet/figures.h"

namespace tributary::transport::packet {
namespace {

// One word for each FrameReject.
constexpr std::array<std::string_view, 9> kFrameRejects{
    "magic", "version", "type", "payload_too_long", "dtype", "op", "collective", "lane", "flags"};
static_assert(static_cast<std::size_t>(FrameReject::flags) + 1 == kFrameRejects.size());

}  // namespace

PacketFigures figures_of(const PacketStatistics& from) {
  PacketFigures to{.frames_sent = from.frames_sent,
                   .frames_received = from.frames_received,
                   .frames_in_place = from.frames_in_place,
                   .packets_sent = from.packets_sent,
                   .packets_received = from.packets_received,
                   .bytes_sent = from.bytes_sent,
                   .bytes_received = from.bytes_received,
                   .packets_sent_again = from.packets_sent_again,
                   .packets_came_late = from.packets_came_late,
                   .repeats = from.repeats,
                   .marked = from.marked,
                   .timeouts = from.timeouts,
                   .stray = from.unknown_connection + from.senseless,
                   .no_room = from.no_room,
                   .peers_silent = from.peers_silent,
                   .accepted = from.accepted,
                   .refused_full = from.refused_full,
                   .displaced = from.displaced,
                   .cookies_wrong = from.cookies_wrong,
                   .resets_sent = from.resets_sent,
                   .resets_received = from.resets_received,
                   .forged = from.forged,
                   .unsealed = from.unsealed,
                   .connections = from.connections};
  static_assert(to.rejected_parts.size() == kPacketRejects);
  for (std::size_t i = 0; i < from.rejects.size(); ++i) {
    to.rejected += from.rejects[i];
    to.rejected_parts[i] = {to_string(static_cast<PacketReject>(i)), from.rejects[i]};
  }
  for (std::size_t i = 0; i < from.frame_rejects.size(); ++i) {
    to.frames_rejected[i] = {kFrameRejects[i], from.frame_rejects[i]};
  }
  return to;
}

}  // namespace tributary::transport::packet
