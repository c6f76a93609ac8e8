#include "client/cli/fabric/fabric_run.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "client/cli/fabric/rounds.h"
#include "client/cli/meter/echo.h"
#include "client/cli/meter/own_host.h"
#include "client/cli/meter/way.h"
#include "client/cli/perf/bench.h"
#include "tributary/transport/link_rate.h"
#include "tributary/transport/tcp.h"

namespace tributary::cli::fabric {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kArrivalLimit{3000};
constexpr milliseconds kServeLimit{15'000};

/// One rank's host and address. Each rank tells them to all other ranks.
struct Place {
  std::array<char, 64> host{};
  std::array<char, 64> address{};
  std::array<char, 16> interface{};
  std::array<std::byte, 32> secret{};  // rank 0's secret, with which the hosts prove themselves to each other
  double line_rate = 0;
  std::uint32_t port = 0;  // 0: this rank cannot listen
};

template <std::size_t N>
void put(std::array<char, N>& into, const std::string& text) {
  std::memcpy(into.data(), text.data(), std::min(text.size(), N - 1));
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// Returns this host's numeric address on the way to rank 0's host.
std::string address_towards(const std::string& master, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* raw = nullptr;
  if (master.empty() || getaddrinfo(master.c_str(), std::to_string(port).c_str(), &wanted, &raw) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(raw, &freeaddrinfo);
  const Socket socket(::socket(raw->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  std::array<char, NI_MAXHOST> text{};
  const bool known =
      socket.valid() && connect(socket.get(), raw->ai_addr, raw->ai_addrlen) == 0 &&
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr*>(&own), bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return known ? text.data() : "";
}

std::string own_address(const Launch& launch) {
  const std::string interfaces = variable("TRIBUTARY_IFNAME");
  if (const auto at = transport::address_of_interface(interfaces.substr(0, interfaces.find(',')))) return *at;
  return address_towards(launch.master_host, launch.master_port);
}

/// One rank's part of the measurement.
class Member {
 public:
  Member(const Launch& launch, OwnedComm comm)
      : launch_(launch), comm_(std::move(comm)), echo_(transport_, meter::kSegmentBytes) {}

  Result<std::optional<FabricReport>> run() {
    if (auto ok = tell_place(); !ok) return std::unexpected(ok.error());
    find_hosts();
    if (hosts_.size() < 2)
      return tributary::fail(Errc::bad_argument, "all ranks are on host " + std::string(places_[0].host.data()) +
                                                     ": start one on each of several hosts, by srun, mpirun or "
                                                     "tributary run --hosts");
    const Rounds rounds(static_cast<std::uint32_t>(hosts_.size()));
    for (std::uint32_t round = 0; round < rounds.count(); ++round) {
      const auto partner = number_ ? rounds.partner(round, *number_) : std::nullopt;
      for (const bool lower_sends : {true, false}) {
        if (partner) take_turn(*partner, round, lower_sends);
        if (auto ok = barrier(); !ok) return std::unexpected(ok.error());
      }
    }
    return collect(rounds.count());
  }

  Status end() {
    const auto s = tributary_comm_destroy(comm_.release());
    return s == TRIBUTARY_OK ? Status{} : std::unexpected(error_of(s, nullptr));
  }

 private:
  Status tell_place() {
    Place own;
    const std::string address = own_address(launch_);
    put(own.host, meter::own_host());
    put(own.address, address);
    if (launch_.rank == 0 && !random_bytes(own.secret)) return fail(Errc::io, "the system has no random bytes");
    if (auto listener = transport_.listen({address, 0}, echo_); listener && !address.empty()) {
      own.port = (*listener)->local().port;
      listener_ = std::move(*listener);
    }
    own.line_rate = static_cast<double>(transport::link_rate_of(address));
    places_.resize(launch_.ranks);
    return call(tributary_all_gather(&own, places_.data(), sizeof own, TRIBUTARY_UINT8, comm_.get(), nullptr));
  }

  void find_hosts() {
    std::map<std::string, std::uint32_t> seen;
    for (std::uint32_t rank = 0; rank < launch_.ranks; ++rank) {
      for (auto* text : {&places_[rank].host, &places_[rank].address}) text->back() = '\0';
      if (!seen.emplace(places_[rank].host.data(), rank).second) continue;
      if (rank == launch_.rank) number_ = static_cast<std::uint32_t>(hosts_.size());
      hosts_.push_back(rank);
    }
  }

  [[nodiscard]] const Place& place(std::uint32_t host) const { return places_[hosts_[host]]; }

  /// The proof for one connection of one round.
  [[nodiscard]] meter::EchoProof proof(std::uint32_t from, std::uint32_t to, std::uint32_t round) const {
    const std::array<std::uint32_t, 3> words{from, to, round};
    return hmac_sha256(places_[0].secret, std::as_bytes(std::span(words)));
  }

  void take_turn(std::uint32_t partner, std::uint32_t round, bool lower_sends) {
    if ((*number_ < partner) != lower_sends) {
      if (listener_) echo_.serve(proof(partner, *number_, round), kArrivalLimit, kServeLimit);
      return;
    }
    PairRecord& record = records_.emplace_back();
    record.from = *number_;
    record.to = partner;
    if (auto ok = measure(partner, round, record); !ok) put(record.trouble, ok.error().message);
  }

  Status measure(std::uint32_t partner, std::uint32_t round, PairRecord& record) {
    if (place(partner).port == 0) return fail(Errc::unreachable, "it has no address to listen at: TRIBUTARY_IFNAME");
    const auto socket = meter::connect_to(
        {place(partner).address.data(), static_cast<std::uint16_t>(place(partner).port)}, meter::kConnectLimit);
    if (!socket) return std::unexpected(socket.error());
    record.mtu_here = meter::path_facts(*socket).mtu_here;
    interface_ = meter::interface_of(*socket);
    const int copy = fcntl(socket->get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return fail(Errc::io, "this process has no descriptor left");
    transport::TcpTransport transport({.spin_max = {}});
    meter::LaneMeter meter(transport, {.window = meter::kWindow, .segment_bytes = meter::kSegmentBytes});
    meter.attach(transport.adopt(copy, meter));
    if (auto ok = meter.join(proof(record.from, partner, round), meter::kConnectLimit); !ok) return ok;
    if (auto ok = meter::measure_messages(meter, record.way); !ok) return ok;
    const meter::PathFacts quiet = meter::path_facts(*socket);
    if (!record.way.stalled) {
      const auto stream = meter::best_stream(meter, false, meter::kStreamTime);
      if (!stream) return std::unexpected(stream.error());
      record.way.processor = stream->processor;
      record.way.stalled = stream->stalled;
      if (!stream->stalled) record.way.bits_to = stream->bits_per_second;
    }
    meter::add_facts(record.way, quiet, meter::path_facts(*socket));
    return {};
  }

  Result<std::optional<FabricReport>> collect(std::uint32_t rounds) {
    records_.resize(rounds);  // the new records have equal host numbers: nothing was measured
    std::vector<PairRecord> all(launch_.rank == 0 ? std::size_t{rounds} * launch_.ranks : 0);
    const std::size_t bytes = records_.size() * sizeof(PairRecord);
    if (auto ok = call(tributary_gather(records_.data(), all.data(), bytes, TRIBUTARY_UINT8, 0, comm_.get(), nullptr));
        !ok)
      return std::unexpected(ok.error());
    if (launch_.rank != 0) return std::nullopt;
    FabricReport report;
    for (const std::uint32_t rank : hosts_)
      report.hosts.push_back(
          {.name = places_[rank].host.data(), .interface = {}, .line_rate = places_[rank].line_rate});
    report.hosts[0].interface = interface_;
    std::erase_if(all, [](const PairRecord& record) { return record.from == record.to; });
    for (PairRecord& record : all) record.trouble.back() = '\0';
    report.pairs = std::move(all);
    return report;
  }

  Status barrier() { return call(tributary_barrier(comm_.get(), nullptr)); }
  [[nodiscard]] Status call(tributary_status status) const {
    return status == TRIBUTARY_OK ? Status{} : std::unexpected(error_of(status, comm_.get()));
  }

  const Launch& launch_;
  OwnedComm comm_;
  transport::TcpTransport transport_{{.spin_max = {}}};  // the transport of echo_
  meter::Echo echo_;
  std::unique_ptr<transport::Listener> listener_;
  std::vector<Place> places_;            // by rank
  std::vector<std::uint32_t> hosts_;     // first rank of each host
  std::optional<std::uint32_t> number_;  // this host's number; none: another rank measures for this host
  std::vector<PairRecord> records_;
  std::string interface_;
};

}  // namespace

Result<std::optional<FabricReport>> run_fabric(const Launch& launch, const MeetWish& wish) {
  if (launch.ranks < 2) {
    return fail(
        Errc::bad_argument,
        "--fabric measures the hosts of a job: start it on each of them, by srun, mpirun or tributary run --hosts");
  }
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.path = "fallback";  // this command measures hosts, not trees
  auto comm = meet(launch, wish, config);
  if (!comm) return std::unexpected(comm.error());
  Member member(launch, std::move(*comm));
  auto report = member.run();
  if (!report) return report;
  if (auto ok = member.end(); !ok) return std::unexpected(ok.error());
  return report;
}

}  // namespace tributary::cli::fabric
