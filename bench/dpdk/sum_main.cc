// Does the least work of an aggregator: receives contributions of float32, adds up the contributions of all its
// children, and answers each child with the sum. At the end it prints the cost of each step.
//   dpdk_sum_bench DEVICE ADDRESS/PREFIX PORT CORE CHILDREN [BURST]
// CHILDREN is a power of two up to BURST; each datagram counts as a contribution of the next child. With 0 the program
// adds nothing, and sends the datagram back unchanged.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "transport/dpdk/memif.h"
#include "transport/dpdk/port.h"
#include "tributary/kernels/reduce.h"

namespace {

using namespace tributary::transport;

volatile std::sig_atomic_t over = 0;
constexpr std::size_t kSlots = 64;
constexpr std::size_t kHeaderBytes = 64;  // header of the protocol above, which names the slot
constexpr std::size_t kFloatsMax = 2048;

std::uint64_t cycles() noexcept {
  return __builtin_ia32_rdtsc();
}

/// Cycles of one step, over all packets.
struct Step {
  const char* name;
  std::uint64_t spent = 0;
};

/// Collects the contributions of all children, which stay in the buffers of one burst, and adds them when all have
/// come.
class Slots {
 public:
  explicit Slots(std::size_t children) : children_(children) {}
  [[nodiscard]] std::size_t children() const noexcept { return children_; }
  std::span<const std::byte> add(std::span<const packet::ReceivedPacket> contributions) noexcept {
    auto& slot = slots_[next_++ % kSlots];
    std::array<const void*, 64> inputs;
    std::size_t bytes = sizeof slot;
    for (std::size_t i = 0; i < contributions.size(); ++i) {
      const auto payload = contributions[i].bytes.subspan(kHeaderBytes);
      inputs[i] = payload.data();
      bytes = std::min(bytes, payload.size());
    }
    tributary::kernels::reduce(tributary::DType::float32, tributary::ReduceOp::sum,
                               std::span(inputs).first(contributions.size()), slot.data(), bytes / sizeof(float));
    return std::as_bytes(std::span(slot)).first(bytes);
  }

 private:
  const std::size_t children_;
  std::vector<std::array<float, kFloatsMax>> slots_{kSlots};
  std::size_t next_ = 0;
};

int serve(const char* name, const char* address, std::uint16_t udp_port, int core, std::size_t children,
          std::size_t burst_max) {
  auto eal = dpdk::Eal::start({.memory_bytes = 128U << 20U, .one_file = dpdk::lends_buffers(name)});
  if (!eal) return std::fprintf(stderr, "%s\n", eal.error().message.c_str()), 1;
  auto device = dpdk::Device::open(*eal, {.device = name, .addresses = {ethernet::parse_prefix(address).value()}});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  auto port = dpdk::DpdkPort::open(*device, {.udp_port = udp_port, .core = core}).value();
  Step receive{"receive, parse, verify"};
  Step sum{"sum"};
  Step send{"headers, copy, checksum"};
  Step flush{"hand over"};
  Slots slots(children);
  const std::size_t together = std::max<std::size_t>(children, 1);
  std::vector<packet::ReceivedPacket> into(burst_max);
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
      results[i] = std::span<const std::byte>(burst[i].bytes).subspan(kHeaderBytes);
    }
    // Only a short burst has contributions that are left over at its end; these go back unchanged.
    for (std::size_t i = 0; children > 0 && i + together <= burst.size(); i += together) {
      std::ranges::fill(std::span(results).subspan(i, together), slots.add(burst.subspan(i, together)));
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
  std::printf(" all %.0f cycles\n", static_cast<double>(receive.spent + sum.spent + send.spent + flush.spent) / count);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 6 || count > 7) return 64;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoul(arguments[i], nullptr, 10)); };
  const std::size_t children = number(5);
  const std::size_t burst = count > 6 ? number(6) : 64;
  if (burst == 0 || burst > 64 || children > burst || (children & (children - 1)) != 0) return 64;
  std::signal(SIGTERM, [](int) { over = 1; });
  std::signal(SIGINT, [](int) { over = 1; });
  return serve(arguments[1], arguments[2], static_cast<std::uint16_t>(number(3)), static_cast<int>(number(4)), children,
               burst);
}
