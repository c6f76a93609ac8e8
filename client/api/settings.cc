#include "client/api/settings.h"

#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ranges>

#include "client/api/config_file.h"
#include "service-kit/mistake.h"
#include "service-kit/settings_file.h"
#include "service-kit/settings_table.h"
#include "service-kit/status_folder.h"
#include "service-kit/units.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_rate.h"
#include "tributary/transport/io_threads.h"
#include "tributary/transport/rails.h"

namespace tributary::client {
namespace {

constexpr double kTimeoutSecondsMax = 315'360'000;         // ten years
constexpr std::int64_t kPauseMax = std::int64_t{1} << 61;  // nanoseconds between two calls of while_waiting
constexpr std::array<std::string_view, 4> kTransports{"tcp", "udp", "verbs", "dpdk"};

using service::Mistake;
using service::field::wrong;

struct Setting {
  SettingHelp help;
  std::function<Status(ClientSettings&, std::string_view value)> set;  // an error's message says why
};

std::vector<std::string> split(std::string_view list) {
  const auto entries = service::list_entries(list);
  return {entries.begin(), entries.end()};
}

bool is_printable(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; });
}

Status check_printable(std::string_view value) {
  if (is_printable(value)) return {};
  return wrong("it has a space or a character that is not printable");
}

Status set_printable(std::string& to, std::string_view value) {
  to = value;
  return check_printable(value);
}

Status set_name(std::string& name, std::string_view value) {
  name = value;
  if (value.empty()) return wrong("it is empty");
  if (value.size() > kNameBytesMax) return wrong("it is longer than " + std::to_string(kNameBytesMax) + " bytes");
  return check_printable(value);
}

Status set_file(std::string& file, std::string_view value) {
  file = value;
  if (value.empty()) return wrong("it is empty");
  return {};
}

template <class T>
struct Word {
  std::string_view word;
  T value;
};

/// Sets `to` to what the word stands for.
template <class T>
Status set_word(T& to, std::string_view value, std::initializer_list<Word<T>> words) {
  const auto found = std::ranges::find(words, value, &Word<T>::word);
  if (found == words.end()) return wrong("it is none of these");
  to = found->value;
  return {};
}

template <class Number>
Status set_within(Number& to, std::string_view value, std::uint32_t low, std::uint32_t high) {
  const auto number = service::parse_number<std::uint32_t>(value);
  if (!number) return wrong("it is no whole number");
  if (*number < low) return wrong("it is below " + std::to_string(low));
  if (*number > high) return wrong("it is above " + std::to_string(high));
  to = static_cast<Number>(*number);
  return {};
}

/// 0 stands for auto.
Status set_auto_or_within(std::uint32_t& to, std::string_view value, std::uint32_t low, std::uint32_t high) {
  to = 0;
  return value == "auto" ? Status{} : set_within(to, value, low, high);
}

template <class Duration>
Status set_duration(Duration& to, std::string_view value, std::uint32_t low, std::uint32_t high) {
  std::uint32_t number = 0;
  if (auto ok = set_within(number, value, low, high); !ok) return ok;
  to = Duration(number);
  return {};
}

Status set_manager(ClientSettings& s, std::string_view value) {
  s.manager = value;
  const bool secure = value.starts_with("https://");
  if (!secure && !value.starts_with("http://")) return wrong("it does not begin with http:// or https://");
  if (value.size() == std::strlen(secure ? "https://" : "http://")) return wrong("it names no host");
  return check_printable(value);
}

Status set_path(ClientSettings& s, std::string_view value) {
  return set_word(
      s.path, value,
      {{"auto", PathMode::automatic}, {"in-network", PathMode::in_network}, {"fallback", PathMode::fallback}});
}

Status set_tuning(ClientSettings& s, std::string_view value) {
  s.tuning = value == "auto"    ? TuningMode::automatic
             : value == "model" ? TuningMode::model
             : value == "off"   ? TuningMode::off
                                : TuningMode::table;
  s.tuning_file.clear();
  return s.tuning == TuningMode::table ? set_file(s.tuning_file, value) : Status{};
}

