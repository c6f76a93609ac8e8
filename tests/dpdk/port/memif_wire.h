#pragma once
// Two processes on one wire of shared memory: this process, and a process that answers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "tests/dpdk/port/rings.h"
#include "transport/dpdk/memif.h"

namespace tributary::transport::dpdk::test {

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
  void signal(int number) const { ::kill(pid_, number); }
  int end() {
    int status = 0;
    if (pid_ > 0) {
      ::kill(pid_, SIGCONT);
      ::kill(pid_, SIGTERM);
      ::waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

/// A wire with the answering program at its other end, and a port at this end.
class Memif : public ::testing::Test {
 protected:
  Memif() { std::filesystem::create_directory(folder); }
  ~Memif() override {
    port.reset();
    device.reset();
    echo.reset();
    std::filesystem::remove_all(folder);
  }
  /// `more` are further arguments of this process's device.
  void connect(const std::string& more) {
    const std::string common = ",socket-abstract=no,socket=" + socket;
    echo.emplace("net_memif0,role=server" + common);
    for (const auto end = Clock::now() + 20s; !std::filesystem::exists(socket) && Clock::now() < end;) {
      std::this_thread::sleep_for(10ms);  // the server must exist before its client
    }
    auto opened = Device::open(eal(lends_buffers("net_memif" + more)),
                               device_settings("net_memif0,role=client" + more + common, "10.9.0.1/24", "fd09::1/64"));
    ASSERT_TRUE(opened) << opened.error().message;
    device = std::move(*opened);
    port = DpdkPort::open(device, {}).value();
    // The first datagrams are lost while the two processes find each other.
    std::array<packet::ReceivedPacket, 64> into;
    const std::array<std::byte, 8> hello{};
    for (const auto end = Clock::now() + 20s; Clock::now() < end;) {
      static_cast<void>(port->send(there, hello, {}));
      port->flush();
      if (port->receive(into) > 0) return;
    }
    FAIL() << "no answer";
  }
  /// Receives all datagrams that still come.
  void drain() {
    std::array<packet::ReceivedPacket, 64> into;
    for (auto end = Clock::now() + 100ms; Clock::now() < end;) {
      if (port->receive(into) > 0) end = Clock::now() + 100ms;
    }
  }

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tributary-dpdk-memif-" + std::to_string(::getpid()));
  const std::string socket = folder / "wire.sock";
  const packet::PacketAddress there{ethernet::parse_ip("10.9.0.2").value(), 7471};
  std::optional<EchoProcess> echo;
  std::shared_ptr<Device> device;
  std::unique_ptr<DpdkPort> port;
};

}  // namespace tributary::transport::dpdk::test
