// Measures the way to each aggregator: asks the manager for a group of one rank over it, and acts as this rank.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <memory>

#include "client/cli/doctor/lane_road.h"
#include "client/cli/doctor/measurement.h"
#include "client/cli/meter/lane_meter.h"
#include "client/cli/meter/own_host.h"
#include "client/cli/meter/reach.h"
#include "client/cli/meter/way.h"
#include "tributary/transport/link_rate.h"
#include "tributary/transport/tcp.h"
#include "tributary/transport/udp.h"
#include "tributary/transport/verbs.h"

namespace tributary::cli::doctor {
namespace {

using manager_client::ManagerClient;
using std::chrono::milliseconds;

constexpr milliseconds kFlushLimit{1000};
// Lengths of frames, in bytes, to try on a way where longer frames do not pass.
constexpr std::array<std::uint32_t, 2> kSmallFrames{1500, 1280};

meter::LaneShape shape_of(const GroupDescriptor& group, std::size_t lane) {
  return {.group = group.group,
          .epoch = group.epoch,
          .lane = static_cast<std::uint8_t>(lane),
          .window = group.lanes[lane].window,
          .segment_bytes = group.lanes[lane].segment_bytes};
}

/// Sends streams that fill the link, and measures their rates.
Status run_streams(meter::LaneMeter& meter, meter::Way& way) {
  for (const bool both : {false, true}) {
    if (way.stalled) break;
    const auto stream = meter::best_stream(meter, both, meter::kStreamTime);
    if (!stream) return std::unexpected(stream.error());
    way.processor = std::max(way.processor, stream->processor);
    way.stalled = stream->stalled;
    if (!way.stalled) (both ? way.bits_both : way.bits_to) = stream->bits_per_second;
  }
  return {};
}

void leave(transport::Transport& transport, meter::LaneMeter& meter) {
  if (meter.channel().closed()) return;
  meter.channel().send_copy(meter.leave_frame(), {});
  meter.channel().close_after_flush(kFlushLimit);
  const auto deadline = transport.now() + kFlushLimit;
  while (!meter.channel().closed() && transport.now() < deadline) transport.poll(milliseconds(5));
}

Status over_tcp(const LaneEntry& entry, const meter::LaneShape& shape, std::uint32_t frame_max, MeasuredWay& into) {
  const auto socket = meter::connect_to(entry.aggregator, meter::kConnectLimit, frame_max);
  if (!socket) return std::unexpected(socket.error());
  into.interface = meter::interface_of(*socket);
  into.mtu_here = meter::path_facts(*socket).mtu_here;
  const int copy = fcntl(socket->get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail(Errc::io, "this process has no descriptor left");
  transport::TcpTransport transport({.spin_max = {}});
  meter::LaneMeter meter(transport, shape);
  meter.attach(transport.adopt(copy, meter));
  Status measured = meter.join(encode_join(entry.tokens, {}), meter::kConnectLimit);
  if (measured) measured = meter::measure_messages(meter, into.way);
  const meter::PathFacts quiet = meter::path_facts(*socket);
  if (measured) measured = run_streams(meter, into.way);
  meter::add_facts(into.way, quiet, meter::path_facts(*socket));
  leave(transport, meter);
  return measured;
}

/// Measures over any transport. `at_quiet` runs between the messages and the streams.
template <class AtQuiet>
Status over(transport::Transport& transport, const LaneEntry& entry, const meter::LaneShape& shape, MeasuredWay& into,
            AtQuiet at_quiet) {
  meter::LaneMeter meter(transport, shape);
  meter.attach(transport.connect(entry.aggregator, meter, meter::kConnectLimit));
  Status measured = meter.join(encode_join(entry.tokens, {}), meter::kConnectLimit);
  if (measured) measured = meter::measure_messages(meter, into.way);
  at_quiet();
  if (measured) measured = run_streams(meter, into.way);
  leave(transport, meter);
  return measured;
}

Status over_udp(const LaneRoad& road, const LaneEntry& entry, const meter::LaneShape& shape, MeasuredWay& into) {
  transport::UdpTransport transport(transport::UdpSettings{.spin_max = {}, .keys = road.keys()});
  transport::UdpStatistics quiet;
  const Status measured = over(transport, entry, shape, into, [&] { quiet = transport.statistics(); });
  const transport::UdpStatistics full = transport.statistics();
  into.way.lost_to = meter::part_of(quiet.packets_sent_again, quiet.packets_sent);
  into.way.lost_full =
      meter::part_of(full.packets_sent_again - quiet.packets_sent_again, full.packets_sent - quiet.packets_sent);
  return measured;
}

/// The device sends lost packets again by itself, and its counts are those of the whole port: so there is no loss here.
Status over_verbs(const LaneRoad& road, const LaneEntry& entry, const meter::LaneShape& shape, MeasuredWay& into) {
  const auto transport =
      transport::VerbsTransport::create({.keys = road.keys(), .spin_max = {}, .rails = road.rails()});
  if (!transport) return std::unexpected(transport.error());
  return over(**transport, entry, shape, into, [] {});
}

/// The kernel's facts belong to a socket, which a sealed connection does not show.
Status over_sealed_tcp(const LaneRoad& road, const LaneEntry& entry, const meter::LaneShape& shape, MeasuredWay& into) {
  transport::TcpTransport transport({.spin_max = {}, .keys = road.keys()});
  return over(transport, entry, shape, into, [] {});
}

Status measure(const LaneRoad& road, const LaneEntry& entry, const meter::LaneShape& shape, std::uint32_t frame_max,
               MeasuredWay& into) {
  switch (road.kind()) {
    case LaneRoad::Kind::udp:
      return over_udp(road, entry, shape, into);
    case LaneRoad::Kind::verbs:
      return over_verbs(road, entry, shape, into);
    default:
      return road.keys() ? over_sealed_tcp(road, entry, shape, into) : over_tcp(entry, shape, frame_max, into);
  }
}

/// Returns the rate of the slower of this host's link and the aggregator's link. If only one rate is known, returns it.
double line_rate_of(const std::string& own_address, const ServiceReport::Aggregator& a) {
  const auto own = own_address.empty() ? 0 : transport::link_rate_of(own_address);
  if (own == 0 || a.line_rate == 0) return static_cast<double>(std::max(own, a.line_rate));
  return static_cast<double>(std::min(own, a.line_rate));
}

MeasuredWay way_to(const std::string& name, const Endpoint& at, const std::string& trouble) {
  MeasuredWay way;
  way.to = name;
  way.at = at;
  way.trouble = trouble;
  return way;
}

std::string mend_of(Errc code, const std::string& name) {
  if (code == Errc::denied)
    return "tributary doctor --measure --token-file FILE, with the job token or a tenant's token";
  if (code == Errc::unsupported)
    return "tributary doctor says under rdma what is missing; or set TRIBUTARY_TRANSPORT=tcp";
  if (code == Errc::bad_argument) return "install the manager in the version of this program";
  return "tributary aggregators " + name + "; journalctl -u tributary-aggregator, on its host";
}

std::vector<MeasuredWay> failed(const ServiceReport::Aggregator& a, const Error& error) {
  std::vector<MeasuredWay> ways;
  ways.push_back(way_to(a.name, a.at.empty() ? Endpoint{} : a.at.front(), error.message));
  ways.back().mend = mend_of(error.code, a.name);
  return ways;
}

/// Returns this host's address on a measured way; empty: not known.
std::string own_address(const LaneRoad& road, std::size_t lane, const MeasuredWay& way) {
  if (!road.rails().empty()) return road.rails()[lane % road.rails().size()];
  return transport::address_of_interface(way.interface).value_or("");
}

/// Measures each lane of one group. No frame is longer than `frame_max`; 0: only the path's MTU limits frames.
std::vector<MeasuredWay> measure_group(const LaneRoad& road, const GroupDescriptor& group,
                                       const ServiceReport::Aggregator& a, std::uint32_t frame_max) {
  std::vector<MeasuredWay> ways;
  for (std::size_t lane = 0; lane < group.lanes.size(); ++lane) {
    const LaneEntry& entry = group.lanes[lane].entries.front();
    MeasuredWay& way = ways.emplace_back(way_to(a.name, entry.aggregator, ""));
    const meter::LaneShape shape = shape_of(group, lane);
    if (const Status ok = measure(road, entry, shape, frame_max, way); !ok) {
      way.trouble = ok.error().message;
      way.mend = mend_of(Errc::unreachable, a.name);
    }
    way.line_rate = line_rate_of(own_address(road, lane, way), a);
  }
  return ways;
}

std::vector<MeasuredWay> measure_once(LaneRoad& road, ManagerClient& client, const ServiceReport::Aggregator& a,
                                      std::uint32_t frame_max) {
  const auto group = client.request_group({.job = "tributary-doctor",
                                           .hosts = {meter::own_host()},
                                           .lanes = 0,
                                           .window = meter::kWindow,
                                           .segment_bytes = meter::kSegmentBytes,
                                           .packet_security = road.security(),
                                           .exchange_key = road.exchange_key(),
                                           .aggregator = a.name});
  if (!group) return failed(a, group.error());
  std::vector<MeasuredWay> ways;
  if (group->descriptor.empty()) {
    ways = failed(a, {Errc::exhausted, group->descriptor.reason});
  } else if (const Status taken = road.take(group->descriptor); !taken) {
    ways = failed(a, taken.error());
  } else {
    ways = measure_group(road, group->descriptor, a, frame_max);
  }
  (void)client.delete_group(group->descriptor.group);  // if this fails, the group's lease ends
  return ways;
}

bool stalls(const std::vector<MeasuredWay>& ways) {
  return std::ranges::any_of(ways, [](const MeasuredWay& w) { return w.way.stalled; });
}

/// Measures one aggregator. If long frames get lost on the way, finds a shorter length that passes.
std::vector<MeasuredWay> measure_one(LaneRoad& road, ManagerClient& client, const ServiceReport::Aggregator& a) {
  std::vector<MeasuredWay> ways = measure_once(road, client, a, 0);
  for (const std::uint32_t frame : kSmallFrames) {
    if (!stalls(ways) || road.kind() != LaneRoad::Kind::tcp || road.keys()) return ways;
    const auto small = measure_once(road, client, a, frame);
    if (stalls(small) || small.size() != ways.size()) continue;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (!ways[i].way.stalled) continue;
      ways[i].way = small[i].way;
      ways[i].way.stalled = true;
      ways[i].way.mtu = frame;
    }
    return ways;
  }
  return ways;
}

/// Without names, the doctor measures each aggregator that may get groups now or soon. It measures a suspected one,
/// too: a way that loses packets is a cause of suspicion.
bool measured_unnamed(const ServiceReport::Aggregator& a) {
  return a.state != "expired" && a.state != "draining";
}

std::vector<ServiceReport::Aggregator> chosen(const ServiceReport& service, const std::vector<std::string>& names,
                                              std::vector<MeasuredWay>& left_out) {
  std::vector<ServiceReport::Aggregator> list;
  for (const auto& a : service.aggregators) {
    const bool named = std::ranges::find(names, a.name) != names.end();
    if (!named && (!names.empty() || !measured_unnamed(a))) continue;
    if (names.empty() && list.size() == kMeasuredMax) {
      left_out.push_back(way_to(
          a.name, {},
          "only the first " + std::to_string(kMeasuredMax) + " were measured; --measure " + a.name + " measures it"));
      continue;
    }
    list.push_back(a);
  }
  for (const std::string& name : names) {
    if (std::ranges::none_of(service.aggregators, [&](const auto& a) { return a.name == name; }))
      left_out.push_back(way_to(name, {}, "the manager knows no aggregator of this name"));
  }
  return list;
}

}  // namespace

std::vector<MeasuredWay> measure_aggregators(const ManagerOptions& options, const ServiceReport& service,
                                             const std::vector<std::string>& names) {
  std::vector<MeasuredWay> left_out, ways;
  if (service.url.empty() || !service.trouble.empty()) return {};
  auto client = connect(options);
  if (!client) return {};
  auto road = LaneRoad::of_environment();
  for (const auto& a : chosen(service, names, left_out)) {
    for (MeasuredWay& way : road ? measure_one(*road, *client, a) : failed(a, road.error()))
      ways.push_back(std::move(way));
  }
  std::ranges::move(left_out, std::back_inserter(ways));
  return ways;
}

}  // namespace tributary::cli::doctor