Status set_auto_or_off(bool& to, std::string_view value) {
  return set_word(to, value, {{"auto", true}, {"off", false}});
}

Status set_attach(ClientSettings& s, std::string_view value) {
  return set_word(
      s.attach, value,
      {{"auto", tuning::AttachUse::if_quick}, {"on", tuning::AttachUse::always}, {"off", tuning::AttachUse::never}});
}

Status set_gpudirect(ClientSettings& s, std::string_view value) {
  return set_word(s.gpudirect, value,
                  {{"auto", gpu::DirectMode::automatic},
                   {"off", gpu::DirectMode::off},
                   {"dma-buf", gpu::DirectMode::dma_buf},
                   {"peer-memory", gpu::DirectMode::peer_memory}});
}

Status set_transports(ClientSettings& s, std::string_view value) {
  s.transports = split(value);
  for (const std::string& name : s.transports) {
    if (std::ranges::find(kTransports, name) == kTransports.end()) return wrong("'" + name + "' is no transport");
  }
  return {};
}

Status set_security(ClientSettings& s, std::string_view value) {
  const auto security = parse_packet_security(value);
  if (!security) return wrong("it is none of these");
  s.security = *security;
  return {};
}

Status set_link_rate(ClientSettings& s, std::string_view value) {
  const auto rate = service::parse_rate(value);
  if (!rate) return std::unexpected(rate.error());
  if (*rate < 1) return wrong("it is below 1bit/s");
  if (*rate > kLinkRateMax) return wrong("it is above " + service::rate_text(kLinkRateMax));
  s.link_rate = *rate;
  return {};
}

Status set_timeout(ClientSettings& s, std::string_view value) {
  const auto seconds = service::parse_number<double>(value);
  if (!seconds || std::isnan(*seconds)) return wrong("it is no number");
  if (*seconds < 0.001) return wrong("it is below 0.001");
  if (*seconds > kTimeoutSecondsMax) return wrong("it is above 315360000");
  s.timeout = std::chrono::milliseconds(std::llround(*seconds * 1000));
  return {};
}

