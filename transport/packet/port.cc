#include "transport/packet/port.h"

#include <algorithm>

namespace tributary::transport::packet {

bool PacketPort::send_frame(const PacketAddress& to, const FrameDatagram& frame) {
  std::array<std::byte, kPacketHeaderBytes + kFrameHeaderBytes> headers;
  const auto behind = std::ranges::copy(frame.packet_header, headers.begin()).out;
  std::ranges::copy(frame.frame_header, behind);
  return send(to, headers, frame.payload);
}

}  // namespace tributary::transport::packet
