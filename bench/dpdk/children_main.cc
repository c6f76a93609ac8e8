// All children of one lane in one thread, with the least that speaks the packet protocol: the network loses nothing, so
// nothing is sent again. What it spends on a packet is less than what an aggregator must, so that it does not hold one
// up: payloads never change, and their checksums are known before.
//   dpdk_children_bench DEVICE CORE SECONDS CHILDREN WINDOW SEGMENT_BYTES OUR_IP THEIR_IP THEIR_PORT THEIR_MAC
// Prints millions of results a second that came back. The first result's numbers are checked.
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "dpdk/device.h"
#include "ethernet/control_writer.h"
#include "packet/crc32c.h"
#include "packet/wire.h"
#include "tributary/protocol/frame.h"

namespace {

using namespace tributary;
using namespace tributary::transport;
using namespace tributary::transport::packet;
using Steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint16_t kBurst = 32;
constexpr std::size_t kHeads = kPacketHeaderBytes + kFrameHeaderBytes;

struct Child {
  std::uint64_t ours = 0, theirs = 0;  // names of the connection
  std::uint64_t cookie = 0;
  std::uint64_t number = 0, largest = 0, came = 0;  // of packets
  std::uint64_t received = 0;                       // bytes of the aggregator's stream
  std::uint64_t sequence = 0, results = 0;
};

struct Setting {
  std::uint32_t window = 0, segment_bytes = 0;
  ethernet::UdpFlow flow;
};

class Children {
 public:
  Children(dpdk::Device& device, std::size_t count, const Setting& setting)
      : device_(device), setting_(setting), headers_(setting.flow, {}), payload_(setting.segment_bytes), all_(count) {
    for (std::size_t i = 0; i < payload_.size() / sizeof(float); ++i) {
      const auto value = static_cast<float>(i % 1000);
      std::memcpy(payload_.data() + i * sizeof value, &value, sizeof value);
    }
    payload_sum_ = ethernet::partial_sum(payload_);
    suffix_ = Crc32cSuffix::of(payload_);
    frame_.type = FrameType::contribution;
    frame_.flags = frame_flags::kWantsResult;
    frame_.payload_bytes = setting.segment_bytes;
    frame_.dtype = DType::float32;
    frame_.count = setting.segment_bytes / sizeof(float);
    for (std::size_t i = 0; i < count; ++i) all_[i].ours = 0x10001 + i;
  }

  /// False: no answer.
  bool connect() {
    for (const auto end = Steady::now() + 5s; Steady::now() < end; std::this_thread::sleep_for(1ms)) {
      tell_where_we_are();
      bool all = true;
      for (Child& child : all_) {
        if (child.theirs != 0) continue;
        all = false;
        open(child);
      }
      flush();
      std::this_thread::sleep_for(1ms);
      take_all();
      if (all) return true;
    }
    return false;
  }

  std::uint64_t exchange(Steady::duration time) {
    const std::uint64_t before = results_;
    Steady::time_point told{};
    for (const auto end = Steady::now() + time; Steady::now() < end;) {
      if (Steady::now() - told > 100ms) {
        told = Steady::now();
        tell_where_we_are();
      }
      for (int turn = 0; turn < 64; ++turn) {
        take_all();
        contribute();
        flush();
      }
    }
    return results_ - before;
  }
  [[nodiscard]] bool wrong() const noexcept { return wrong_; }

