// Measures the way to each aggregator: asks the manager for a group of one rank over it, and acts as this rank.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "client/cli/doctor/measurement.h"
#include "client/cli/meter/lane_meter.h"
#include "client/cli/meter/own_host.h"
#include "client/cli/meter/reach.h"
#include "client/cli/meter/way.h"
#include "tributary/transport/link_rate.h"
#include "tributary/transport/tcp.h"
#include "tributary/transport/udp.h"

namespace tributary::cli::doctor {
namespace {

using manager_client::ManagerClient;
using std::chrono::milliseconds;

constexpr milliseconds kFlushLimit{1000};
// Lengths of frames, in bytes, to try on a way where longer frames do not pass.
constexpr std::array<std::uint32_t, 2> kSmallFrames{1500, 1280};

bool is_over_udp() {
  const char* const wanted = std::getenv("TRIBUTARY_TRANSPORT");
  return wanted != nullptr && std::string_view(wanted).starts_with("udp");
}

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

Status over_udp(const LaneEntry& entry, const meter::LaneShape& shape, MeasuredWay& into) {
  transport::UdpTransport transport(transport::UdpSettings{.spin_max = {}});
  meter::LaneMeter meter(transport, shape);
  meter.attach(transport.connect(entry.aggregator, meter, meter::kConnectLimit));
  Status measured = meter.join(encode_join(entry.tokens, {}), meter::kConnectLimit);
  if (measured) measured = meter::measure_messages(meter, into.way);
  const transport::UdpStatistics quiet = transport.statistics();
  if (measured) measured = run_streams(meter, into.way);
  const transport::UdpStatistics full = transport.statistics();
  leave(transport, meter);
  into.way.lost_to = meter::part_of(quiet.packets_sent_again, quiet.packets_sent);
  into.way.lost_full =
      meter::part_of(full.packets_sent_again - quiet.packets_sent_again, full.packets_sent - quiet.packets_sent);
  return measured;
}

/// Returns the rate of the slower of this host's link and the aggregator's link. If only one rate is known, returns it.
double line_rate_of(const std::string& interface, const ServiceReport::Aggregator& a) {
  const auto address = transport::address_of_interface(interface);
  const auto own = address ? transport::link_rate_of(*address) : 0;
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
  if (code == Errc::bad_argument) return "install the manager in the version of this program";
  return "tributary aggregators " + name + "; journalctl -u tributary-aggregator, on its host";
}

std::vector<MeasuredWay> failed(const ServiceReport::Aggregator& a, const Error& error) {
  std::vector<MeasuredWay> ways;
  ways.push_back(way_to(a.name, a.at.empty() ? Endpoint{} : a.at.front(), error.message));
  ways.back().mend = mend_of(error.code, a.name);
  return ways;
}

/// Measures each lane of one group. No frame is longer than `frame_max`; 0: only the path's MTU limits frames.
std::vector<MeasuredWay> measure_group(const GroupDescriptor& group, const ServiceReport::Aggregator& a,
                                       std::uint32_t frame_max) {
  std::vector<MeasuredWay> ways;
  for (std::size_t lane = 0; lane < group.lanes.size(); ++lane) {
    const LaneEntry& entry = group.lanes[lane].entries.front();
    MeasuredWay& way = ways.emplace_back(way_to(a.name, entry.aggregator, ""));
    const meter::LaneShape shape = shape_of(group, lane);
    const Status ok = is_over_udp() ? over_udp(entry, shape, way) : over_tcp(entry, shape, frame_max, way);
    if (!ok) {
      way.trouble = ok.error().message;
      way.mend = mend_of(Errc::unreachable, a.name);
    }
    way.line_rate = line_rate_of(way.interface, a);
  }
  return ways;
}

std::vector<MeasuredWay> measure_once(ManagerClient& client, const ServiceReport::Aggregator& a,
                                      std::uint32_t frame_max) {
  const auto group = client.request_group({.job = "tributary-doctor",
                                           .hosts = {meter::own_host()},
                                           .lanes = 0,
                                           .window = meter::kWindow,
                                           .segment_bytes = meter::kSegmentBytes,
                                           .aggregator = a.name});
  if (!group) return failed(a, group.error());
  const auto ways = group->descriptor.empty() ? failed(a, {Errc::exhausted, group->descriptor.reason})
                                              : measure_group(group->descriptor, a, frame_max);
  (void)client.delete_group(group->descriptor.group);  // if this fails, the group's lease ends
  return ways;
}

bool stalls(const std::vector<MeasuredWay>& ways) {
  return std::ranges::any_of(ways, [](const MeasuredWay& w) { return w.way.stalled; });
}

/// Measures one aggregator. If long frames get lost on the way, finds a shorter length that passes.
std::vector<MeasuredWay> measure_one(ManagerClient& client, const ServiceReport::Aggregator& a) {
  std::vector<MeasuredWay> ways = measure_once(client, a, 0);
  for (const std::uint32_t frame : kSmallFrames) {
    if (!stalls(ways) || is_over_udp()) return ways;
    const auto small = measure_once(client, a, frame);
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

std::vector<ServiceReport::Aggregator> chosen(const ServiceReport& service, const std::vector<std::string>& names,
                                              std::vector<MeasuredWay>& left_out) {
  std::vector<ServiceReport::Aggregator> list;
  for (const auto& a : service.aggregators) {
    const bool named = std::ranges::find(names, a.name) != names.end();
    if (!named && (!names.empty() || a.state != "active")) continue;
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
  for (const auto& a : chosen(service, names, left_out)) {
    for (MeasuredWay& way : measure_one(*client, a)) ways.push_back(std::move(way));
  }
  std::ranges::move(left_out, std::back_inserter(ways));
  return ways;
}

}  // namespace tributary::cli::doctor
