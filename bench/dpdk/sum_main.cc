// The least that an aggregator does: receives contributions of float32, adds each to its slot, and answers with the
// slot. At the end it tells what each step has cost.
//   dpdk_sum_bench DEVICE ADDRESS/PREFIX PORT CORE [echo]
// With "echo" nothing is added: the datagram goes back as it is.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "dpdk/port.h"

namespace {

using namespace tributary::transport;

volatile std::sig_atomic_t over = 0;
constexpr std::size_t kSlots = 64;
constexpr std::size_t kHeaderBytes = 64;  // of the protocol above, which names the slot
constexpr std::size_t kFloatsMax = 2048;

std::uint64_t cycles() noexcept {
  return __builtin_ia32_rdtsc();
}

/// Cycles of one step, over all packets.
struct Step {
  const char* name;
  std::uint64_t spent = 0;
};

class Slots {
 public:
  std::span<const std::byte> add(std::span<const std::byte> payload) noexcept {
    auto& slot = slots_[next_++ % kSlots];
    const std::size_t count = std::min(payload.size() / sizeof(float), kFloatsMax);
    for (std::size_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, payload.data() + i * sizeof value, sizeof value);
      slot[i] += value;
    }
    return std::as_bytes(std::span(slot)).first(count * sizeof(float));
  }

 private:
  std::vector<std::array<float, kFloatsMax>> slots_{kSlots};
  std::size_t next_ = 0;
};

int serve(const char* name, const char* address, std::uint16_t udp_port, int core, bool echo) {
  auto eal = dpdk::Eal::start({.memory_bytes = 128U << 20U});
  if (!eal) return std::fprintf(stderr, "%s\n", eal.error().message.c_str()), 1;
  auto device = dpdk::Device::open(*eal, {.device = name, .addresses = {ethernet::parse_prefix(address).value()}});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  auto port = dpdk::DpdkPort::open(*device, {.udp_port = udp_port, .core = core}).value();
  Step receive{"receive, parse, verify"};
  Step sum{"sum"};
  Step send{"copy, checksum, headers"};
  Step flush{"hand over"};
  Slots slots;
  std::array<packet::ReceivedPacket, 64> into;
  std::array<std::span<const std::byte>, 64> results;
  std::uint64_t packets = 0;
  std::uint64_t bursts = 0;
  while (over == 0) {
    const std::uint64_t begin = cycles();
    const auto burst = std::span(into).first(port->receive(into));
    if (burst.empty()) {
      port->flush();
      continue;
    }
    const std::uint64_t received = cycles();
    for (std::size_t i = 0; i < burst.size(); ++i) {
      const auto payload = std::span<const std::byte>(burst[i].bytes).subspan(kHeaderBytes);
      results[i] = echo ? payload : slots.add(payload);
    }
    const std::uint64_t summed = cycles();
    for (std::size_t i = 0; i < burst.size(); ++i) {
      static_cast<void>(port->send(burst[i].from, burst[i].bytes.first(kHeaderBytes), results[i]));
    }
    const std::uint64_t sent = cycles();
    port->flush();
    const std::uint64_t flushed = cycles();
    receive.spent += received - begin;
    sum.spent += summed - received;
    send.spent += sent - summed;
    flush.spent += flushed - sent;
    packets += burst.size();
    ++bursts;
  }
  const double count = static_cast<double>(packets == 0 ? 1 : packets);
  std::printf("packets %llu, %.1f a burst; cycles a packet:", static_cast<unsigned long long>(packets),
              count / static_cast<double>(bursts == 0 ? 1 : bursts));
  for (const Step* step : {&receive, &sum, &send, &flush}) {
    std::printf(" %s %.0f;", step->name, static_cast<double>(step->spent) / count);
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 64;
  std::signal(SIGTERM, [](int) { over = 1; });
  std::signal(SIGINT, [](int) { over = 1; });
  const bool echo = count > 5 && std::string_view(arguments[5]) == "echo";
  return serve(arguments[1], arguments[2], static_cast<std::uint16_t>(std::atoi(arguments[3])), std::atoi(arguments[4]),
               echo);
}
