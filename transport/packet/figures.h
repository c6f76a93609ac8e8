#pragma once
#include "transport/packet/settings.h"
#include "tributary/transport/packet_figures.h"

namespace tributary::transport::packet {

/// The figures that users of a transport are told, from the counts of its core.
[[nodiscard]] PacketFigures figures_of(const PacketStatistics& from);

}  // namespace tributary::transport::packet
