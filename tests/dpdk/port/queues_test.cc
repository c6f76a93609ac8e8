// Several queues, each with its own port and UDP port, or several ports at one queue. A datagram reaches its port, by
// any queue, and also if another port takes it from the queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "tests/dpdk/port/rings.h"

namespace tributary::transport::dpdk::test {
namespace {

TEST(Queues, HandOverPacketsThatCameToTheWrongQueue) {
  const auto names = wired_devices(2);
  auto settings = device_settings(names[0], "10.8.0.1/24", "fd08::1/64");
  settings.queues = 2;
  const auto server = Device::open(eal(), settings).value();
  settings = device_settings(names[1], "10.8.0.2/24", "fd08::2/64");
  settings.queues = 2;
  const auto client = Device::open(eal(), settings).value();
  std::array<std::unique_ptr<DpdkPort>, 2> servers;
  std::array<std::unique_ptr<DpdkPort>, 2> clients;
  for (std::uint16_t queue = 0; queue < 2; ++queue) {
    servers[queue] =
        DpdkPort::open(server, {.udp_port = static_cast<std::uint16_t>(7000 + queue), .queue = queue}).value();
    clients[queue] = DpdkPort::open(client, {.queue = queue}).value();
  }
  // A frame stays in its ring: frames of client 0 come to server 0, with any UDP port.
  std::array<unsigned, 2> got{};
  const packet::PacketAddress to_other{ethernet::parse_ip("10.8.0.1").value(), 7001};
  const std::array<std::byte, 4> word{};
  for (unsigned sent = 0; sent < 20; ++sent) ASSERT_TRUE(clients[0]->send(to_other, word, {}));
  for (const auto end = Clock::now() + std::chrono::seconds(5); got[1] < 20 && Clock::now() < end;) {
    std::array<packet::ReceivedPacket, 64> into;
    for (std::size_t i = 0; i < 2; ++i) {
      static_cast<void>(clients[i]->receive(into));
      clients[i]->flush();
      got[i] += static_cast<unsigned>(servers[i]->receive(into));
    }
  }
  EXPECT_EQ(got[0], 0U);
  EXPECT_EQ(got[1], 20U);
  EXPECT_EQ(servers[0]->statistics().handed_over, 20U);
}

/// Two hosts on a wire. Each has one queue, which this many ports share.
struct SharedQueues {
  static constexpr std::uint16_t kSharers = 3;
  static constexpr std::uint16_t kFirstPort = 7000;
  static std::shared_ptr<Device> open(const std::string& name, const char* ipv4, const char* ipv6) {
    auto settings = device_settings(name, ipv4, ipv6);
    settings.ports_per_queue = kSharers;
    return Device::open(eal(), settings).value();
  }
  const std::array<std::string, 2> names = wired_devices();
  const std::shared_ptr<Device> server = open(names[0], "10.9.0.1/24", "fd09::1/64");
  const std::shared_ptr<Device> client = open(names[1], "10.9.0.2/24", "fd09::2/64");
  std::vector<std::unique_ptr<DpdkPort>> servers, clients;
  SharedQueues() {
    for (std::uint16_t i = 0; i < kSharers; ++i) {
      servers.push_back(DpdkPort::open(server, {.udp_port = static_cast<std::uint16_t>(kFirstPort + i)}).value());
      clients.push_back(DpdkPort::open(client, {}).value());
    }
  }
  static packet::PacketAddress address_of(std::size_t port) {
    return {ethernet::parse_ip("10.9.0.1").value(), static_cast<std::uint16_t>(kFirstPort + port)};
  }
};

TEST(SharedQueues, HaveABoundedNumberOfPortsAndRoomAgainWhenOneHasGone) {
  SharedQueues rig;
  const auto refused = DpdkPort::open(rig.server, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("3 ports use it, and no more may"));
  rig.servers[1].reset();
  EXPECT_TRUE(DpdkPort::open(rig.server, {.udp_port = 7001}));
}

TEST(SharedQueues, GiveEachPortItsOwnPacketsWhicheverPortReceivesThem) {
  SharedQueues rig;
  std::array<std::array<unsigned, 3>, 3> got{};  // datagrams by server and client
  constexpr unsigned kEach = 20;
  for (unsigned sent = 0; sent < kEach; ++sent) {
    for (std::size_t from = 0; from < 3; ++from) {
      const std::array<std::byte, 1> name{static_cast<std::byte>(from)};
      for (std::size_t to = 0; to < 3; ++to) ASSERT_TRUE(rig.clients[from]->send(rig.address_of(to), name, {}));
    }
  }
  for (const auto end = Clock::now() + std::chrono::seconds(5); Clock::now() < end;) {
    std::array<packet::ReceivedPacket, 64> into;
    unsigned all = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      static_cast<void>(rig.clients[i]->receive(into));
      rig.clients[i]->flush();
      const std::size_t count = rig.servers[i]->receive(into);
      for (const auto& one : std::span(into).first(count)) ++got[i].at(std::to_integer<std::size_t>(one.bytes[0]));
      for (const unsigned each : got[i]) all += each;
    }
    if (all == 9 * kEach) break;
  }
  for (const auto& by_client : got) EXPECT_THAT(by_client, testing::Each(kEach));
}

TEST(SharedQueues, AreUsedByOneAtATime) {
  SharedQueues rig;
  std::array<packet::ReceivedPacket, 64> into;
  const std::array<std::byte, 4> word{};
  const auto arrives = [&](Duration limit) {
    for (const auto end = Clock::now() + limit; Clock::now() < end;) {
      if (rig.servers[0]->receive(into) > 0) return true;
      rig.servers[0]->flush();
      static_cast<void>(rig.clients[1]->receive(into));  // the answer of the neighbour serves all ports
    }
    return false;
  };
  constexpr auto kSoon = std::chrono::seconds(5);
  constexpr auto kNever = std::chrono::milliseconds(50);
  const auto send = [&] {
    EXPECT_TRUE(rig.clients[0]->send(rig.address_of(0), word, {}));
    rig.clients[0]->flush();
  };
  send();
  for (const auto end = Clock::now() + kSoon; Clock::now() < end && rig.servers[0]->receive(into) == 0;) {
    rig.servers[0]->flush();
    static_cast<void>(rig.clients[0]->receive(into));
    rig.clients[0]->flush();
  }

  std::unique_lock receiving(rig.server->turns(0)->receive);  // as if another port's thread were receiving
  send();
  EXPECT_FALSE(arrives(kNever));
  receiving.unlock();
  EXPECT_TRUE(arrives(kSoon));

  std::unique_lock sending(rig.client->turns(0)->send);
  std::thread sender(send);
  EXPECT_FALSE(arrives(kNever));
  sending.unlock();
  EXPECT_TRUE(arrives(kSoon));
  sender.join();
}

// Runs a thread for each port, like communicators. Every datagram comes once or not at all (a ring may be full), at
// the port to which it was sent, and whole; most of them come.
TEST(SharedQueues, ServePortsOfSeveralThreadsAtOnce) {
  SharedQueues rig;
  constexpr std::uint32_t kEach = 20'000;
  constexpr std::uint32_t kUnderWay = 32;  // so few that hardly any datagram is lost
  std::array<std::atomic<std::uint32_t>, 3> received{};
  std::atomic<std::size_t> sending = 3;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      std::array<packet::ReceivedPacket, 64> into;
      std::vector<bool> seen(kEach);
      while (sending.load() > 0) {
        const std::size_t count = rig.servers[i]->receive(into);
        for (const auto& one : std::span(into).first(count)) {
          std::array<std::uint32_t, 2> said{};
          ASSERT_EQ(one.bytes.size(), sizeof said);
          std::memcpy(said.data(), one.bytes.data(), sizeof said);
          ASSERT_EQ(said[0], i);
          ASSERT_LT(said[1], kEach);
          ASSERT_FALSE(seen[said[1]]) << "twice";
          seen[said[1]] = true;
          ++received[i];
        }
        if (count == 0) std::this_thread::yield();
        rig.servers[i]->flush();
      }
    });
    threads.emplace_back([&, i] {
      std::array<packet::ReceivedPacket, 64> into;
      auto waiting_since = Clock::now();
      std::uint32_t lost = 0;
      for (std::uint32_t number = 0; number < kEach;) {
        static_cast<void>(rig.clients[i]->receive(into));
        if (number - received[i].load() - lost < kUnderWay) {
          const std::array<std::uint32_t, 2> said{static_cast<std::uint32_t>(i), number};
          if (rig.clients[i]->send(rig.address_of(i), std::as_bytes(std::span(said)), {})) ++number;
          waiting_since = Clock::now();
        } else if (Clock::now() - waiting_since > std::chrono::milliseconds(200)) {
          lost = number - received[i].load();
        } else {
          std::this_thread::yield();
        }
        rig.clients[i]->flush();
      }
      for (const auto end = Clock::now() + std::chrono::milliseconds(500); Clock::now() < end;) {
        static_cast<void>(rig.clients[i]->receive(into));
        rig.clients[i]->flush();
      }
      --sending;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : received) EXPECT_GT(count.load(), kEach * 9 / 10);
}

TEST(SharedQueues, ReportARefusalToThePortThatItConcerns) {
  SharedQueues rig;
  std::array<packet::ReceivedPacket, 64> into;
  const std::array<std::byte, 4> word{};
  ASSERT_TRUE(rig.clients[2]->send(rig.address_of(77), word, {}));  // no process uses this port
  bool refused = false;
  for (const auto end = Clock::now() + std::chrono::seconds(5); !refused && Clock::now() < end;) {
    rig.clients[2]->flush();
    EXPECT_EQ(rig.clients[0]->receive(into), 0U);  // the first port to take the datagrams that have come
    rig.clients[0]->flush();
    const std::size_t count = rig.clients[2]->receive(into);
    for (const auto& one : std::span(into).first(count)) refused = refused || one.refused;
    static_cast<void>(rig.servers[0]->receive(into));
    rig.servers[0]->flush();
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace tributary::transport::dpdk::test
