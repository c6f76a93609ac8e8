// The metrics page. docs/operations/metrics.md has the same families as a table.
#include <span>

#include "aggregator/daemon/status.h"
#include "service-kit/metric_page.h"

namespace tributary::aggregator {
namespace {

using service::MetricPage;
using service::MetricType;

MetricPage::Histogram page_of(const TimeHistogram& times) {
  MetricPage::Histogram page{.upper_bounds = {},
                             .counts = {times.counts.begin(), times.counts.end()},
                             .sum = std::chrono::duration<double>(times.sum).count()};
  for (std::size_t number = 0; number + 1 < times.counts.size(); ++number)
    page.upper_bounds.push_back(static_cast<double>(TimeHistogram::upper_us(number)) / 1e6);
  return page;
}

/// A row of a table: a member of some statistics, and the metric that shows it.
template <class Statistics>
struct Figure {
  const char* name;
  const char* help;
  std::uint64_t Statistics::* value;
};

constexpr Figure<WorkerMetrics> kWorkerCounters[] = {
    {"joins_accepted_total", "Children that joined a lane.", &WorkerMetrics::joins_accepted},
    {"joins_refused_total", "Verified joins that were refused, for example because memory was short.",
     &WorkerMetrics::joins_refused},
    {"sessions_displaced_total", "Connections without a join that were closed because many others came.",
     &WorkerMetrics::sessions_displaced},
    {"lanes_formed_total", "Lanes whose children all joined, and whose parent was ready.",
     &WorkerMetrics::lanes_formed},
    {"lanes_failed_total", "Lanes that broke; their groups went on by fallback.", &WorkerMetrics::lanes_failed},
    {"lanes_ended_total", "Lanes that all children left in good order.", &WorkerMetrics::lanes_ended},
    {"contributions_total", "Contributions from children.", &WorkerMetrics::contributions},
    {"contribution_bytes_total", "Payload of contributions.", &WorkerMetrics::contribution_bytes},
    {"results_total", "Results to children.", &WorkerMetrics::results},
    {"result_bytes_total", "Payload of results.", &WorkerMetrics::result_bytes},
    {"segments_completed_total", "Segments whose result went to every child.", &WorkerMetrics::segments_completed},
    {"frames_dropped_total", "Duplicates and frames of another epoch: harmless.", &WorkerMetrics::frames_dropped},
    {"frames_refused_total", "Frames that broke the protocol and ended their connection.",
     &WorkerMetrics::frames_refused},
    {"asked_total", "Times that a child for which nothing came asked whether this aggregator lives.",
     &WorkerMetrics::asked},
    {"parents_silent_total", "Lanes that broke because the parent did not answer whether it lives.",
     &WorkerMetrics::parents_silent},
    {"faults_total", "Operations that ranks disagreed on.", &WorkerMetrics::faults},
    {"share_waits_total",
     "Rounds of turns in which a tenant had more to move than its share of the worker, each tenant for itself.",
     &WorkerMetrics::share_waits},
};

constexpr Figure<transport::TcpStatistics> kTransportCounters[] = {
    {"tcp_sent_bytes_total", "Bytes sent over TCP, with headers.", &transport::TcpStatistics::bytes_sent},
    {"tcp_received_bytes_total", "Bytes received over TCP, with headers.", &transport::TcpStatistics::bytes_received},
    {"tcp_pushes_total", "Times that a worker made the system send bytes that it kept back.",
     &transport::TcpStatistics::pushes},
    {"tcp_write_calls_total", "Calls to the system that write to TCP connections.",
     &transport::TcpStatistics::write_calls},
    {"tcp_read_calls_total", "Calls to the system that read from TCP connections.",
     &transport::TcpStatistics::read_calls},
    {"tcp_records_forged_total", "Sealed connections that ended because a record was changed on its way.",
     &transport::TcpStatistics::records_forged},
};

constexpr Figure<transport::VerbsStatistics> kVerbsCounters[] = {
    {"rdma_messages_sent_total", "Sends, each with one frame or several.", &transport::VerbsStatistics::messages_sent},
    {"rdma_messages_received_total", "Sends that arrived.", &transport::VerbsStatistics::messages_received},
    {"rdma_fetched_bytes_total", "Payload that the device read directly to its destination.",
     &transport::VerbsStatistics::bytes_fetched},
    {"rdma_copied_bytes_total", "Payload that travelled in sends, and was copied by a processor.",
     &transport::VerbsStatistics::bytes_copied},
    {"rdma_posts_total", "Lists of work requests handed to the device.", &transport::VerbsStatistics::posts},
    {"rdma_sleeps_total", "Times that a worker waited for the system; a busy worker never waits.",
     &transport::VerbsStatistics::sleeps},
    {"rdma_queue_pairs_extended_total", "Queue pairs that were made, and whose work is posted by ibv_wr_*.",
     &transport::VerbsStatistics::queue_pairs_extended},
    {"rdma_refused_full_total", "Connections refused because connections_max were open.",
     &transport::VerbsStatistics::refused_full},
    {"rdma_refused_unproved_total", "Connections refused because they did not prove that they belong to their group.",
     &transport::VerbsStatistics::refused_unproved},
    {"rdma_messages_forged_total", "Sealed connections that ended because a message was changed on its way.",
     &transport::VerbsStatistics::messages_forged},
    {"rdma_registrations_total", "Registrations of memory with a device.", &transport::VerbsStatistics::registrations},
    {"rdma_registration_hits_total", "Times that memory was registered already.",
     &transport::VerbsStatistics::registration_hits},
};
constexpr Figure<transport::VerbsStatistics> kVerbsGauges[] = {
    {"rdma_queue_pairs", "Queue pairs now.", &transport::VerbsStatistics::queue_pairs},
    {"rdma_completion_queues", "Completion queues now.", &transport::VerbsStatistics::completion_queues},
    {"rdma_memory_regions", "Memory regions now.", &transport::VerbsStatistics::memory_regions},
    {"rdma_memory_windows", "Memory windows now.", &transport::VerbsStatistics::memory_windows},
    {"rdma_registered_bytes", "Registered memory now.", &transport::VerbsStatistics::bytes_registered},
};

constexpr Figure<transport::ShmStatistics> kSharedCounters[] = {
    {"shm_sent_bytes_total", "Bytes sent through shared memory, with headers.", &transport::ShmStatistics::bytes_sent},
    {"shm_received_bytes_total", "Bytes received through shared memory, with headers.",
     &transport::ShmStatistics::bytes_received},
    {"shm_wakes_total", "Sleeping peers that were woken, each by a call to the system.",
     &transport::ShmStatistics::bells},
    {"shm_corrupt_total", "Connections closed because the other side wrote garbage to the shared memory.",
     &transport::ShmStatistics::corrupt},
    {"shm_in_place_total", "Payloads that were summed without a copy.", &transport::ShmStatistics::frames_in_place},
    {"shm_named_total", "Payloads that the other side read without a copy.", &transport::ShmStatistics::frames_named},
    {"shm_regions_mapped_total", "Ranges of other processes' memory that were mapped for reading.",
     &transport::ShmStatistics::regions_mapped},
    {"shm_regions_refused_total",
     "Ranges of other processes' memory that were not mapped: not sealed, too many, or more than map_max.",
     &transport::ShmStatistics::regions_refused},
};

constexpr Figure<transport::PacketFigures> kPacketCounters[] = {
    {"sent_bytes_total", "Bytes of the datagrams that were sent.", &transport::PacketFigures::bytes_sent},
    {"received_bytes_total", "Bytes of the datagrams that were received.", &transport::PacketFigures::bytes_received},
    {"sent_packets_total", "Datagrams that were sent.", &transport::PacketFigures::packets_sent},
    {"received_packets_total", "Datagrams that were received.", &transport::PacketFigures::packets_received},
    {"packets_sent_again_total", "Datagrams that were sent again: lost, or taken for lost.",
     &transport::PacketFigures::packets_sent_again},
    {"packets_marked_total", "Datagrams that came with the congestion mark.", &transport::PacketFigures::marked},
    {"packets_stray_total", "Datagrams that were dropped because they belong to no connection.",
     &transport::PacketFigures::stray},
    {"packets_forged_total", "Sealed datagrams that were dropped because their authenticator is wrong.",
     &transport::PacketFigures::forged},
    {"packets_unsealed_total", "Datagrams that were dropped because they are not sealed, but must be.",
     &transport::PacketFigures::unsealed},
    {"packets_repeated_total", "Datagrams that were dropped because they came before.",
     &transport::PacketFigures::repeats},
    {"packets_no_room_total", "Datagrams that were dropped because no memory was left for them.",
     &transport::PacketFigures::no_room},
    {"timeouts_total", "Times that no answer came in time, and packets were sent again.",
     &transport::PacketFigures::timeouts},
    {"peers_silent_total", "Connections that ended because the peer did not answer.",
     &transport::PacketFigures::peers_silent},
    {"refused_full_total", "Connections refused because connections_max were open.",
     &transport::PacketFigures::refused_full},
    {"displaced_total", "Half-open connections that were closed because newer ones came.",
     &transport::PacketFigures::displaced},
    {"cookies_wrong_total", "Openings whose cookie was made for another address, or is too old.",
     &transport::PacketFigures::cookies_wrong},
    {"resets_sent_total", "Answers to packets of connections that do not exist here.",
     &transport::PacketFigures::resets_sent},
    {"resets_received_total", "Answers of peers that a connection does not exist any more.",
     &transport::PacketFigures::resets_received},
};

constexpr Figure<transport::UdpStatistics> kUdpCounters[] = {
    {"udp_joined_sent_packets_total", "Datagrams that were sent in messages with several datagrams (UDP_SEGMENT).",
     &transport::UdpStatistics::joined_sent},
    {"udp_joined_received_packets_total", "Datagrams that came in messages with several datagrams (UDP_GRO).",
     &transport::UdpStatistics::joined_received},
    {"udp_joined_refused_packets_total", "Datagrams that were sent one by one because the system cut no messages.",
     &transport::UdpStatistics::joined_refused},
};

constexpr Figure<transport::DpdkStatistics> kDpdkCounters[] = {
    {"dpdk_sent_shared_packets_total", "Datagrams that share one copy of their payload.",
     &transport::DpdkStatistics::sent_shared},
    {"dpdk_frames_in_place_total", "Contributions that were summed in their packet buffers.",
     &transport::DpdkStatistics::frames_in_place},
    {"dpdk_frames_malformed_total",
     "Frames with wrong lengths or checksums, with options, fragments, or of other protocols.",
     &transport::DpdkStatistics::frames_malformed},
    {"dpdk_frames_foreign_total", "Frames for another station, address, VLAN or port.",
     &transport::DpdkStatistics::frames_foreign},
    {"dpdk_frames_control_total", "Frames of ARP, ICMP and neighbour discovery.",
     &transport::DpdkStatistics::frames_control},
    {"dpdk_frames_handed_over_total", "Frames that came to another worker's queue.",
     &transport::DpdkStatistics::frames_handed_over},
    {"dpdk_packets_unsent_no_buffer_total", "Datagrams that were sent later because no packet buffer was free.",
     &transport::DpdkStatistics::unsent_no_buffer},
    {"dpdk_packets_unsent_total",
     "Datagrams that were never sent: no route, no neighbour, or a device that took no packets for long.",
     &transport::DpdkStatistics::unsent},
};

void add_dpdk_device(MetricPage& page, const transport::DpdkDeviceStatistics& device) {
  page.counter("dpdk_device_received_packets_total", "Frames received, by the driver's count.",
               device.received_packets);
  page.counter("dpdk_device_received_bytes_total", "Bytes of frames received, by the driver's count.",
               device.received_bytes);
  page.counter("dpdk_device_sent_packets_total", "Frames sent, by the driver's count.", device.sent_packets);
  page.counter("dpdk_device_sent_bytes_total", "Bytes of frames sent, by the driver's count.", device.sent_bytes);
  page.begin(MetricType::counter, "dpdk_device_lost_total", "Frames that the device lost, by reason.", {"reason"});
  page.add(device.receive_missed, {"missed"});
  page.add(device.receive_errors, {"damaged"});
  page.add(device.receive_no_buffer, {"no_buffer"});
  page.add(device.send_errors, {"send"});
  page.begin(MetricType::counter, "dpdk_device_driver_total", "The driver's own counters of lost packets.", {"name"});
  for (const auto& [name, value] : device.others) page.add(value, {name});
  page.begin(MetricType::counter, "dpdk_answers_total", "Requests from the network that this host answered.", {"to"});
  page.add(device.arp_answered, {"arp"});
  page.add(device.ndp_answered, {"neighbour_solicitation"});
  page.add(device.echoes_answered, {"echo"});
  page.add(device.refusals_sent, {"unknown_port"});
  page.counter("dpdk_answers_limited_total", "Requests from the network that got no answer because too many came.",
               device.answers_limited);
  page.counter("dpdk_control_ignored_total", "ARP, ICMP and neighbour discovery frames that do not concern this host.",
               device.control_ignored);
  page.counter("dpdk_address_conflicts_total", "Times that another station said that it has this host's address.",
               device.address_conflicts);
  page.counter("dpdk_path_mtu_told_total", "Messages from routers that a packet is too long for its path.",
               device.path_mtu_told);
  page.counter("dpdk_neighbours_failed_total", "Neighbours that did not answer.", device.neighbours_failed);
  page.counter("dpdk_neighbours_moved_total", "Neighbours whose address moved to another station.",
               device.neighbours_moved);
  page.counter("dpdk_neighbours_full_total", "Neighbours for which no place was left in the table.",
               device.neighbours_full);
  page.gauge("dpdk_rules_wanted", "Rules that are needed to bring datagrams to their worker's queue.",
             device.rules_wanted);
  page.gauge("dpdk_rules_in_place", "Rules for workers' queues that the device has taken.", device.rules_in_place);
  page.gauge("dpdk_neighbours", "Neighbours that are known now.", device.neighbours);
  page.gauge("dpdk_buffers_in_use", "Packet buffers in use now.", device.buffers_in_use);
  page.gauge("dpdk_link_up", "1 while the link is up.", device.link_up ? 1 : 0);
  page.gauge("dpdk_huge_pages", "1 if packet buffers are in huge pages.", device.huge_pages ? 1 : 0);
}

std::vector<std::string> of_worker(std::size_t index) {
  return {std::to_string(index)};
}

void add_parts(MetricPage& page, std::span<const transport::PacketFigures::Part> parts, const std::string& worker) {
  for (const auto& part : parts) {
    if (part.reason.empty()) continue;  // the worker has no counts yet
    page.add(part.count, {worker, std::string(part.reason)});
  }
}

/// `each` calls its argument for every worker, and for the door if there is one, with the figures and the name.
template <class Each>
void add_packet_figures(MetricPage& page, const std::string& prefix, const Each& each) {
  for (const Figure<transport::PacketFigures>& counter : kPacketCounters) {
    page.begin(MetricType::counter, prefix + counter.name, counter.help, {"worker"});
    each([&](const transport::PacketFigures& of, const std::string& worker) { page.add(of.*counter.value, {worker}); });
  }
  const auto by_reason = [&](const char* name, const char* help, auto parts) {
    page.begin(MetricType::counter, prefix + name, help, {"worker", "reason"});
    each([&](const transport::PacketFigures& of, const std::string& worker) { add_parts(page, of.*parts, worker); });
  };
  by_reason("packets_rejected_total", "Datagrams that were dropped as garbage, as damaged or for their version.",
            &transport::PacketFigures::rejected_parts);
  by_reason("frames_rejected_total", "Connections that were closed because of an impossible frame.",
            &transport::PacketFigures::frames_rejected);
}

void add_udp(MetricPage& page, const std::vector<WorkerSnapshot>& workers) {
  const auto each = [&](const auto& add) {
    for (std::size_t i = 0; i < workers.size(); ++i) add(workers[i].udp, std::to_string(i));
  };
  add_packet_figures(page, "udp_", each);
  for (const Figure<transport::UdpStatistics>& counter : kUdpCounters) {
    page.begin(MetricType::counter, counter.name, counter.help, {"worker"});
    each([&](const transport::UdpStatistics& of, const std::string& worker) { page.add(of.*counter.value, {worker}); });
  }
  page.begin(MetricType::counter, "udp_packets_unsent_total",
             "Datagrams that the system did not take; the protocol sends them again if necessary.",
             {"worker", "reason"});
  each([&](const transport::UdpStatistics& of, const std::string& worker) { add_parts(page, of.unsent, worker); });
}

void add_rdma(MetricPage& page, const std::vector<WorkerSnapshot>& workers) {
  const auto add = [&](MetricType type, const auto& figure) {
    page.begin(type, figure.name, figure.help, {"worker"});
    for (std::size_t i = 0; i < workers.size(); ++i) {
      page.add(workers[i].verbs ? (*workers[i].verbs).*figure.value : 0, of_worker(i));
    }
  };
  for (const auto& counter : kVerbsCounters) add(MetricType::counter, counter);
  for (const auto& gauge : kVerbsGauges) add(MetricType::gauge, gauge);
}

/// Adds the figures of the workers and of the door, which has its own queue.
void add_dpdk(MetricPage& page, const DaemonStatus& status) {
  const auto each = [&](const auto& add) {
    for (std::size_t i = 0; i < status.workers.size(); ++i) add(status.workers[i].dpdk, std::to_string(i));
    if (status.dpdk_door) add(*status.dpdk_door, "door");
  };
  add_packet_figures(page, "dpdk_", each);
  for (const Figure<transport::DpdkStatistics>& counter : kDpdkCounters) {
    page.begin(MetricType::counter, counter.name, counter.help, {"worker"});
    each(
        [&](const transport::DpdkStatistics& of, const std::string& worker) { page.add(of.*counter.value, {worker}); });
  }
  page.begin(MetricType::counter, "dpdk_frames_dropped_total", "Received frames that were dropped, by reason.",
             {"worker", "reason"});
  each([&](const transport::DpdkStatistics& of, const std::string& worker) {
    for (const auto& [reason, count] : of.frames_dropped) {
      page.add(count, {worker, std::string(reason)});
    }
  });
}

void add_workers(MetricPage& page, const DaemonStatus& status) {
  const std::vector<WorkerSnapshot>& workers = status.workers;
  for (const Figure<WorkerMetrics>& counter : kWorkerCounters) {
    page.begin(MetricType::counter, counter.name, counter.help, {"worker"});
    for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].metrics.*counter.value, of_worker(i));
  }
  for (const Figure<transport::TcpStatistics>& counter : kTransportCounters) {
    page.begin(MetricType::counter, counter.name, counter.help, {"worker"});
    for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].tcp.*counter.value, of_worker(i));
  }
  if (status.shown.verbs) add_rdma(page, workers);
  for (const Figure<transport::ShmStatistics>& counter : kSharedCounters) {
    page.begin(MetricType::counter, counter.name, counter.help, {"worker"});
    for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].shm.*counter.value, of_worker(i));
  }
  page.begin(MetricType::gauge, "shm_connections", "Connections through shared memory now, to children and parents.",
             {"worker"});
  for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].shm.connections, of_worker(i));
  if (status.shown.udp) add_udp(page, workers);
  if (status.shown.dpdk) add_dpdk(page, status);
  page.begin(MetricType::gauge, "lanes_active", "Lanes that hold memory now.", {"worker"});
  for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].metrics.lanes_active, of_worker(i));
  page.begin(MetricType::gauge, "late_children",
             "Children that are late now: the other children of their lane wait for them most of the time.",
             {"worker"});
  for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].metrics.stragglers, of_worker(i));
  page.begin(MetricType::histogram, "lag_seconds",
             "Time of each contribution after the first one of its segment, in lanes with two or more children.",
             {"worker"});
  for (std::size_t i = 0; i < workers.size(); ++i) page.add_histogram(page_of(workers[i].metrics.lag), of_worker(i));
  page.begin(MetricType::histogram, "segment_seconds",
             "Time from the first contribution of each segment to its result, in lanes with two or more children.",
             {"worker"});
  for (std::size_t i = 0; i < workers.size(); ++i)
    page.add_histogram(page_of(workers[i].metrics.segment_time), of_worker(i));
  page.begin(MetricType::gauge, "sessions_open", "Children's connections now.", {"worker"});
  for (std::size_t i = 0; i < workers.size(); ++i) page.add(workers[i].sessions, of_worker(i));
}

