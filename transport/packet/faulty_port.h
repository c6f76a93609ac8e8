#pragma once
// A port that wraps another port. It loses, repeats, delays and damages packets that are sent, by a seed, for tests of
// whole processes on networks without such faults.
#include <cstdint>
#include <memory>
#include <string_view>

#include "transport/packet/port.h"

namespace tributary::transport::packet {

/// Shares, per thousand of the packets sent.
struct PortFaults {
  std::uint32_t lost = 0, repeated = 0, overtaken = 0, damaged = 0;
  std::uint64_t seed = 1;
};

/// Parses a text such as "lost=10,repeated=10,overtaken=50,damaged=5,seed=1", which may leave out parts.
/// Errc::bad_config names the wrong part.
[[nodiscard]] Result<PortFaults> parse_port_faults(std::string_view text);
[[nodiscard]] std::unique_ptr<PacketPort> make_faulty(std::unique_ptr<PacketPort> port, const PortFaults& faults);
/// Adds the faults that `told` names, or else the faults in TRIBUTARY_TEST_PACKET_FAULTS. Returns the port unchanged if
/// both are empty.
[[nodiscard]] Result<std::unique_ptr<PacketPort>> with_faults(std::unique_ptr<PacketPort> port, std::string_view told);

}  // namespace tributary::transport::packet
