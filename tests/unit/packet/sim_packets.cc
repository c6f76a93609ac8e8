#include "tests/unit/packet/sim_packets.h"

#include <algorithm>
#include <cstdlib>
#include <deque>

namespace tributary::transport::packet::test {

class SimPort final : public PacketPort {
 public:
  SimPort(SimPackets& network, const PacketAddress& local) : network_(network), local_(local) {
    network_.ports_[local_] = this;
  }
  ~SimPort() override { network_.ports_.erase(local_); }
  SimPort(const SimPort&) = delete;
  SimPort& operator=(const SimPort&) = delete;

  std::size_t receive(std::span<ReceivedPacket> into) override {
    held_.clear();
    std::size_t count = 0;
    for (; count < into.size() && !arrived_.empty(); ++count) {
      held_.push_back(arrived_.front());
      arrived_.pop_front();
      const auto& event = held_.back();
      into[count] = {.from = event.from,
                     .bytes = *event.bytes,
                     .congestion_experienced = event.marked,
                     .refused = event.refused,
                     .path_bytes = event.path_bytes,
                     .arrived = event.at,
                     .buffer = event.bytes.get()};
    }
    return count;
  }
  bool keep(void* buffer) noexcept override {
    const auto at = std::ranges::find_if(held_, [=](const auto& event) { return event.bytes.get() == buffer; });
    if (at == held_.end() || network_.kept >= network_.kept_max) return false;
    kept_.push_back(at->bytes);
    ++network_.kept;
    return true;
  }
  void give_back(void* buffer) noexcept override {
    const auto at = std::ranges::find_if(kept_, [=](const auto& bytes) { return bytes.get() == buffer; });
    if (at == kept_.end()) std::abort();
    --network_.kept;
    const auto bytes = std::move(*at);
    kept_.erase(at);
    const auto same = [&](const auto& other) { return other == bytes; };
    const bool shown = std::ranges::any_of(held_, [&](const auto& event) { return event.bytes == bytes; });
    if (shown || std::ranges::any_of(kept_, same)) return;
    std::ranges::fill(*bytes, std::byte{0xEE});  // makes a later read return wrong bytes
  }
  bool send(const PacketAddress& to, std::span<const std::byte> header, std::span<const std::byte> payload) override {
    if (header.size() > kPortHeaderBytesMax) throw std::logic_error("header too long");
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    queued_.emplace_back(to, std::move(bytes));
    return true;
  }
  void flush() override {
    for (auto& [to, bytes] : queued_) network_.send(local_, to, std::move(bytes));
    queued_.clear();
  }
  void wait(Duration /*limit*/) override {}
  void wake() noexcept override {}
  std::size_t datagram_bytes_max(const PacketAddress& to) override {
    constexpr std::size_t kHeaders = 28;
    const auto told = network_.believed.find(to.ip);
    if (told == network_.believed.end()) return network_.link().datagram_bytes;
    return std::min<std::size_t>(network_.link().datagram_bytes, told->second - kHeaders);
  }
  void believe_path(const PacketAddress& to, std::uint32_t bytes) override { network_.believed[to.ip] = bytes; }
  PacketAddress local() const override { return local_; }

  void arrive(const SimPackets::Event& event) { arrived_.push_back(event); }

 private:
  SimPackets& network_;
  PacketAddress local_;
  std::deque<SimPackets::Event> arrived_;
  std::deque<SimPackets::Event> held_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> kept_;
  std::vector<std::pair<PacketAddress, std::vector<std::byte>>> queued_;
};

PacketAddress SimPackets::address(std::uint8_t number, std::uint16_t port) {
  PacketAddress address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, number};
  address.port = port;
  return address;
}

PacketTransport::OpenPort SimPackets::opener(std::uint8_t number) {
  return [this, number](const Endpoint& at) -> Result<std::unique_ptr<PacketPort>> {
    const std::uint16_t port = at.port != 0 ? at.port : next_port_++;
    const PacketAddress local = address(number, port);
    if (ports_.contains(local)) return fail(Errc::io, "the address is in use.");
    return std::make_unique<SimPort>(*this, local);
  };
}