void add_front_door(MetricPage& page, const FrontDoorCounts& counts) {
  page.counter("connections_accepted_total", "Connections that the front door accepted.", counts.accepted);
  page.counter("connections_joined_total", "Connections that showed a valid token.", counts.handed_over);
  page.gauge("connections_unjoined", "Connections now that have not shown a token yet.", counts.unjoined);
  page.begin(MetricType::counter, "connections_rejected_total", "Connections that did not become children, by reason.",
             {"reason"});
  const auto add = [&](const char* reason, std::uint64_t value) { page.add(value, {reason}); };
  add("denied", counts.denied);
  add("malformed", counts.malformed);
  add("timed_out", counts.timed_out);
  add("displaced", counts.displaced);
  add("over_limit", counts.over_limit);
  add("not_open", counts.not_open);
  add("gone", counts.gone);
}

void add_reasons(MetricPage& page, const DaemonStatus& status) {
  ReasonNumbers reasons = status.front_door.reasons;
  for (const auto& worker : status.workers) reasons += worker.metrics.reasons;
  page.begin(MetricType::counter, "reasons_total",
             "Joins that were refused, and lanes that broke, by the reason's code.", {"code"});
  reasons.for_each([&page](std::string_view code, std::uint64_t count) { page.add(count, {std::string(code)}); });
}

