#pragma once
#include "packet/settings.h"
#include "tributary/transport/packet_figures.h"

namespace tributary::transport::packet {

/// What users of a transport are told of what its core counts.
[[nodiscard]] PacketFigures figures_of(const PacketStatistics& from);

}  // namespace tributary::transport::packet