 private:
  rte_mbuf* blank() { return ::rte_pktmbuf_alloc(device_.send_pool(0).get()); }
  void stage(rte_mbuf* mbuf, std::size_t bytes) {
    mbuf->data_len = static_cast<std::uint16_t>(bytes);
    mbuf->pkt_len = mbuf->data_len;
    staged_[staged_count_++] = mbuf;
  }
  /// What is not taken waits: this network loses nothing.
  void flush() {
    if (staged_count_ == 0) return;
    const std::uint16_t taken = ::rte_eth_tx_burst(device_.id(), 0, staged_.data(), staged_count_);
    staged_count_ = static_cast<std::uint16_t>(staged_count_ - taken);
    std::memmove(staged_.data(), staged_.data() + taken, staged_count_ * sizeof(rte_mbuf*));
  }
  void tell_where_we_are() {
    const auto& flow = setting_.flow;
    const ethernet::Station us{flow.from_mac, flow.from};
    for (const auto operation : {ethernet::ArpOperation::request, ethernet::ArpOperation::reply}) {
      rte_mbuf* const mbuf = staged_count_ < staged_.size() ? blank() : nullptr;
      if (mbuf == nullptr) return;
      const std::span out(rte_pktmbuf_mtod(mbuf, std::byte*), 128);
      stage(mbuf, ethernet::write_arp(out, 0, operation, us, {flow.to_mac, flow.to}, flow.to_mac));
    }
  }
  void open(Child& child) {
    rte_mbuf* const mbuf = staged_count_ < staged_.size() ? blank() : nullptr;
    if (mbuf == nullptr) return;
    auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
    auto* const body = at + headers_.bytes();
    const Handshake said{.connection = child.ours, .cookie = child.cookie, .credit = 1U << 20U, .datagram_bytes = 1472};
    std::memcpy(body + kPacketHeaderBytes, &said, sizeof said);
    encode({.type = PacketType::open, .connection = child.ours}, std::span<std::byte, kPacketHeaderBytes>(body, 64),
           std::span(body + kPacketHeaderBytes, sizeof said), {});
    const std::size_t bytes = kPacketHeaderBytes + sizeof said;
    headers_.write(at, bytes, ethernet::partial_sum({body, bytes}));
    stage(mbuf, headers_.bytes() + bytes);
  }

  void contribute() {
    for (std::size_t tried = 0; tried < all_.size() && staged_count_ < kBurst; ++tried) {
      Child& child = all_[next_];
      while (child.sequence < child.results + setting_.window && staged_count_ < kBurst) {
        rte_mbuf* const mbuf = blank();
        if (mbuf == nullptr) return;
        write(child, mbuf);
      }
      if (staged_count_ < kBurst) next_ = (next_ + 1) % all_.size();
    }
  }
  void write(Child& child, rte_mbuf* mbuf) {
    auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
    auto* const body = at + headers_.bytes();
    frame_.sequence = frame_.operation = child.sequence;
    const std::uint64_t before = child.came == 0 ? 0 : child.came - 1;
    PacketHeader header{.flags = child.came > 0 ? packet_flags::kAcks : std::uint16_t{0},
                        .connection = child.theirs,
                        .number = child.number++,
                        .bitmap = before >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << before) - 1,
                        .offset = static_cast<std::uint32_t>(child.sequence * (kFrameHeaderBytes + payload_.size())),
                        .received = static_cast<std::uint32_t>(child.received),
                        .credit = 1U << 20U,
                        .largest = static_cast<std::uint32_t>(child.largest)};
    header.payload_bytes = static_cast<std::uint16_t>(kFrameHeaderBytes + payload_.size());
    std::memcpy(body, &header, kPacketHeaderBytes);
    encode(frame_, std::span<std::byte, kFrameHeaderBytes>(body + kPacketHeaderBytes, kFrameHeaderBytes));
    std::uint32_t checksum = crc32c({body, offsetof(PacketHeader, checksum)});
    checksum = suffix_.behind(crc32c({body + kPacketHeaderBytes, kFrameHeaderBytes}, checksum));
    std::memcpy(body + offsetof(PacketHeader, checksum), &checksum, sizeof checksum);
    std::memcpy(body + kHeads, payload_.data(), payload_.size());
    headers_.write(at, kHeads + payload_.size(), ethernet::partial_sum({body, kHeads}) + payload_sum_);
    stage(mbuf, headers_.bytes() + kHeads + payload_.size());
    ++child.sequence;
  }

