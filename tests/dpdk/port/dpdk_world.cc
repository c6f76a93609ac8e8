// The conformance suite over two devices that are wired to each other. They stay for all its tests: DPDK has names for
// a few of them only; each test has transports of its own.
#include "rings.h"
#include "tributary/transport/dpdk.h"
#include "world.h"

namespace tributary::transport::test {
namespace {

std::shared_ptr<DpdkDevice> open_device(const std::string& name, const char* ipv4, const char* ipv6) {
  static const auto eal = dpdk::test::eal();
  return DpdkDevice::open({.device = name, .addresses = {ipv4, ipv6}, .transports_per_queue = 2, .descriptors = 256})
      .value();
}

struct Wire {
  const std::array<std::string, 2> names = (static_cast<void>(dpdk::test::eal()), dpdk::test::wired_devices());
  const std::shared_ptr<DpdkDevice> server = open_device(names[0], "10.5.0.1/24", "fd05::1/64");
  const std::shared_ptr<DpdkDevice> client = open_device(names[1], "10.5.0.2/24", "fd05::2/64");
};

Wire& wire() {
  static Wire one;
  return one;
}

class DpdkWorld final : public World {
 public:
  explicit DpdkWorld(std::string host)
      : host_(std::move(host)), server_(wire().server, settings()), client_(wire().client, settings()) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }
  Endpoint server_address(std::uint16_t port) override { return {host_, port}; }
  Endpoint nowhere() override { return {host_, 9}; }
  bool run_until(const std::function<bool()>& done) override {
    const TimePoint limit = Clock::now() + std::chrono::seconds(30);
    while (!done()) {
      if (Clock::now() > limit) return false;
      server().poll({});
      client().poll({});
    }
    return true;
  }
  void settle() override {
    for (const TimePoint end = Clock::now() + std::chrono::milliseconds(20); Clock::now() < end;) {
      server().poll({});
      client().poll({});
    }
  }

 private:
  static DpdkSettings settings() {
    return {.frames_queued_max = kFramesQueuedMax, .sleep_max = std::chrono::milliseconds(1)};
  }
  std::string host_;
  DpdkTransport server_;
  DpdkTransport client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  const auto world = [](const char* host) { return [host] { return std::make_unique<DpdkWorld>(host); }; };
  return {{"ipv4", world("10.5.0.1")}, {"ipv6", world("fd05::1")}};
}

}  // namespace tributary::transport::test
