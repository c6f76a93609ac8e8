// The table of the settings.
#include <algorithm>
#include <array>
#include <ranges>

#include "aggregator/daemon/settings.h"
#include "aggregator/daemon/traffic_control.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/link_rate.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::aggregator {

using service::list_entries;
using service::field::wrong;
namespace {

constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
constexpr std::size_t kPathBytesMax = 4096;

Status check_name(std::string_view name) {
  if (name.size() > kNameBytesMax) return wrong("it is longer than " + std::to_string(kNameBytesMax) + " bytes");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == ':' || c == '.';
  };
  if (!std::ranges::all_of(name, plain))
    return wrong("it has other characters than letters, digits, '-', '_', '.' and ':'");
  return {};
}
Status check_path(std::string_view path) {
  if (path.size() > kPathBytesMax) return wrong("it is longer than any path");
  return {};
}
Status check_url(std::string_view url) {
  if (url.empty() || (url.starts_with("http://") && url.size() > 7)) return {};
  if (url.starts_with("https://") && url.size() > 8) return {};
  return wrong("it does not begin with http:// or https://, and a host");
}
Status check_security(std::string_view security) {
  if (auto ok = parse_packet_security(security); !ok) return wrong(ok.error().message);
  return {};
}
Status check_class(std::string_view handle) {
  if (handle.empty() || parse_class_handle(handle)) return {};
  return wrong("it is no handle of a class, such as 1:10");
}
Status check_cores(std::string_view cores) {
  if (cores.find_first_not_of("0123456789,") == std::string_view::npos) return {};
  return wrong("it is no list of numbers, separated by commas");
}
Status check_words(std::string_view words) {
  if (words.size() <= kPathBytesMax) return {};
  return wrong("it is too long");
}
Status check_advertised(std::string_view host) {
  if (host.empty()) return wrong("a host is missing between commas");
  if (host.size() > kNameBytesMax) return wrong("it is longer than " + std::to_string(kNameBytesMax) + " bytes");
  if (host.find_first_of(" \t[]/") != std::string_view::npos) return wrong("it is no host name or address");
  return {};
}

Field name(std::string_view key, std::string Settings::* member, std::string_view help) {
  return service::field::text(key, member, "1 to 63 letters, digits, '-', '_', '.', ':'; or empty", help, check_name);
}
Field path(std::string_view key, std::string Settings::* member, std::string_view help) {
  return service::field::text(key, member, "a path; or empty", help, check_path);
}

/// A path of TLS's files, which lie in a struct of their own.
Field tls_path(std::string_view key, std::string service::TlsFiles::* member, std::string_view help) {
  return {.key = key,
          .allowed = "a path; or empty",
          .help = help,
          .read = [member](Settings& settings, std::string_view written) -> Status {
            if (auto ok = check_path(written); !ok) return ok;
            settings.tls.*member = std::string(written);
            return {};
          },
          .write = [member](const Settings& settings) { return settings.tls.*member; }};
}

/// Returns the error of one entry, with the entry's number if there are several.
std::unexpected<Error> wrong_entry(std::size_t index, std::size_t count, std::string_view entry, std::string why) {
  if (count == 1) return wrong(std::move(why));
  return wrong("entry " + std::to_string(index + 1) + ", '" + std::string(entry) + "': " + std::move(why));
}

std::string why_not_beside(const Endpoint& one, const std::vector<Endpoint>& others) {
  const bool all = one.host.empty() || one.host == "0.0.0.0" || one.host == "::";
  for (const Endpoint& other : others) {
    if (other.host == one.host) return "the address is in the list twice; name each address once";
    if (other.port != one.port) {
      return "its port differs from the port of '" + to_string(other) +
             "'; give all the same port, or port 0 to have the ports chosen";
    }
    if (all || other.host.empty() || other.host == "0.0.0.0" || other.host == "::") {
      return "one of the addresses means all addresses of this host; name each device's address, or that address alone";
    }
  }
  return {};
}

Field listen() {
  return {
      .key = "listen",
      .allowed =
          "host:port or [IPv6]:port; [::] is every address of both families; port 0 chooses a free one. Or up "
          "to " +
          std::to_string(kListenMax) + " addresses with the same port, as a list or separated by commas",
      .help =
          "The address where ranks and other aggregators connect. With transport tcp or verbs, one address for each "
          "device: the lanes of a group use them in turn.",
      .read = [](Settings& settings, std::string_view written) -> Status {
        const auto entries = list_entries(written);
        if (entries.size() > kListenMax) {
          return wrong("it has " + std::to_string(entries.size()) + " entries; there are at most " +
                       std::to_string(kListenMax) + " lanes to use them");
        }
        std::vector<Endpoint> places;
        for (std::size_t i = 0; i < entries.size(); ++i) {
          auto place = parse_endpoint(entries[i]);
          if (!place) return wrong_entry(i, entries.size(), entries[i], place.error().message);
          if (auto why = why_not_beside(*place, places); !why.empty())
            return wrong_entry(i, entries.size(), entries[i], std::move(why));
          places.push_back(std::move(*place));
        }
        settings.listen = std::move(places);
        return {};
      },
      .write =
          [](const Settings& settings) {
            std::string text;
            for (const Endpoint& place : settings.listen) text += (text.empty() ? "" : ",") + to_string(place);
            return text;
          },
      .list = true};
}