  void take_all() {
    std::array<rte_mbuf*, 64> burst;
    const std::uint16_t got = ::rte_eth_rx_burst(device_.id(), 0, burst.data(), 64);
    for (std::uint16_t i = 0; i < got; ++i) take(burst[i]);
    ::rte_pktmbuf_free_bulk(burst.data(), got);
  }
  void take(const rte_mbuf* mbuf) {
    const auto* const body = rte_pktmbuf_mtod(mbuf, const std::byte*) + headers_.bytes();
    if (mbuf->data_len < headers_.bytes() + kPacketHeaderBytes) return;
    PacketHeader header;
    std::memcpy(static_cast<void*>(&header), body, sizeof header);
    const std::uint64_t number = header.connection - 0x10001;
    if (header.magic != kPacketMagic || number >= all_.size()) return;
    Child& child = all_[number];
    if (header.type != PacketType::data) {
      Handshake said;
      std::memcpy(static_cast<void*>(&said), body + kPacketHeaderBytes, sizeof said);
      if (header.type == PacketType::challenge) child.cookie = said.cookie;
      if (header.type == PacketType::accept) child.theirs = said.connection;
      return;
    }
    if (child.came++ == 0 || header.number > child.largest) child.largest = header.number;
    if (header.payload_bytes == 0) return;
    const std::uint64_t offset = expand(header.offset, child.received);
    if (header.payload_bytes != kFrameHeaderBytes + payload_.size() || offset != child.received) {
      wrong_ |= offset >= child.received;  // else it was sent again for nothing
      return;
    }
    child.received += header.payload_bytes;
    if (child.results++ == 0) check(body + kHeads);
    ++results_;
  }
  void check(const std::byte* numbers) {
    for (std::size_t i = 0; i < payload_.size() / sizeof(float); ++i) {
      float value = 0;
      std::memcpy(&value, numbers + i * sizeof value, sizeof value);
      wrong_ |= value != static_cast<float>(i % 1000) * static_cast<float>(all_.size());
    }
  }

  dpdk::Device& device_;
  const Setting setting_;
  const ethernet::UdpTemplate headers_;
  std::vector<std::byte> payload_;
  ethernet::PartialSum payload_sum_ = 0;
  Crc32cSuffix suffix_;
  FrameHeader frame_;
  std::vector<Child> all_;
  std::size_t next_ = 0;
  std::array<rte_mbuf*, kBurst + 8> staged_{};
  std::uint16_t staged_count_ = 0;
  std::uint64_t results_ = 0;
  bool wrong_ = false;
};

ethernet::MacAddress parse_mac(const char* text) {
  rte_ether_addr mac{};
  ethernet::MacAddress parsed;
  if (::rte_ether_unformat_addr(text, &mac) == 0) std::memcpy(parsed.bytes.data(), mac.addr_bytes, 6);
  return parsed;
}

int run(char** a) {
  auto eal = dpdk::Eal::start({.memory_bytes = 128U << 20U});
  if (!eal) return std::fprintf(stderr, "%s\n", eal.error().message.c_str()), 1;
  const auto ours = ethernet::parse_ip(a[7]).value();
  auto device = dpdk::Device::open(*eal, {.device = a[1], .addresses = {{ours, 120}}});
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<unsigned>(std::atoi(a[2])), &cores);
  ::sched_setaffinity(0, sizeof cores, &cores);
  const Setting setting{.window = static_cast<std::uint32_t>(std::atoi(a[5])),
                        .segment_bytes = static_cast<std::uint32_t>(std::atoi(a[6])),
                        .flow = {.from_mac = (*device)->host().settings().mac,
                                 .to_mac = parse_mac(a[10]),
                                 .from = ours,
                                 .to = ethernet::parse_ip(a[8]).value(),
                                 .from_port = 5000,
                                 .to_port = static_cast<std::uint16_t>(std::atoi(a[9]))}};
  for (int wait = 0; wait < 100 && !(*device)->link_up(); ++wait) std::this_thread::sleep_for(50ms);
  if (!(*device)->link_up()) return std::fprintf(stderr, "nobody is at the other end\n"), 1;
  Children children(**device, static_cast<std::size_t>(std::atoi(a[4])), setting);
  if (!children.connect()) return std::fprintf(stderr, "no connection\n"), 1;
  static_cast<void>(children.exchange(500ms));
  const auto seconds = std::chrono::duration<double>(std::atof(a[3]));
  const std::uint64_t results = children.exchange(std::chrono::duration_cast<Steady::duration>(seconds));
  if (children.wrong()) return std::fprintf(stderr, "something came back that is wrong\n"), 1;
  std::printf("%.3f\n", static_cast<double>(results) / seconds.count() / 1e6);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 11) return 64;
  return run(arguments);
}