Status set_hang_after(ClientSettings& s, std::string_view value) {
  if (auto ok = set_duration(s.hang_after, value, 0, 60'000); !ok) return ok;
  if (s.hang_after.count() != 0 && s.hang_after.count() < 50) return wrong("it is below 50, and not 0");
  return {};
}

// Accepts a list, because NCCL's plugin takes its devices from the same variable. A communicator uses only the first
// name.
Status set_interface(ClientSettings& s, std::string_view value) {
  const std::vector<std::string> names = split(value);
  s.interface_name = names.front();
  if (value.empty()) return {};
  for (const std::string& name : names) {
    if (name.empty()) return wrong("a name is missing between commas");
    if (name.size() >= IFNAMSIZ) return wrong("'" + name + "' is longer than 15 bytes");
    if (auto ok = check_printable(name); !ok) return ok;
  }
  return {};
}

Status set_rdma_devices(ClientSettings& s, std::string_view value) {
  s.rdma_devices = transport::names_of_rails(value);
  if (value != "auto" && s.rdma_devices.empty()) return wrong("it names no device");
  return check_printable(value);
}

Setting rdma_path(const transport::RdmaPathSetting& setting) {
  return {{setting.name, setting.variable, setting.default_text, setting.allowed, setting.help},
          [&setting](ClientSettings& s, std::string_view value) -> Status {
            if (setting.set(s.rdma_path, value)) return {};
            return wrong("it is none of these");
          }};
}

Status set_log(ClientSettings& s, std::string_view value) {
  constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warn", "error", "off"};
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) return wrong("it is none of these");
  s.log = static_cast<LogLevel>(found - names.begin());
  return {};
}

Status set_format(ClientSettings& s, std::string_view value) {
  const auto format = service::parse_log_format(value);
  if (!format) return wrong("it is none of these");
  s.log_format = *format;
  return {};
}

Status set_priority(ClientSettings& s, std::string_view value) {
  constexpr std::array<std::string_view, 3> names{"low", "normal", "high"};
  if (std::ranges::find(names, value) == names.end()) return wrong("it is none of these");
  s.priority = value == "normal" ? "" : value;  // an older manager does not know the member
  return {};
}

Setting tls_file(std::string_view key, std::string_view variable, std::string service::TlsFiles::* member,
                 std::string_view help) {
  return {{key, variable, "none", "the path of a file", help},
          [member](ClientSettings& s, std::string_view value) { return set_file(s.tls.*member, value); }};
}

std::vector<Setting> make_settings() {
  std::vector<Setting> all{
      {{"manager", "TRIBUTARY_MANAGER", "none", "a URL, http://HOST[:PORT] or https://HOST[:PORT]",
        "The manager that rank 0 asks for aggregation trees. Without one, collectives run between the ranks."},
       set_manager},
      tls_file("tls_ca", "TRIBUTARY_TLS_CA", &service::TlsFiles::ca,
               "For a manager of https: the CAs of its certificate (PEM). Rank 0, the only reader of the file, accepts "
               "no other CA."),
      tls_file("tls_cert", "TRIBUTARY_TLS_CERT", &service::TlsFiles::cert,
               "For a manager of https: the certificate by which rank 0 proves who it is (PEM), in place of a token."),
      tls_file("tls_key", "TRIBUTARY_TLS_KEY", &service::TlsFiles::key,
               "The private key of that certificate (PEM), which other users must not be able to read."),
      tls_file("tls_crl", "TRIBUTARY_TLS_CRL", &service::TlsFiles::crl,
               "For a manager of https: revocation lists of the CAs (PEM)."),
      {{"path", "TRIBUTARY_PATH", "auto", "auto, in-network or fallback",
        "auto uses trees if there are any; in-network and fallback allow only that path."},
       set_path},
      {{"require", "TRIBUTARY_REQUIRE", "none", "none or in-network",
        "in-network: the ranks wait for trees within the time-out, and end with an error instead of falling back."},
       [](ClientSettings& s, std::string_view value) {
         return set_word(s.require_in_network, value, {{"none", false}, {"in-network", true}});
       }},
      {{"numerics", "TRIBUTARY_NUMERICS", "fast", "fast, wide or exact",
        "exact: sums and averages of floats are exact, and rounded once, so that their bits depend on no path, "
        "tree or order. wide asks for less, and gets the same. All ranks need the same setting."},
       [](ClientSettings& s, std::string_view value) {
         return set_word(s.numerics, value,
                         {{"fast", Numerics::fast}, {"wide", Numerics::exact}, {"exact", Numerics::exact}});
       }},
      {{"check_values", "TRIBUTARY_CHECK_VALUES", "off", "off, count or nan-fails",
        "count: each collective counts NaN, infinities and subnormal numbers in its input and its result on this rank. "
        "nan-fails: an input with a NaN also ends the communicator, with an error on every rank that names the rank of "
        "the NaN."},
       [](ClientSettings& s, std::string_view value) {
         return set_word(
             s.check_values, value,
             {{"off", ValueCheck::off}, {"count", ValueCheck::count}, {"nan-fails", ValueCheck::nan_fails}});
       }},
      {{"tuning", "TRIBUTARY_TUNING", "auto", "auto, model, off or the path of a file",
        "If path is auto and there is a tree: auto lets a cost model choose between tree, fallback and both for each "
        "size, and corrects it by the times that operations take; model leaves out the corrections; off always takes "
        "the tree; a file is a table that tributary perf --tune wrote. Rank 0's setting counts."},
       set_tuning},
      {{"local", "TRIBUTARY_LOCAL", "auto", "auto or off",
        "auto: if all ranks of a communicator are on one host and path is auto, collectives run in shared memory."},
       [](ClientSettings& s, std::string_view value) { return set_auto_or_off(s.local, value); }},
      {{"shm", "TRIBUTARY_SHM", "auto", "auto or off",
        "auto: if transport is tcp, ranks and aggregators on one host, of the same user or root, talk to each other "
        "through shared memory."},
       [](ClientSettings& s, std::string_view value) { return set_auto_or_off(s.shared_memory, value); }},
      {{"cma", "TRIBUTARY_CMA", "auto", "auto, on or off",
        "on: ranks of one host copy long vectors straight from each other's memory (process_vm_readv), if the kernel "
        "allows this way. auto: only where a measurement of a few milliseconds finds this way faster."},
       set_attach},
      {{"transport", "TRIBUTARY_TRANSPORT", "tcp", "a list, separated by commas, of tcp, udp, verbs and dpdk",
        "Transports in order of preference; the first one that is built and works here is used."},
       set_transports},
      {{"gpudirect", "TRIBUTARY_GPUDIRECT", "auto", "auto, off, dma-buf or peer-memory",
        "For transport verbs: how the network reads and writes the memory of GPUs in large in-network operations. "
        "auto tries dma-buf, then nvidia_peermem; off sends all data through pinned host memory."},
       set_gpudirect},
      {{"packet_security", "TRIBUTARY_PACKET_SECURITY", "off", "off, authenticate or encrypt",
        "The old name of security, which overrides it."},
       set_security},
      {{"security", "TRIBUTARY_SECURITY", "off", "off, authenticate or encrypt",
        "authenticate keeps other processes from making, changing or repeating messages of the group; encrypt hides "
        "the messages, too. Over verbs GPUDirect is not used then. Must be the same on every rank."},
       set_security},
      {{"udp_busy_poll", "TRIBUTARY_UDP_BUSY_POLL", "0", "a number of microseconds, without a unit, up to 1000000",
        "For transport udp: how long a waiting thread polls the socket before it sleeps until a packet comes. 0: "
        "it polls for a moment, and only if most waits end within this moment."},
       [](ClientSettings& s, std::string_view value) { return set_duration(s.udp.busy_poll, value, 0, 1'000'000); }},
      {{"udp_datagram_bytes_max", "TRIBUTARY_UDP_DATAGRAM_BYTES_MAX", "16384", "a number of bytes from 1232 to 65000",
        "For transport udp: the rank neither sends nor takes longer datagrams, even if the path would carry them."},
       [](ClientSettings& s, std::string_view value) {
         return set_within(s.udp.datagram_bytes_max, value, 1232, 65000);
       }},
      {{"udp_ecn", "TRIBUTARY_UDP_ECN", "on", "on or off",
        "For transports udp and dpdk: packets tell switches that they may mark them instead of dropping them."},
       [](ClientSettings& s, std::string_view value) {
         return set_word(s.udp.ecn, value, {{"on", true}, {"off", false}});
       }},
      {{"udp_dscp", "TRIBUTARY_UDP_DSCP", "0", "a number from 0 to 63",
        "For transports udp and dpdk: switches choose the queue of the rank's packets by this number."},
       [](ClientSettings& s, std::string_view value) { return set_within(s.udp.dscp, value, 0, 63); }},
      {{"udp_delay_target", "TRIBUTARY_UDP_DELAY_TARGET", "500",
        "a number of microseconds, without a unit, from 10 to 100000",
        "For transports udp and dpdk: the rank sends less while its packets' round trip through the network takes "
        "longer."},
       [](ClientSettings& s, std::string_view value) { return set_duration(s.udp.delay_target, value, 10, 100'000); }},
      {{"dpdk_device", "TRIBUTARY_DPDK_DEVICE", "none; transport dpdk needs it", "a device as DPDK names it",
        "For transport dpdk: the network device that this rank alone uses, as 0000:3b:00.0 or "
        "net_af_packet0,iface=eth1."},
       [](ClientSettings& s, std::string_view value) { return set_printable(s.dpdk.device, value); }},
      {{"dpdk_addresses", "TRIBUTARY_DPDK_ADDRESSES", "none; transport dpdk needs it",
        "addresses with prefix length, separated by commas", "This host's addresses on that device: 10.6.0.11/24."},
       [](ClientSettings& s, std::string_view value) { return set_printable(s.dpdk.addresses, value); }},
      {{"dpdk_gateways", "TRIBUTARY_DPDK_GATEWAYS", "none", "addresses, separated by commas",
        "Routers to addresses that are not on that device's link."},
       [](ClientSettings& s, std::string_view value) { return set_printable(s.dpdk.gateways, value); }},
      {{"dpdk_gpu", "TRIBUTARY_DPDK_GPU", "none: the host's memory", "a PCI address",
        "For transport dpdk: the GPU into whose memory that device, a PCI device, writes packets. DPDK must drive "
        "it."},
       [](ClientSettings& s, std::string_view value) { return set_printable(s.dpdk.gpu, value); }},
      {{"lanes", "TRIBUTARY_LANES", "auto", "auto, or a number from 1 to 16",
        "Independent trees that share a group's traffic, each with its own connections. auto: as many trees as save "
        "time, by the rates of the links; one tree if the manager does not know the rates."},
       [](ClientSettings& s, std::string_view value) { return set_auto_or_within(s.lanes, value, 1, kLanesMax); }},
      {{"link_rate", "TRIBUTARY_LINK_RATE", "what the interface's driver says", "a rate with a unit, as 25Gbit/s",
        "The rate of this host's link. The manager plans by it where no topology tells the rates, and the choice of "
        "path starts from it. Set it where the interface is virtual, as in containers."},
       set_link_rate},
      {{"rail", "TRIBUTARY_RAIL", "none: the lanes take all rails in turn", "1 to 63 printable bytes without spaces",
        "The rail of this rank's only network device, as the topology names it. If all ranks of a group name the same "
        "rail, their trees are on this rail."},
       [](ClientSettings& s, std::string_view value) { return set_name(s.rail, value); }},
      {{"io_threads", "TRIBUTARY_IO_THREADS", "auto", "auto, or a number from 1 to 32",
        "For transport tcp: how many threads of a rank read and write, each for some connections. 1: the thread that "
        "drives the communicator does so itself. auto: one for each 20 Gbit/s of the link, if there are enough cores."},
       [](ClientSettings& s, std::string_view value) {
         return set_auto_or_within(s.io_threads, value, 1, transport::kIoThreadsMax);
       }},
      {{"hang_after", "TRIBUTARY_HANG_AFTER", "500", "a number of milliseconds, without a unit: 0, or 50 to 60000",
        "A rank that waits for results asks whether its aggregator lives. It gives up an aggregator that does not "
        "answer for this time, or longer if earlier answers took longer. 0: the rank does not ask."},
       set_hang_after},
      {{"begin_within", "TRIBUTARY_BEGIN_WITHIN", "500", "a number of milliseconds, without a unit, up to 60000",
        "A communicator that has no trees by then begins between the ranks, and moves to trees when it gets them. "
        "If path is in-network, it waits for trees. Rank 0's setting counts."},
       [](ClientSettings& s, std::string_view value) { return set_duration(s.begin_within, value, 0, 60'000); }},
      {{"timeout", "TRIBUTARY_TIMEOUT", "300", "a number of seconds, without a unit, from 0.001 to 315360000",
        "A rank that is lost or hangs becomes an error on every other rank within this time."},
       set_timeout},
      {{"ifname", "TRIBUTARY_IFNAME", "the first interface that is up",
        "the name of a network interface (1 to 15 bytes), or several, separated by commas",
        "Other ranks get the address of this interface, or of the first one in a list. NCCL's plugin uses all of "
        "them."},
       set_interface},
      {{"rdma_devices", "TRIBUTARY_RDMA_DEVICES", "auto",
        "auto, or a list, separated by commas, of device or device:port",
        "For transport verbs: the RDMA devices to use, lane by lane in turn. auto: the devices nearest to the GPU that "
        "the rank uses, else to the NUMA node that it is bound to, in turn by LOCAL_RANK."},
       set_rdma_devices},
      {{"rdma_queue_pairs", "TRIBUTARY_RDMA_QUEUE_PAIRS", "1", "a number from 1 to 8",
        "For transport verbs: queue pairs of each connection, over which large payloads are spread. The "
        "aggregator's setting bounds their number."},
       [](ClientSettings& s, std::string_view value) { return set_within(s.rdma_queue_pairs, value, 1, 8); }},
      {{"rdma_on_demand", "TRIBUTARY_RDMA_ON_DEMAND", "off", "auto or off",
        "For transport verbs: auto registers buffers that tributary_mem_register did not register on "
        "demand (ODP), if the RDMA device supports it: no buffer is pinned, and each is registered once."},
       [](ClientSettings& s, std::string_view value) { return set_auto_or_off(s.rdma_on_demand, value); }},
      {{"rdma_busy_poll", "TRIBUTARY_RDMA_BUSY_POLL", "0", "a number of microseconds, without a unit, up to 1000000",
        "For transport verbs: how long a waiting thread polls the completion queue before it sleeps until an event "
        "comes. 0: it polls for at most 50 us, and only if most waits end within that time."},
       [](ClientSettings& s, std::string_view value) { return set_duration(s.rdma_busy_poll, value, 0, 1'000'000); }},
      {{"host_id", "TRIBUTARY_HOST_ID", "the host's name", "1 to 63 printable bytes without spaces",
        "This host's name in the manager's topology."},
       [](ClientSettings& s, std::string_view value) { return set_name(s.host_id, value); }},
      {{"log", "TRIBUTARY_LOG", "info", "trace, debug, info, warn, error or off",
        "Lines from this level on go to standard error. Rank 0 logs changes of path at info, every rank at debug."},
       set_log},
      {{"log_format", "TRIBUTARY_LOG_FORMAT", "text", service::kLogFormats,
        "The form of log lines: text for people, json for programs, an object on each line. The process's first "
        "communicator decides."},
       set_format},
      {{"status_dir", service::kStatusFolderVariable, "auto", "auto, off, or the path of a folder",
        "The folder of this process's status port, at which tributary dump reads the last operations. auto: "
        "/tmp/tributary-UID; off: no port. The process's first communicator decides."},
       [](ClientSettings& s, std::string_view value) { return set_file(s.status_dir, value); }},
      {{"flight_record", "TRIBUTARY_FLIGHT_RECORD", "none", "the path of a folder",
        "A rank whose communicator fails writes its last operations to a file in this folder."},
       [](ClientSettings& s, std::string_view value) { return set_file(s.flight_record, value); }},
      {{"late_ranks", "TRIBUTARY_LATE_RANKS", "auto", "auto or off",
        "off: this rank looks for no late rank, and tells others nothing about itself that would explain its lateness. "
        "An aggregator has a setting of the same name."},
       [](ClientSettings& s, std::string_view value) { return set_auto_or_off(s.late_ranks, value); }},
      {{"statistics", "TRIBUTARY_STATISTICS", "none", "the path of a folder",
        "At the end of each communicator, its rank 0 writes a file with statistics to this folder."},
       [](ClientSettings& s, std::string_view value) { return set_file(s.statistics, value); }},
      {{"token_file", "TRIBUTARY_TOKEN_FILE", "none", "the path of a file",
        "The file holds the manager's job token. Only rank 0 reads it."},
       [](ClientSettings& s, std::string_view value) { return set_file(s.token_file, value); }},
      {{"job", "TRIBUTARY_JOB", "default", "1 to 63 printable bytes without spaces",
        "The manager lists the group under this name."},
       [](ClientSettings& s, std::string_view value) { return set_name(s.job, value); }},
      {{"priority", "TRIBUTARY_PRIORITY", "normal", "low, normal or high",
        "The class of the group's trees, at most the tenant's highest: where aggregators are full, trees of a higher "
        "class displace trees of a lower class."},
       set_priority},
  };
  const auto after_rdma =
      std::ranges::find(all, std::string_view("host_id"), [](const Setting& s) { return s.help.key; });
  const auto path = transport::rdma_path_settings() | std::views::transform(rdma_path);
  all.insert(after_rdma, path.begin(), path.end());
  return all;
}

// Returns all settings. The list is never destroyed: threads may still use it while the process ends.
const std::vector<Setting>& all_settings() {
  static const auto* const all = new std::vector<Setting>(make_settings());
  return *all;
}

std::string host_name() {
  std::array<char, kNameBytesMax + 1> name{};
  if (gethostname(name.data(), name.size()) != 0 && name[0] == '\0') return "localhost";
  name.back() = '\0';  // cut a longer name
  return name.data();
}

/// Copies the caller's struct, which may be of an older or a newer version of the header.
Result<tributary_config> readable(const tributary_config& config) {
  tributary_config ours = TRIBUTARY_CONFIG_INITIALIZER;
  if (config.struct_bytes < sizeof(std::size_t) || config.struct_bytes > 4096) {
    return fail(Errc::bad_argument,
                "tributary_config: struct_bytes is " + std::to_string(config.struct_bytes) +
                    ", not the size of a tributary_config; start from TRIBUTARY_CONFIG_INITIALIZER");
  }
  std::memcpy(&ours, &config, std::min(config.struct_bytes, sizeof ours));
  const auto* bytes = reinterpret_cast<const unsigned char*>(&config);
  for (std::size_t i = sizeof ours; i < config.struct_bytes; ++i) {
    if (bytes[i] != 0) {
      return fail(
          Errc::unsupported,
          "tributary_config: a member that this version of libtributary does not know is set; use a libtributary "
          "as new as the header");
    }
  }
  return ours;
}

const SettingHelp& help_of(std::string_view key) {
  const auto found = std::ranges::find(setting_help(), key, &SettingHelp::key);
  TRIBUTARY_ASSERT(found != setting_help().end(), "there is no setting {}", key);
  return *found;
}

/// Sets one value, and remembers where it came from.
Status set_from(Mistake source, std::string_view key, ClientSettings& settings, service::Written& written) {
  const SettingHelp& help = help_of(key);
  source.allowed = help.allowed;
  if (const auto ok = set(settings, key, *source.value); !ok) {
    source.why = ok.error().message;
    return service::refuse(source);
  }
  written.insert_or_assign(std::string(key), std::move(source));
  return {};
}

Status apply_timeout(ClientSettings& settings, std::int64_t timeout_ms) {
  if (timeout_ms < 0 || static_cast<double>(timeout_ms) > kTimeoutSecondsMax * 1000) {
    return service::refuse({.key = "tributary_config.timeout_ms",
                            .value = std::to_string(timeout_ms),
                            .why = timeout_ms < 0 ? "it is below 1" : "it is above 315360000000",
                            .allowed = "a number of milliseconds from 1 to 315360000000; 0: not set here"});
  }
  if (timeout_ms != 0) settings.timeout = std::chrono::milliseconds(timeout_ms);
  return {};
}

Status apply_config(ClientSettings& settings, const tributary_config& config, service::Written& written) {
  const auto ours = readable(config);
  if (!ours) return std::unexpected(ours.error());
  const auto apply = [&](std::string_view key, std::string_view member, std::string value) {
    return set_from({.key = "tributary_config." + std::string(member), .value = std::move(value), .why = {}}, key,
                    settings, written);
  };
  struct Text {
    const char* value;
    std::string_view key, member;
  };
  for (const Text& text :
       {Text{ours->manager, "manager", "manager"}, Text{ours->path, "path", "path"},
        Text{ours->transport, "transport", "transport"}, Text{ours->interface_name, "ifname", "interface_name"},
        Text{ours->host_id, "host_id", "host_id"}, Text{ours->token_file, "token_file", "token_file"},
        Text{ours->job, "job", "job"}, Text{ours->tuning, "tuning", "tuning"},
        Text{ours->require, "require", "require"}, Text{ours->numerics, "numerics", "numerics"},
        Text{ours->local, "local", "local"}, Text{ours->check_values, "check_values", "check_values"}}) {
    if (text.value == nullptr) continue;
    if (auto ok = apply(text.key, text.member, text.value); !ok) return ok;
  }
  if (ours->lanes != 0) {
    if (auto ok = apply("lanes", "lanes", std::to_string(ours->lanes)); !ok) return ok;
  }
  if (auto ok = apply_timeout(settings, ours->timeout_ms); !ok) return ok;
  if (ours->still_wanted != nullptr) {
    settings.still_wanted = [ask = ours->still_wanted, context = ours->still_wanted_context] {
      return ask(context) != 0;
    };
  }
  if (ours->while_waiting != nullptr) {
    settings.while_waiting = [turn = ours->while_waiting,
                              context = ours->while_waiting_context](std::chrono::nanoseconds waited) {
      // A shorter pause would only cost time, and a sum of the present time with a longer one would wrap.
      return std::chrono::nanoseconds(std::clamp<std::int64_t>(turn(context, waited.count()), 1'000, kPauseMax));
    };
  }
  return {};
}

/// Refuses settings that are valid alone, but not together.
Status check_together(const ClientSettings& settings, const service::Written& written) {
  if (!settings.require_in_network || settings.path != PathMode::fallback) return {};
  const Mistake path = service::mistake_in(written, "path", {}, {});
  const std::string other = path.where + (path.where.empty() ? "" : ": ") + path.key;
  return service::refuse(service::mistake_in(written, "require",
                                             "it contradicts " + other + ", whose 'fallback' forbids trees",
                                             "none where the path is fallback; in-network with any other path"));
}

}  // namespace

std::span<const SettingHelp> setting_help() {
  static const auto* const help = [] {
    auto* const all = new std::vector<SettingHelp>;
    for (const Setting& setting : all_settings()) all->push_back(setting.help);
    return all;
  }();
  return *help;
}

Status set(ClientSettings& settings, std::string_view key, std::string_view value) {
  const auto found = std::ranges::find(all_settings(), key, [](const Setting& s) { return s.help.key; });
  TRIBUTARY_ASSERT(found != all_settings().end(), "there is no setting {}", key);
  return found->set(settings, value);
}

Result<ClientSettings> load_settings(const tributary_config* config, const Environment& environment) {
  const auto variable = [&](std::string_view name) {
    const char* value = environment(std::string(name).c_str());
    return value == nullptr ? std::string() : std::string(value);
  };
  ClientSettings settings;
  settings.host_id = host_name();
  service::Written written;
  if (const std::string file = variable("TRIBUTARY_CONFIG"); !file.empty()) {
    if (auto ok = apply_file(settings, file, written); !ok) return std::unexpected(ok.error());
  }
  for (const SettingHelp& help : setting_help()) {
    const std::string value = variable(help.variable);
    if (value.empty()) continue;
    const auto ok =
        set_from({.key = std::string(help.variable), .value = value, .why = {}}, help.key, settings, written);
    if (!ok) return std::unexpected(ok.error());
  }
  if (config != nullptr) {
    if (auto ok = apply_config(settings, *config, written); !ok) return std::unexpected(ok.error());
  }
  if (auto ok = check_together(settings, written); !ok) return std::unexpected(ok.error());
  // Wait longer than the communicator, so that the communicator reports a lost rank first.
  settings.udp.peer_timeout = settings.timeout + std::chrono::seconds(5);
  return settings;
}

Result<ClientSettings> load_settings(const tributary_config* config) {
  return load_settings(config, [](const char* name) { return std::getenv(name); });
}

}  // namespace tributary::client