Field advertise() {
  return {
      .key = "advertise",
      .allowed =
          "a host name or address of at most 63 bytes, or a list with one for each address of listen; or "
          "empty",
      .help =
          "The host that ranks connect to. Empty: the host of listen or, if listen means every address, the address "
          "from which this host reaches the manager.",
      .read = [](Settings& settings, std::string_view written) -> Status {
        std::vector<std::string> hosts;
        if (!written.empty()) {
          const auto entries = list_entries(written);
          for (std::size_t i = 0; i < entries.size(); ++i) {
            if (auto ok = check_advertised(entries[i]); !ok)
              return wrong_entry(i, entries.size(), entries[i], ok.error().message);
            hosts.emplace_back(entries[i]);
          }
        }
        settings.advertise = std::move(hosts);
        return {};
      },
      .write =
          [](const Settings& settings) {
            std::string text;
            for (const std::string& host : settings.advertise) text += (text.empty() ? "" : ",") + host;
            return text;
          },
      .list = true};
}

Field log_level() {
  return {.key = "log_level",
          .allowed = "trace, debug, info, warn or error",
          .help = "The lowest level of the lines that are written. Read again on SIGHUP.",
          .read = [](Settings& settings, std::string_view written) -> Status {
            const auto at = std::ranges::find(kLevels, written);
            if (at == kLevels.end()) return wrong("it is no level");
            settings.log_level = static_cast<LogLevel>(at - kLevels.begin());
            return {};
          },
          .write = [](const Settings& settings) { return std::string(to_string(settings.log_level)); }};
}

Field rdma_path(const transport::RdmaPathSetting& setting) {
  return {.key = setting.name,
          .allowed = std::string(setting.allowed),
          .help = setting.help,
          .read = [&setting](Settings& settings, std::string_view written) -> Status {
            if (!setting.set(settings.rdma_path, written)) return wrong("it is none of these");
            return {};
          },
          .write = [&setting](const Settings& settings) { return setting.text(settings.rdma_path); }};
}

