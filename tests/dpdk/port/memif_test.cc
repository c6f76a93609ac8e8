// Two processes on one wire of shared memory.
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

/// A wire with the program at its other end, and a port at this one.
class Memif : public ::testing::Test {
 protected:
  Memif() { std::filesystem::create_directory(folder); }
  ~Memif() override {
    port.reset();
    device.reset();
    echo.reset();
    std::filesystem::remove_all(folder);
  }
  void connect(const std::string& name, const std::string& more) {
    const std::string common = ",socket-abstract=no,socket=" + socket;
    echo.emplace("net_memif0,role=server" + common);
    for (const auto end = Clock::now() + 20s; !std::filesystem::exists(socket) && Clock::now() < end;) {
      std::this_thread::sleep_for(10ms);  // a client wants its server to be there
    }
    auto opened =
        Device::open(eal(), device_settings(name + ",role=client" + more + common, "10.9.0.1/24", "fd09::1/64"));
    ASSERT_TRUE(opened) << opened.error().message;
    device = std::move(*opened);
    port = DpdkPort::open(device, {}).value();
    // The first ones are lost while the two find each other.
    std::array<packet::ReceivedPacket, 64> into;
    const std::array<std::byte, 8> hello{};
    for (const auto end = Clock::now() + 20s; Clock::now() < end;) {
      static_cast<void>(port->send(there, hello, {}));
      port->flush();
      if (port->receive(into) > 0) return;
    }
    FAIL() << "no answer";
  }
  /// Takes all that still comes.
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

/// The ring is filled while the other side sleeps, with packets of one buffer and of two, to each of the ways in which
/// a few places may be left.
TEST_F(Memif, WhatIsSentFromLentBuffersComesAsItWasInItsOrderAlsoWhenTheRingIsFull) {
  ASSERT_NO_FATAL_FAILURE(connect("net_memif1", ",zero-copy=yes"));
  const auto number_of = [](std::span<const std::byte> bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  };
  std::vector<std::byte> payload(512);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
  std::uint64_t next = 1;
  std::uint64_t last = 0;
  const auto send = [&](bool large) {
    std::array<std::byte, 8> head;
    std::memcpy(head.data(), &next, sizeof next);
    if (!port->send(there, head, large ? std::span<const std::byte>(payload) : std::span<const std::byte>{}))
      return false;
    ++next;
    return true;
  };
  for (unsigned alone = 0; alone < 7; ++alone) {
    drain();
    std::vector<bool> large(next + 4096);
    echo->signal(SIGSTOP);
    const std::uint64_t first = next;
    for (unsigned i = 0; i < alone; ++i) static_cast<void>(send(false));
    for (bool taken = true; taken;) {
      port->flush();
      for (unsigned i = 0; taken && i < 64; ++i) {
        large[next] = i % 4 != 3;
        taken = send(large[next]);
      }
    }
    ASSERT_GT(next, first + 256) << "the ring has a thousand places";
    echo->signal(SIGCONT);
    std::uint64_t answers = 0;
    std::array<packet::ReceivedPacket, 64> into;
    for (auto end = Clock::now() + 500ms; Clock::now() < end;) {
      port->flush();
      const std::size_t count = port->receive(into);
      for (const auto& packet : std::span(into).first(count)) {
        const std::uint64_t number = number_of(packet.bytes);
        ASSERT_GT(number, last);
        ASSERT_LT(number, next);
        ASSERT_EQ(packet.bytes.size(), large[number] ? 8 + payload.size() : 8);
        if (large[number]) {
          ASSERT_TRUE(std::ranges::equal(packet.bytes.subspan(8), payload));
        }
        last = number;
        ++answers;
      }
      if (count > 0) end = Clock::now() + 500ms;
    }
    EXPECT_GT(answers, 256U);
  }
  EXPECT_GT(port->statistics().sent_shared, 0U) << "packets of two buffers";
}

TEST_F(Memif, CarriesDatagramsBetweenTwoProcessesThatEndClean) {
  ASSERT_NO_FATAL_FAILURE(connect("net_memif0", ""));
  std::vector<std::byte> said(1024);
  unsigned answers = 0;
  for (const auto end = Clock::now() + 20s; answers < 1000 && Clock::now() < end;) {
    said[0] = static_cast<std::byte>(answers);
    for (int i = 0; i < 8; ++i) static_cast<void>(port->send(there, said, {}));
    port->flush();
    std::array<packet::ReceivedPacket, 64> into;
    for (const auto& packet : std::span(into).first(port->receive(into))) {
      EXPECT_TRUE(packet.bytes.size() == said.size() || packet.bytes.size() == 8);
      EXPECT_EQ(packet.from, there);
      ++answers;
    }
  }
  EXPECT_GE(answers, 1000U);
  EXPECT_GE(device->counters().received_packets, 1000U);
  port.reset();
  EXPECT_EQ(echo->end(), 0);
  std::filesystem::remove(socket);
  EXPECT_TRUE(std::filesystem::remove(folder)) << "a file was left in " << folder;
}

}  // namespace
}  // namespace tributary::transport::dpdk::test
