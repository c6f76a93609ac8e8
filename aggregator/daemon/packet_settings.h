#pragma once
// The settings that both transports of packets, UDP and DPDK, have.
#include <algorithm>
#include <cstdint>

#include "aggregator/daemon/settings.h"
#include "tributary/transport/channel.h"

namespace tributary::aggregator {

/// Fills the members that transport::UdpSettings and transport::DpdkSettings share.
template <class PacketTransportSettings>
void take_packet_settings(PacketTransportSettings& into, const Settings& settings) {
  into.connections_max = settings.connections_max;
  // The transport's own default is shorter than TCP's, so the setting is only an upper bound.
  into.keepalive = std::min<transport::Duration>(into.keepalive, settings.keepalive);
  into.peer_timeout = settings.packet_peer_timeout;
  into.delay_target = settings.packet_delay_target;
  into.window_initial = settings.packet_window_initial;
  into.window_max = settings.packet_window_max;
  into.ecn = settings.packet_ecn;
  into.dscp = static_cast<std::uint8_t>(settings.packet_dscp);
}

}  // namespace tributary::aggregator
