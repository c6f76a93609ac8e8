// libtributary-dpdk.so: a rank's own DPDK device. A process has one device with one queue. All communicators share it
// from the first transport until the process ends, because DPDK cannot be started a second time.
#include <mutex>
#include <ranges>
#include <string_view>
#include <vector>

#include "client/api/dpdk_module.h"
#include "tributary/transport/dpdk.h"

namespace tributary::client {
namespace {

// The longest sleep of a rank's thread while no packet comes: the rank needs the processor. A device cannot wake it.
constexpr auto kSleep = std::chrono::microseconds(50);

// The most communicators and waiting unique ids at a time. Each of them has about 1500 packet buffers.
constexpr std::uint16_t kTransportsMax = 8;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(text, ',')) {
    if (!word.empty()) words.emplace_back(word.begin(), word.end());
  }
  return words;
}

struct Opened {
  std::mutex mutex;
  std::string name;
  std::shared_ptr<transport::DpdkDevice> device;
};

/// Returns the process's device. It is never destroyed, because transports may end while the process ends.
Opened& opened() {
  static Opened* const one = new Opened;
  return *one;
}

Result<std::unique_ptr<transport::Transport>> make(const DpdkRank& rank, const UdpRank& packets,
                                                   std::shared_ptr<transport::LinkKeys> keys) {
  Opened& one = opened();
  const std::lock_guard lock(one.mutex);
  if (one.device == nullptr) {
    auto made = transport::DpdkDevice::open({.device = rank.device,
                                             .addresses = split(rank.addresses),
                                             .gateways = split(rank.gateways),
                                             .transports_per_queue = kTransportsMax,
                                             .gpu = rank.gpu});
    if (!made) return std::unexpected(made.error());
    one.device = std::move(*made);
    one.name = rank.device;
  } else if (one.name != rank.device) {
    return fail(Errc::bad_config, "this process already uses the DPDK device " + one.name + ", and can use only one");
  }
  return std::make_unique<transport::DpdkTransport>(one.device,
                                                    transport::DpdkSettings{.peer_timeout = packets.peer_timeout,
                                                                            .delay_target = packets.delay_target,
                                                                            .ecn = packets.ecn,
                                                                            .dscp = packets.dscp,
                                                                            .sleep_max = kSleep,
                                                                            .keys = std::move(keys)});
}

std::vector<std::string> take_notes() {
  Opened& one = opened();
  const std::lock_guard lock(one.mutex);
  return one.device == nullptr ? std::vector<std::string>{} : one.device->take_notes();
}

}  // namespace
}  // namespace tributary::client

extern "C" [[gnu::visibility("default")]] const tributary::client::DpdkModule tributary_dpdk_module{
    {TRIBUTARY_VERSION_TEXT}, tributary::client::make, tributary::client::take_notes};