std::size_t SimPackets::queued(std::uint8_t number) const {
  const auto at = link_free_.find(address(number, 0).ip);
  if (at == link_free_.end() || at->second <= now_) return 0;
  return static_cast<std::size_t>(std::chrono::duration<double>(at->second - now_).count() * link_.bytes_per_second);
}

void SimPackets::send(const PacketAddress& from, const PacketAddress& to, std::vector<std::byte> bytes) {
  ++counts_.sent;
  if (watch) watch(from, to, bytes);
  if (bytes.size() > link_.datagram_bytes) throw std::logic_error("a datagram longer than the path carries");
  if (bytes.size() > link_.swallow_above || happens(link_.lost)) {
    ++counts_.lost;
    return;
  }
  const std::size_t waiting = queued(to.ip[15]);
  if (waiting + bytes.size() > link_.queue_bytes) {
    ++counts_.dropped;
    return;
  }
  const bool marked = waiting > link_.mark_bytes;
  counts_.marked += marked ? 1 : 0;
  TimePoint& free = link_free_[to.ip];
  const auto on_wire = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes.size()) / link_.bytes_per_second));
  free = std::max(free, now_) + on_wire;
  TimePoint at = free + link_.latency + Duration(random_.below(static_cast<std::uint64_t>(link_.jitter.count()) + 1));
  TimePoint& last = last_arrival_[{from, to}];
  if (happens(link_.overtaken)) {
    ++counts_.overtaken;
    at += link_.latency + Duration(random_.below(static_cast<std::uint64_t>(link_.latency.count()) * 3));
  } else {
    at = last = std::max(at, last);
  }
  if (happens(link_.damaged)) {
    ++counts_.damaged;
    const std::size_t where = random_.below(bytes.size());
    bytes[where] ^= static_cast<std::byte>(1 + random_.below(255));
  }
  auto shared = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  if (happens(link_.repeated)) {
    ++counts_.repeated;
    deliver(at + Duration(random_.below(50'000)), from, to, marked, std::make_shared<std::vector<std::byte>>(*shared));
  }
  deliver(at, from, to, marked, std::move(shared));
}

void SimPackets::deliver(TimePoint at, const PacketAddress& from, const PacketAddress& to, bool marked,
                         std::shared_ptr<std::vector<std::byte>> bytes, bool refused) {
  events_.push({at, events_made_++, from, to, marked, refused, std::move(bytes)});
}

void SimPackets::say_narrow(const PacketAddress& to, const PacketAddress& about, std::vector<std::byte> quoted,
                            std::uint32_t path_bytes) {
  events_.push({now_, events_made_++, about, to, false, true,
                std::make_shared<std::vector<std::byte>>(std::move(quoted)), path_bytes});
}

void SimPackets::advance_to(TimePoint at) {
  now_ = std::max(now_, at);
  while (!events_.empty() && events_.top().at <= now_) {
    const Event event = events_.top();
    events_.pop();
    if (const auto port = ports_.find(event.to); port != ports_.end()) {
      port->second->arrive(event);
    } else if (!event.refused) {
      deliver(now_ + link_.latency, event.to, event.from, false, event.bytes, true);
    }
  }
}

bool SimPackets::run_until(const std::vector<PacketTransport*>& transports, const std::function<bool()>& done,
                           Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    if (now_ >= end) return false;
    std::size_t callbacks = 0;
    TimePoint next = end;
    for (PacketTransport* transport : transports) callbacks += transport->poll({});
    for (PacketTransport* transport : transports) next = std::min(next, transport->next_deadline());
    if (callbacks == 0) advance_to(std::max(std::min(next, this->next()), now_ + Duration(100)));
  }
  return true;
}

}  // namespace tributary::transport::packet::test