void add_tenants(MetricPage& page, const TenantCounts& counts) {
  page.gauge("tenants", "Tenants with connections now; all groups without a tenant count as one.", counts.tenants);
  page.gauge("joins_half_open", "Connections now whose token is valid and whose lane is not ready yet.",
             counts.half_open);
  page.begin(MetricType::counter, "tenant_joins_refused_total",
             "Joins that were refused because their tenant is at a limit, by limit.", {"limit"});
  const auto refused = [&](TenantLimit limit) { return counts.refused[static_cast<std::size_t>(limit)]; };
  page.add(refused(TenantLimit::connections), {"connections"});
  page.add(refused(TenantLimit::half_open), {"half_open"});
  page.add(refused(TenantLimit::joins_per_second), {"joins_per_second"});
}

void add_links(MetricPage& page, const LinkShareCounts& counts) {
  page.gauge("link_classes", "Classes of tenants on the links now, with link_shares.", counts.classes.classes);
  page.gauge("link_class_sharers", "Tenants now that share another tenant's class, because all classes are in use.",
             counts.classes.sharing);
  page.counter("link_class_refusals_total", "Changes of the links' classes that the kernel has refused.",
               counts.refusals);
}

void add_http(MetricPage& page, const DaemonStatus& status) {
  page.gauge("http_connections", "HTTP connections now.", status.http_connections);
  page.counter("http_connections_accepted_total", "HTTP connections that came.", status.http.accepted);
  page.counter("http_connections_displaced_total",
               "HTTP connections that were closed because http_connections_max newer ones came.",
               status.http.displaced);
  page.counter("http_answers_refused_total", "Pages that were not sent because too many other pages were being sent.",
               status.http.busy);
}

