// Measures the cost of authentication, of encryption and of a checksum: makes and verifies one packet in a core's
// cache.
#include <benchmark/benchmark.h>
#include <x86intrin.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "transport/packet/seal.h"

namespace tributary::transport::packet {
namespace {

PacketHeader header_of(std::uint64_t number, std::size_t payload, bool sealed) {
  PacketHeader header;
  header.flags = sealed ? packet_flags::kSealed : std::uint16_t{0};
  header.payload_bytes = static_cast<std::uint16_t>(payload);
  header.connection = 1;
  header.number = number;
  return header;
}

void report(benchmark::State& state, std::uint64_t cycles, std::size_t payload) {
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["cycles_per_packet"] = static_cast<double>(cycles) / rounds;
  state.counters["cycles_per_byte"] = static_cast<double>(cycles) / rounds / static_cast<double>(payload);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(payload));
}

/// Level 0 is the checksum. `opening` measures the work of the receiver.
void seal(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto level = static_cast<PacketSecurity>(state.range(1));
  const bool opening = state.range(2) != 0;
  const bool sealed = level != PacketSecurity::off;
  const std::size_t head = kPacketHeaderBytes + (sealed ? kSealTagBytes : 0);
  const SealContext context{.level = sealed ? level : PacketSecurity::authenticate};
  Seal sender({}, context, true);
  Seal receiver({}, context, false);
  const std::vector<std::byte> payload(bytes, std::byte{3});
  std::vector<std::byte> datagram(head + bytes);
  std::uint64_t number = 0;
  std::uint64_t cycles = 0;
  for (auto _ : state) {
    const PacketHeader header = header_of(++number, bytes, sealed);
    std::memcpy(datagram.data(), &header, sizeof header);
    if (level != PacketSecurity::encrypt) std::memcpy(datagram.data() + head, payload.data(), bytes);
    const std::uint64_t begin = __rdtsc();
    if (!sealed) {
      encode(header, std::span(datagram).first<kPacketHeaderBytes>(), {}, payload);
    } else if (!sender.seal(number, std::span(datagram).first(head), payload, std::span(datagram).subspan(head))) {
      throw std::runtime_error("OpenSSL did not seal");
    }
    const std::uint64_t made = __rdtsc();
    if (opening) {
      const bool believed =
          sealed ? receiver.open(number, datagram) == Seal::Verdict::authentic : decode_packet(datagram).has_value();
      if (!believed) throw std::runtime_error("the sealed packet is refused");
      cycles += __rdtsc() - made;
    } else {
      cycles += made - begin;
    }
  }
  state.SetLabel(std::string(sealed ? to_string(level) : "checksum") + (opening ? ", receiver" : ", sender"));
  report(state, cycles, bytes);
}
BENCHMARK(seal)->ArgNames({"bytes", "security", "opening"})->ArgsProduct({{1024, 8192, 16384}, {0, 1, 2}, {0, 1}});

}  // namespace
}  // namespace tributary::transport::packet
