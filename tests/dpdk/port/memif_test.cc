// Two processes on one wire of shared memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "rings.h"

namespace tributary::transport::dpdk::test {
namespace {

using namespace std::chrono_literals;

/// The program that answers every datagram with itself.
class EchoProcess {
 public:
  explicit EchoProcess(const std::string& device) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::execl(TRIBUTARY_DPDK_ECHO, "echo", device.c_str(), "10.9.0.2/24", "7471", nullptr);
    ::_exit(127);
  }
  ~EchoProcess() { end(); }
  EchoProcess(const EchoProcess&) = delete;
  EchoProcess& operator=(const EchoProcess&) = delete;
  int end() {
    int status = 0;
    if (pid_ > 0) {
      ::kill(pid_, SIGTERM);
      ::waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

TEST(Memif, CarriesDatagramsBetweenTwoProcessesThatEndClean) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tributary-dpdk-memif-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string socket = folder / "wire.sock";
  const std::string common = ",socket-abstract=no,socket=" + socket;
  EchoProcess echo("net_memif0,role=server" + common);
  for (const auto end = Clock::now() + 20s; !std::filesystem::exists(socket) && Clock::now() < end;) {
    std::this_thread::sleep_for(10ms);  // a client wants its server to be there
  }
  auto settings = device_settings("net_memif0,role=client" + common, "10.9.0.1/24", "fd09::1/64");
  const auto opened = Device::open(eal(), settings);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto& device = *opened;
  auto port = DpdkPort::open(device, {}).value();
  const packet::PacketAddress there{ethernet::parse_ip("10.9.0.2").value(), 7471};
  std::vector<std::byte> said(1024);
  unsigned answers = 0;
  for (const auto end = Clock::now() + 20s; answers < 1000 && Clock::now() < end;) {
    // The first ones are lost while the two find each other.
    said[0] = static_cast<std::byte>(answers);
    for (int i = 0; i < 8; ++i) static_cast<void>(port->send(there, said, {}));
    port->flush();
    std::array<packet::ReceivedPacket, 64> into;
    for (const auto& packet : std::span(into).first(port->receive(into))) {
      EXPECT_EQ(packet.bytes.size(), said.size());
      EXPECT_EQ(packet.from, there);
      ++answers;
    }
  }
  EXPECT_GE(answers, 1000U);
  EXPECT_GE(device->counters().received_packets, 1000U);
  port.reset();
  EXPECT_EQ(echo.end(), 0);
  std::filesystem::remove(socket);
  EXPECT_TRUE(std::filesystem::remove(folder)) << "a file was left in " << folder;
}

}  // namespace
}  // namespace tributary::transport::dpdk::test