void add_manager(MetricPage& page, const DaemonStatus& status) {
  const ManagerLinkState& manager = status.manager;
  page.gauge("manager_registered", "1 while the manager knows this aggregator, by its last answer.",
             manager.registered ? 1 : 0);
  page.gauge("manager_key_known", "1 if this aggregator can verify tokens.", status.has_key ? 1 : 0);
  page.counter("manager_registrations_total", "Registrations that the manager accepted.", manager.registrations);
  page.counter("manager_renewals_total", "Lease renewals that the manager answered.", manager.renewals);
  page.counter("manager_failures_total", "Calls to the manager that failed.", manager.failures);
  if (!manager.last_answer) return;
  const std::chrono::duration<double> age = status.now - *manager.last_answer;
  page.gauge("manager_last_answer_age_seconds", "Time since the manager last answered.", age.count());
}

}  // namespace

MetricPage metrics_page(const DaemonStatus& status) {
  MetricPage page("tributary_aggregator_");
  page.begin(MetricType::gauge, "info", "Always 1; the labels describe this aggregator.",
             {"name", "version", "host_id"});
  page.add(1, {status.name, status.version, status.host_id});
  page.gauge("memory_limit_bytes", "Memory that lanes may reserve together.", status.memory_bytes_max);
  page.gauge("memory_reserved_bytes", "Memory that lanes have reserved.", status.memory_bytes_reserved);
  page.gauge("draining", "1 while this aggregator drains, and takes no new lanes.", status.draining.empty() ? 0 : 1);
  page.gauge("threads_stuck", "Threads whose loop has made no turn for too long.", status.stuck.size());
  page.begin(MetricType::gauge, "listen_live",
             "1 if connections can reach this address; 0 while the address or its device is away.", {"at"});
  for (const ListenPlace& place : status.listen) page.add(place.live ? 1 : 0, {to_string(place.at)});
  add_workers(page, status);
  if (status.shown.dpdk) add_dpdk_device(page, status.dpdk_device.value_or(transport::DpdkDeviceStatistics{}));
  add_front_door(page, status.front_door);
  add_reasons(page, status);
  add_tenants(page, status.tenants);
  add_links(page, status.links);
  add_http(page, status);
  add_manager(page, status);
  return page;
}

}  // namespace tributary::aggregator
