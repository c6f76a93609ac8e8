#pragma once
#include "transport/packet/settings.h"
#include "tributary/transport/packet_figures.h"

namespace tributary::transport::packet {

/// Computes the figures for the users of a transport from the counts of its core.
[[nodiscard]] PacketFigures figures_of(const PacketStatistics& from);

}  // namespace tributary::transport::packet