std::vector<Field> make_fields() {
  using namespace std::chrono_literals;
  using namespace service::field;
  using S = Settings;
  std::vector<Field> fields{
      name("name", &S::name, "This aggregator's name: tokens are made out to it. Empty: the host's name."),
      name("host_id", &S::host_id, "The name of this host in the manager's topology. Empty: the host's name."),
      text("manager", &S::manager, "http://host:port or https://host:port",
           "The manager. It need not be up: the aggregator keeps trying.", check_url),
      path("token_file", &S::token_file,
           "Holds the secret that the manager asks of aggregators (the manager makes it at its first start); mode 0600 "
           "or 0640. "
           "Empty: none."),
      tls_path(
          "tls_ca", &service::TlsFiles::ca,
          "The CAs of the manager's certificate, for a manager of https, and the CAs of the certificates with which "
          "callers read the metrics (PEM)."),
      tls_path(
          "tls_cert", &service::TlsFiles::cert,
          "This aggregator's certificate (PEM). With it http_listen speaks only HTTPS, and the aggregator shows it "
          "to a manager of https. A file of TLS that changes is read again."),
      tls_path("tls_key", &service::TlsFiles::key,
               "The private key of tls_cert (PEM), which other users must not be able to read."),
      tls_path("tls_crl", &service::TlsFiles::crl, "Revocation lists of those CAs (PEM). Empty: none."),
      path("state_file", &S::state_file,
           "Keeps the manager's public key, so that an aggregator that starts while the manager is down can verify "
           "tokens. Empty: manager-key in systemd's StateDirectory, or none."),
      path("ready_file", &S::ready_file,
           "The aggregator writes this file when it serves: JSON with the chosen ports. Empty: none."),
      choice("transport", &S::transport, {"tcp", "udp", "verbs", "dpdk"},
             "How ranks and other aggregators talk to it: over TCP, in packets over UDP, over RDMA (InfiniBand, "
             "RoCE, iWARP) by verbs, or in packets over UDP by a device of its own, without the kernel (DPDK). "
             "All aggregators and ranks of a group use one transport; udp and dpdk can talk to each other."),
      flag("shared_memory", &S::shared_memory, "on", "off",
           "With transport tcp: the aggregator talks to processes of this host, of the same user or root, through "
           "memory that both share."),
      bytes("map_max", &S::map_max, 0, 1ULL << 44,
            "The most registered memory of each process of this host that the aggregator maps for reading, to sum "
            "contributions where they are. It copies the rest."),
      flag("late_ranks", &S::late_ranks, "on", "off",
           "The aggregator looks for the child for which the others wait. With off, /metrics has no lags, and /lanes "
           "does not say for whom a lane waits."),
      listen(),
      endpoint("http_listen", &S::http_listen, "The address that serves /metrics, /healthz, /lanes and /v1/trace."),
      advertise(),
      count("workers", &S::workers, 0, 256,
            "Threads that serve lanes, each with connections of its own. 0: as many as cores, but at most 4."),
      bytes("memory", &S::memory, 1ULL << 20, 1ULL << 44,
            "The memory that all lanes together may reserve. The aggregator refuses a lane that does not fit."),
      count("children_max", &S::children_max, 1, kChildrenMax,
            "Children that the manager may give this aggregator in one lane."),
      rate("line_rate", &S::line_rate, kLinkRateMax,
           "The rate of the network interfaces, for the planner. 0bit/s: the rate that their drivers tell, else the "
           "rate in the topology."),
      choice(
          "link_shares", &S::link_shares, {"off", "kernel"},
          "With transport tcp or udp: the kernel divides what leaves by the interfaces of listen among the tenants, by "
          "their weights (kernel). It needs CAP_NET_ADMIN, and the rate of the interfaces."),
      text("link_shares_parent", &S::link_shares_parent, "major:minor, hexadecimal, as tc writes it; or empty",
           "The class of a queueing discipline of your own below which link_shares divides. Empty: the root of each "
           "interface.",
           check_class),
      count("unjoined_max", &S::unjoined_max, 1, 65536,
            "The most connections that have not shown a token yet; a further connection displaces the oldest."),
      count("connections_max", &S::connections_max, 16, 1U << 20, "The most connections of each worker."),
      count("tenant_connections_max", &S::tenant_connections_max, 0, 1U << 24,
            "The most connections of one tenant to this aggregator. The aggregator refuses more. 0: no limit."),
      count("tenant_half_open_max", &S::tenant_half_open_max, 0, 1U << 24,
            "The most connections of one tenant whose lanes are not ready yet. 0: no limit."),
      count("tenant_joins_per_second_max", &S::tenant_joins_per_second_max, 0, 1U << 20,
            "The most joins with valid tokens of one tenant in a second; twice as many may come at once. 0: no limit."),
      count("http_connections_max", &S::http_connections_max, 1, 4096,
            "The most HTTP connections; a further connection displaces the oldest."),
      duration("join_limit", &S::join_limit, 100ms, 5min,
               "The time from connecting within which a whole join frame must come."),
      duration(
          "form_limit", &S::form_limit, 1s, 60min,
          "The time from a lane's first join within which the last join must come; else the lane fails and its group "
          "falls back."),
      duration("flush_limit", &S::flush_limit, 100ms, 5min,
               "The time for the last frames to a child that does not read."),
      duration("drain_limit", &S::drain_limit, 100ms, 10min,
               "The time after SIGTERM for telling the manager and all children; then the process ends."),
      duration(
          "drain_grace", &S::drain_grace, 0s, 60min,
          "The time in which groups may move to other trees by themselves when the manager drains this aggregator; "
          "then it ends their lanes."),
      duration("user_timeout", &S::user_timeout, 0s, 60min,
               "A peer that acknowledges nothing for this time is gone. 0s: the kernel's time, some minutes."),
      duration("packet_peer_timeout", &S::packet_peer_timeout, 1s, 60min,
               "With transport udp or dpdk: a child or parent that is silent for this time is gone. Set at least the "
               "ranks' time-out (TRIBUTARY_TIMEOUT): a rank may stand still for that time without an error."),
      duration(
          "hang_after", &S::hang_after, 0s, 1min,
          "When no frame comes from a parent, the aggregator asks whether the parent lives. It gives up a parent that "
          "does not answer for this time, or longer if earlier answers took longer. 0s: the aggregator does not ask."),
      duration("keepalive", &S::keepalive, 0s, 60min,
               "The time after which the aggregator probes a silent connection. 0s: never."),
      duration("busy_poll", &S::busy_poll, 0s, 1s,
               "A worker spins for this time before it sleeps, which lowers latency and costs a core. 0s: never."),
      text("security", &S::security, "off, authenticate or encrypt",
           "The aggregator refuses groups with less security than this. Ranks set TRIBUTARY_SECURITY.", check_security),
      text("packet_security", &S::packet_security, "off, authenticate or encrypt",
           "The old name of security. If both are set, the stricter one counts.", check_security),
      duration(
          "packet_delay_target", &S::packet_delay_target, 10us, 100ms,
          "With transport udp or dpdk: the aggregator sends a child less while the round trip of its packets through "
          "the network takes longer than this."),
      count("packet_window_initial", &S::packet_window_initial, 1, 1024,
            "Packets that a new connection may have under way."),
      count("packet_window_max", &S::packet_window_max, 1, 65536,
            "The most packets that a connection may have under way."),
      flag("packet_ecn", &S::packet_ecn, "on", "off",
           "Packets say that switches may mark them instead of dropping them."),
      count("packet_dscp", &S::packet_dscp, 0, 63,
            "Switches choose the queue of the aggregator's packets by this number."),
      count("packet_datagram_bytes_max", &S::packet_datagram_bytes_max, 1232, 65000,
            "With transport udp: the aggregator neither sends nor takes longer datagrams, even if the path would carry "
            "them."),
      text("rdma_devices", &S::rdma_devices, "auto, or device or device:port, separated by commas",
           "With transport verbs: the RDMA devices by which connections to parents leave, lane by lane in turn. If one "
           "is gone, the next one serves. auto: the devices of listen, or the system's choice.",
           check_words),
      count("rdma_queue_pairs", &S::rdma_queue_pairs, 1, 8,
            "With transport verbs: the most queue pairs of a connection, over which large payloads are spread. The "
            "children's TRIBUTARY_RDMA_QUEUE_PAIRS asks for them."),
      text("dpdk_device", &S::dpdk_device, "as DPDK names it; or empty",
           "With transport dpdk: a virtual device with its arguments, as net_af_packet0,iface=eth1 (the kernel must "
           "have no address there), or a PCI address that is bound to vfio-pci.",
           check_words),
      text("dpdk_addresses", &S::dpdk_addresses, "address/prefix, or one of IPv4 and one of IPv6, by commas; or empty",
           "This host's addresses on the device's link.", check_words),
      text("dpdk_gateways", &S::dpdk_gateways, "an address, or one of each family, by commas; or empty",
           "Routers to addresses that are not on the link.", check_words),
      text("dpdk_cores", &S::dpdk_cores, "numbers, by commas; or empty",
           "The cores on which the workers run, one after the other. Empty: the system chooses.", check_cores),
      count("dpdk_vlan", &S::dpdk_vlan, 0, 4094, "The VLAN tag of all frames. 0: none."),
      count("dpdk_mtu", &S::dpdk_mtu, 0, 65326, "The MTU of the link. 0: the MTU of the device or its interface."),
      count("dpdk_descriptors", &S::dpdk_descriptors, 64, 32768,
            "The descriptors of each queue of the device, in each direction."),
      text("dpdk_gpu", &S::dpdk_gpu, "a PCI address; or empty",
           "The GPU whose memory a PCI device writes packets to, where the processor reads them. DPDK must drive it. "
           "Empty: the host's memory.",
           check_words),
      choice("dpdk_huge_pages", &S::dpdk_huge_pages, {"prefer", "require", "never"},
             "Says whether DPDK may take ordinary memory if there are too few huge pages."),
      duration("dpdk_sleep", &S::dpdk_sleep, 0s, 10ms,
               "A worker to which no packet comes sleeps for this time, again and again. 0s: it keeps its core busy."),
      text("dpdk_file_prefix", &S::dpdk_file_prefix, "a word; or empty",
           "The prefix of the files that DPDK makes for its own tools. Empty: it makes none.", check_words),
      text("dpdk_arguments", &S::dpdk_arguments, "words, by spaces; or empty",
           "Further arguments, which DPDK gets unchanged.", check_words),
      log_level(),
      choice("log_format", &S::log_format, {"text", "json"},
             "The form of log lines: text for people, json for programs, an object on each line."),
  };
  const auto after_rdma = std::ranges::find(fields, std::string_view("dpdk_device"), &Field::key);
  const auto path = transport::rdma_path_settings() | std::views::transform(rdma_path);
  fields.insert(after_rdma, path.begin(), path.end());
  return fields;
}

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> kFields = make_fields();
  return kFields;
}

std::string_view to_string(LogLevel level) noexcept {
  return kLevels[static_cast<std::size_t>(level)];
}

}  // namespace tributary::aggregator
