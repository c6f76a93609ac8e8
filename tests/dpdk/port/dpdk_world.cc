// The conformance suite over two devices that are wired to each other. The devices stay for all tests, because DPDK has
// names for only a few of them; each test makes new transports.
#include <cstdlib>

#include "tests/dpdk/port/rings.h"
#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/world.h"
#include "tributary/transport/dpdk.h"

namespace tributary::transport::test {
namespace {

std::shared_ptr<DpdkDevice> open_device(const std::string& name, const char* ipv4, const char* ipv6) {
  static const auto eal = dpdk::test::eal();
  // A transport that listens at two addresses has two ports.
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

/// Checks after all tests that the worlds with loss did lose packets.
class FaultsHappened final : public ::testing::Environment {
 public:
  void TearDown() override {
    if (lossy_worlds == 0) return;
    EXPECT_GT(sent_again, 0U) << "in " << lossy_worlds << " worlds that lose packets";
  }
  unsigned lossy_worlds = 0;
  std::uint64_t sent_again = 0;
};
FaultsHappened& faults_happened() {
  // GoogleTest owns this object.
  static auto* const one = static_cast<FaultsHappened*>(::testing::AddGlobalTestEnvironment(new FaultsHappened));
  return *one;
}
class DpdkWorld final : public World {
 public:
  /// `faults` has the form of TRIBUTARY_TEST_PACKET_FAULTS, which ports read when they are opened.
  DpdkWorld(std::string host, const std::string& faults, const DpdkSettings& settings)
      : host_(std::move(host)), server_(wire().server, settings), client_(wire().client, settings) {
    ::setenv(kFaults, faults.c_str(), 1);
  }
  ~DpdkWorld() override {
    const bool lossy = std::string_view(::getenv(kFaults)).contains("lost=");
    faults_happened().lossy_worlds += lossy ? 1 : 0;
    if (lossy)
      faults_happened().sent_again += server_.statistics().packets_sent_again + client_.statistics().packets_sent_again;
    ::unsetenv(kFaults);
  }
  DpdkWorld(const DpdkWorld&) = delete;
  DpdkWorld& operator=(const DpdkWorld&) = delete;
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
  static constexpr const char* kFaults = "TRIBUTARY_TEST_PACKET_FAULTS";
  std::string host_;
  DpdkTransport server_;
  DpdkTransport client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  static_cast<void>(faults_happened());  // made before the tests begin
  const auto world = [](const char* host, const std::string& faults, std::shared_ptr<LinkKeys> keys) {
    const DpdkSettings settings{
        .frames_queued_max = kFramesQueuedMax, .sleep_max = std::chrono::milliseconds(1), .keys = std::move(keys)};
    return [host, faults, settings] { return std::make_unique<DpdkWorld>(host, faults, settings); };
  };
  const std::string everything = "lost=20,repeated=10,overtaken=50,damaged=10";
  return {{"ipv4", world("10.5.0.1", "", nullptr)},
          {"ipv6", world("fd05::1", "", nullptr)},
          {"authenticated", world("10.5.0.1", "", sealed_keys(PacketSecurity::authenticate))},
          {"encrypted", world("fd05::1", "", sealed_keys(PacketSecurity::encrypt))},
          {"lost_1_in_100", world("10.5.0.1", "lost=10", nullptr)},
          {"everything_at_once", world("10.5.0.1", everything, nullptr)},
          {"encrypted_everything_at_once", world("10.5.0.1", everything, sealed_keys(PacketSecurity::encrypt))}};
}

}  // namespace tributary::transport::test
