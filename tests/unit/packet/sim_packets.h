#pragma once
// A network of packet ports inside one thread, with virtual time and one seed. It loses, repeats, delays and damages
// datagrams, and each host is reached through a link with a rate and a queue that marks and overflows.
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "transport/packet/packet_transport.h"
#include "transport/random/random.h"

namespace tributary::transport::packet::test {

struct LinkSettings {
  double bytes_per_second = 1.25e9;  // rate towards each host
  std::size_t queue_bytes = 512 << 10;
  std::size_t mark_bytes = SIZE_MAX;  // bytes in the queue above which the network marks packets
  Duration latency = std::chrono::microseconds(10);
  Duration jitter = std::chrono::microseconds(2);  // greatest random delay; it does not change the order
  std::size_t datagram_bytes = 1472;
  std::size_t swallow_above = SIZE_MAX;  // longer datagrams are lost, although datagram_bytes allows them
  // Rates per thousand datagrams.
  std::uint32_t lost = 0, repeated = 0, overtaken = 0, damaged = 0;
};

struct LinkCounts {
  std::uint64_t sent = 0, dropped = 0, marked = 0, lost = 0, repeated = 0, overtaken = 0, damaged = 0;
};

class SimPackets {
 public:
  std::size_t kept = 0;  // number of buffers that all ports keep now
  std::size_t kept_max = 64;
  explicit SimPackets(std::uint64_t seed, const LinkSettings& link = {}) : random_(seed), link_(link) {}

  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  [[nodiscard]] PacketTransport::Time time() {
    return [this] { return now_; };
  }
  /// Returns a transport's opener of ports for host `number`, whose address is 10.0.0.number.
  [[nodiscard]] PacketTransport::OpenPort opener(std::uint8_t number);
  [[nodiscard]] static PacketAddress address(std::uint8_t number, std::uint16_t port);
  [[nodiscard]] static std::string host(std::uint8_t number) { return "10.0.0." + std::to_string(number); }

  /// Returns the time of the next arrival; max if no datagram is under way.
  [[nodiscard]] TimePoint next() const noexcept { return events_.empty() ? TimePoint::max() : events_.top().at; }
  void advance_to(TimePoint at);
  /// Polls the transports and lets time pass, until `done` or for `limit`.
  bool run_until(const std::vector<PacketTransport*>& transports, const std::function<bool()>& done, Duration limit);

  LinkSettings& link() noexcept { return link_; }
  [[nodiscard]] const LinkCounts& counts() const noexcept { return counts_; }
  /// The network calls this with each datagram, before any fault changes it.
  std::function<void(const PacketAddress& from, const PacketAddress& to, std::span<const std::byte> bytes)> watch;
  /// Tells the port at `to` that the path to `about` carries packets of `path_bytes`, with a quotation.
  void say_narrow(const PacketAddress& to, const PacketAddress& about, std::vector<std::byte> quoted,
                  std::uint32_t path_bytes);
  /// The path sizes that the test has told the ports.
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> believed;
  /// Returns the bytes that wait for a host now.
  [[nodiscard]] std::size_t queued(std::uint8_t number) const;

 private:
  friend class SimPort;
  struct Event {
    TimePoint at;
    std::uint64_t number;
    PacketAddress from, to;
    bool marked;
    bool refused;
    std::shared_ptr<std::vector<std::byte>> bytes;
    std::uint32_t path_bytes = 0;
    bool operator<(const Event& other) const noexcept { return at != other.at ? at > other.at : number > other.number; }
  };
  void send(const PacketAddress& from, const PacketAddress& to, std::vector<std::byte> bytes);
  void deliver(TimePoint at, const PacketAddress& from, const PacketAddress& to, bool marked,
               std::shared_ptr<std::vector<std::byte>> bytes, bool refused = false);
  [[nodiscard]] bool happens(std::uint32_t per_thousand) { return random_.below(1000) < per_thousand; }

  Random random_;
  LinkSettings link_;
  LinkCounts counts_;
  TimePoint now_{std::chrono::hours(1)};
  std::priority_queue<Event> events_;
  std::uint64_t events_made_ = 0;
  std::map<PacketAddress, class SimPort*> ports_;
  std::map<std::array<std::uint8_t, 16>, TimePoint> link_free_;
  std::map<std::pair<PacketAddress, PacketAddress>, TimePoint> last_arrival_;
  std::uint16_t next_port_ = 40000;
};

}  // namespace tributary::transport::packet::test
