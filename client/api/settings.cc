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
#include "service-kit/settings_file.h"
#include "service-kit/units.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_rate.h"
#include "tributary/transport/io_threads.h"
#include "tributary/transport/rails.h"

namespace tributary::client {
namespace {

constexpr double kTimeoutSecondsMax = 315'360'000;  // ten years
constexpr std::array<std::string_view, 4> kTransports{"tcp", "udp", "verbs", "dpdk"};

struct Setting {
  SettingHelp help;
  std::function<bool(ClientSettings&, std::string_view value)> set;  // returns false if the value is not allowed
};

std::vector<std::string> split(std::string_view list) {
  const auto entries = service::list_entries(list);
  return {entries.begin(), entries.end()};
}

bool is_printable(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; });
}

bool set_name(std::string& name, std::string_view value) {
  name = value;
  return !value.empty() && value.size() <= kNameBytesMax && is_printable(value);
}

bool set_manager(ClientSettings& s, std::string_view value) {
  s.manager = value;
  return value.starts_with("http://") && value.size() > std::strlen("http://") && is_printable(value);
}

bool set_path(ClientSettings& s, std::string_view value) {
  if (value == "auto") return s.path = PathMode::automatic, true;
  if (value == "in-network") return s.path = PathMode::in_network, true;
  if (value == "fallback") return s.path = PathMode::fallback, true;
  return false;
}

bool set_require(ClientSettings& s, std::string_view value) {
  s.require_in_network = value == "in-network";
  return s.require_in_network || value == "none";
}

bool set_tuning(ClientSettings& s, std::string_view value) {
  s.tuning = value == "auto"    ? TuningMode::automatic
             : value == "model" ? TuningMode::model
             : value == "off"   ? TuningMode::off
                                : TuningMode::table;
  s.tuning_file = s.tuning == TuningMode::table ? value : "";
  return !value.empty();
}

bool set_local(ClientSettings& s, std::string_view value) {
  s.local = value == "auto";
  return s.local || value == "off";
}

bool set_shared_memory(ClientSettings& s, std::string_view value) {
  s.shared_memory = value == "auto";
  return s.shared_memory || value == "off";
}

bool set_attach(ClientSettings& s, std::string_view value) {
  s.attach = value == "auto";
  return s.attach || value == "off";
}

bool set_gpudirect(ClientSettings& s, std::string_view value) {
  if (value == "auto") return s.gpudirect = gpu::DirectMode::automatic, true;
  if (value == "off") return s.gpudirect = gpu::DirectMode::off, true;
  if (value == "dma-buf") return s.gpudirect = gpu::DirectMode::dma_buf, true;
  if (value == "peer-memory") return s.gpudirect = gpu::DirectMode::peer_memory, true;
  return false;
}

bool set_transports(ClientSettings& s, std::string_view value) {
  s.transports = split(value);
  return std::ranges::all_of(
      s.transports, [](const std::string& name) { return std::ranges::find(kTransports, name) != kTransports.end(); });
}

bool set_packet_security(ClientSettings& s, std::string_view value) {
  const auto security = parse_packet_security(value);
  s.packet_security = security.value_or(PacketSecurity::encrypt);
  return security.has_value();
}

template <class Number>
bool set_within(Number& to, std::string_view value, std::uint32_t low, std::uint32_t high) {
  const auto number = service::parse_number<std::uint32_t>(value);
  if (!number || *number < low || *number > high) return false;
  to = static_cast<Number>(*number);
  return true;
}

bool set_lanes(ClientSettings& s, std::string_view value) {
  s.lanes = 0;
  if (value == "auto") return true;
  const auto lanes = service::parse_number<std::uint32_t>(value);
  if (!lanes || *lanes < 1 || *lanes > kLanesMax) return false;
  s.lanes = *lanes;
  return true;
}

bool set_link_rate(ClientSettings& s, std::string_view value) {
  const auto rate = service::parse_rate(value);
  s.link_rate = rate.value_or(0);
  return rate && *rate >= 1 && *rate <= kLinkRateMax;
}

bool set_io_threads(ClientSettings& s, std::string_view value) {
  s.io_threads = 0;
  return value == "auto" || set_within(s.io_threads, value, 1, transport::kIoThreadsMax);
}

bool set_timeout(ClientSettings& s, std::string_view value) {
  const auto seconds = service::parse_number<double>(value);
  if (!seconds || !(*seconds >= 0.001) || *seconds > kTimeoutSecondsMax) return false;
  s.timeout = std::chrono::milliseconds(std::llround(*seconds * 1000));
  return true;
}

bool set_hang_after(ClientSettings& s, std::string_view value) {
  const auto ms = service::parse_number<std::uint32_t>(value);
  if (!ms || (*ms != 0 && *ms < 50) || *ms > 60'000) return false;
  s.hang_after = std::chrono::milliseconds(*ms);
  return true;
}

bool set_begin_within(ClientSettings& s, std::string_view value) {
  const auto ms = service::parse_number<std::uint32_t>(value);
  if (!ms || *ms > 60'000) return false;
  s.begin_within = std::chrono::milliseconds(*ms);
  return true;
}

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() < IFNAMSIZ && is_printable(name);
}

// Accepts a list, because NCCL's plugin takes its devices from the same variable. A communicator uses only the first
// name.
bool set_interface(ClientSettings& s, std::string_view value) {
  const std::vector<std::string> names = split(value);
  s.interface_name = names.front();
  return value.empty() || std::ranges::all_of(names, is_interface_name);
}

bool set_rdma_devices(ClientSettings& s, std::string_view value) {
  s.rdma_devices = transport::names_of_rails(value);
  return is_printable(value) && (value == "auto" || !s.rdma_devices.empty());
}

bool set_rdma_queue_pairs(ClientSettings& s, std::string_view value) {
  const auto count = service::parse_number<std::uint32_t>(value);
  if (!count || *count < 1 || *count > 8) return false;
  s.rdma_queue_pairs = *count;
  return true;
}

bool set_microseconds(std::chrono::microseconds& to, std::string_view value, std::uint32_t low, std::uint32_t high) {
  std::uint32_t microseconds = 0;
  if (!set_within(microseconds, value, low, high)) return false;
  to = std::chrono::microseconds(microseconds);
  return true;
}

bool set_udp_ecn(ClientSettings& s, std::string_view value) {
  s.udp.ecn = value == "on";
  return s.udp.ecn || value == "off";
}

bool set_rdma_on_demand(ClientSettings& s, std::string_view value) {
  s.rdma_on_demand = value == "auto";
  return value == "auto" || value == "off";
}

bool set_rdma_busy_poll(ClientSettings& s, std::string_view value) {
  return set_microseconds(s.rdma_busy_poll, value, 0, 1'000'000);
}

Setting rdma_path(const transport::RdmaPathSetting& setting) {
  return {{setting.name, setting.variable, setting.default_text, setting.allowed, setting.help},
          [&setting](ClientSettings& s, std::string_view value) { return setting.set(s.rdma_path, value); }};
}

bool set_log(ClientSettings& s, std::string_view value) {
  constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warn", "error", "off"};
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) return false;
  s.log = static_cast<LogLevel>(found - names.begin());
  return true;
}

bool set_format(ClientSettings& s, std::string_view value) {
  const auto format = service::parse_log_format(value);
  s.log_format = format.value_or(service::LogFormat::text);
  return format.has_value();
}

std::vector<Setting> make_settings() {
  std::vector<Setting> all{
      {{"manager", "TRIBUTARY_MANAGER", "none", "a URL, http://HOST[:PORT]",
        "The manager that rank 0 asks for aggregation trees. Without one, collectives run between the ranks."},
       set_manager},
      {{"path", "TRIBUTARY_PATH", "auto", "auto, in-network or fallback",
        "auto uses trees if there are any; in-network and fallback allow only that path."},
       set_path},
      {{"require", "TRIBUTARY_REQUIRE", "none", "none or in-network",
        "in-network: the ranks wait for trees within the time-out, and end with an error instead of falling back."},
       set_require},
      {{"tuning", "TRIBUTARY_TUNING", "auto", "auto, model, off or the path of a file",
        "If path is auto and there is a tree: auto lets a cost model choose between tree, fallback and both for each "
        "size, and corrects it by the times that operations take; model leaves out the corrections; off always takes "
        "the tree; a file is a table that tributary perf --tune wrote. Rank 0's setting counts."},
       set_tuning},
      {{"local", "TRIBUTARY_LOCAL", "auto", "auto or off",
        "auto: if all ranks of a communicator are on one host and path is auto, collectives run in shared memory."},
       set_local},
      {{"shm", "TRIBUTARY_SHM", "auto", "auto or off",
        "auto: if transport is tcp, ranks and aggregators on one host, of the same user or root, talk to each other "
        "through shared memory."},
       set_shared_memory},
      {{"cma", "TRIBUTARY_CMA", "auto", "auto or off",
        "auto: ranks of one host copy long vectors straight from each other's memory (process_vm_readv), if the "
        "kernel allows it and it is faster."},
       set_attach},
      {{"transport", "TRIBUTARY_TRANSPORT", "tcp", "a list, separated by commas, of tcp, udp, verbs and dpdk",
        "Transports in order of preference; the first one that is built and works here is used."},
       set_transports},
      {{"gpudirect", "TRIBUTARY_GPUDIRECT", "auto", "auto, off, dma-buf or peer-memory",
        "For transport verbs: how the network reads and writes the memory of GPUs in large in-network operations. "
        "auto tries dma-buf, then nvidia_peermem; off sends all data through pinned host memory."},
       set_gpudirect},
      {{"packet_security", "TRIBUTARY_PACKET_SECURITY", "off", "off, authenticate or encrypt",
        "For transports udp and dpdk: authenticate keeps others from making, changing or repeating packets; encrypt "
        "hides payloads, too. Must be the same on every rank."},
       set_packet_security},
      {{"udp_busy_poll", "TRIBUTARY_UDP_BUSY_POLL", "0", "a number of microseconds, without a unit, up to 1000000",
        "For transport udp: how long a waiting thread polls the socket before it sleeps until a packet comes. 0: "
        "it polls for a moment, and only if most waits end within that."},
       [](ClientSettings& s, std::string_view value) {
         return set_microseconds(s.udp.busy_poll, value, 0, 1'000'000);
       }},
      {{"udp_datagram_bytes_max", "TRIBUTARY_UDP_DATAGRAM_BYTES_MAX", "16384", "a number of bytes from 1232 to 65000",
        "For transport udp: longer datagrams are neither sent nor taken, even if the path would carry them."},
       [](ClientSettings& s, std::string_view value) {
         return set_within(s.udp.datagram_bytes_max, value, 1232, 65000);
       }},
      {{"udp_ecn", "TRIBUTARY_UDP_ECN", "on", "on or off",
        "For transports udp and dpdk: packets tell switches that they may mark them instead of dropping them."},
       set_udp_ecn},
      {{"udp_dscp", "TRIBUTARY_UDP_DSCP", "0", "a number from 0 to 63",
        "For transports udp and dpdk: switches choose the queue of the rank's packets by this number."},
       [](ClientSettings& s, std::string_view value) { return set_within(s.udp.dscp, value, 0, 63); }},
      {{"udp_delay_target", "TRIBUTARY_UDP_DELAY_TARGET", "500",
        "a number of microseconds, without a unit, from 10 to 100000",
        "For transports udp and dpdk: the rank sends less while its packets' round trip through the network takes "
        "longer."},
       [](ClientSettings& s, std::string_view value) {
         return set_microseconds(s.udp.delay_target, value, 10, 100'000);
       }},
      {{"dpdk_device", "TRIBUTARY_DPDK_DEVICE", "none; transport dpdk needs it", "a device as DPDK names it",
        "For transport dpdk: the network device that this rank alone uses, as 0000:3b:00.0 or "
        "net_af_packet0,iface=eth1."},
       [](ClientSettings& s, std::string_view value) { return s.dpdk.device = value, is_printable(value); }},
      {{"dpdk_addresses", "TRIBUTARY_DPDK_ADDRESSES", "none; transport dpdk needs it",
        "addresses with prefix length, separated by commas", "This host's addresses on that device: 10.6.0.11/24."},
       [](ClientSettings& s, std::string_view value) { return s.dpdk.addresses = value, is_printable(value); }},
      {{"dpdk_gateways", "TRIBUTARY_DPDK_GATEWAYS", "none", "addresses, separated by commas",
        "Routers to addresses that are not on that device's link."},
       [](ClientSettings& s, std::string_view value) { return s.dpdk.gateways = value, is_printable(value); }},
      {{"dpdk_gpu", "TRIBUTARY_DPDK_GPU", "none: the host's memory", "a PCI address",
        "For transport dpdk: the GPU into whose memory that device, a PCI device, writes packets. DPDK must drive "
        "it."},
       [](ClientSettings& s, std::string_view value) { return s.dpdk.gpu = value, is_printable(value); }},
      {{"lanes", "TRIBUTARY_LANES", "auto", "auto, or a number from 1 to 16",
        "Independent trees that share a group's traffic, each with its own connections. auto: as many as the manager "
        "finds to save time, by the links' rates; one where it does not know them."},
       set_lanes},
      {{"link_rate", "TRIBUTARY_LINK_RATE", "what the interface's driver says", "a rate with a unit, as 25Gbit/s",
        "The rate of this host's link. The manager plans by it where no topology tells the rates, and the choice of "
        "path starts from it. Set it where the interface is virtual, as in containers."},
       set_link_rate},
      {{"io_threads", "TRIBUTARY_IO_THREADS", "auto", "auto, or a number from 1 to 32",
        "For transport tcp: how many threads of a rank read and write, each for some connections. 1: the thread that "
        "drives the communicator does so itself. auto: one for each 20 Gbit/s of the link, as far as there are cores."},
       set_io_threads},
      {{"hang_after", "TRIBUTARY_HANG_AFTER", "500", "a number of milliseconds, without a unit: 0, or 50 to 60000",
        "A rank that waits for results asks the aggregator whether it lives, and gives it up after this time without "
        "an answer; later if its answers have taken longer before. 0: the rank does not ask."},
       set_hang_after},
      {{"begin_within", "TRIBUTARY_BEGIN_WITHIN", "500", "a number of milliseconds, without a unit, up to 60000",
        "A communicator that has no trees by then begins between the ranks, and moves to trees when it gets them. "
        "If path is in-network it waits. Rank 0's setting counts."},
       set_begin_within},
      {{"timeout", "TRIBUTARY_TIMEOUT", "300", "a number of seconds, without a unit, from 0.001 to 315360000",
        "A rank that is lost or hangs becomes an error on every other rank within this time."},
       set_timeout},
      {{"ifname", "TRIBUTARY_IFNAME", "the first interface that is up",
        "the name of a network interface (1 to 15 bytes), or several, separated by commas",
        "Other ranks are told this interface's address, or that of the first of several. NCCL's plugin uses all."},
       set_interface},
      {{"rdma_devices", "TRIBUTARY_RDMA_DEVICES", "auto",
        "auto, or a list, separated by commas, of device or device:port",
        "For transport verbs: the RDMA devices to use, lane by lane in turn. auto: the devices nearest to the GPU that "
        "the rank uses, else to the NUMA node that it is bound to, in turn by LOCAL_RANK."},
       set_rdma_devices},
      {{"rdma_queue_pairs", "TRIBUTARY_RDMA_QUEUE_PAIRS", "1", "a number from 1 to 8",
        "For transport verbs: queue pairs of each connection, over which large payloads are spread. The "
        "aggregator's number bounds it."},
       set_rdma_queue_pairs},
      {{"rdma_on_demand", "TRIBUTARY_RDMA_ON_DEMAND", "off", "auto or off",
        "For transport verbs: auto registers buffers that tributary_mem_register did not register on "
        "demand (ODP), if the RDMA device can, so that nothing is pinned and each buffer is registered once."},
       set_rdma_on_demand},
      {{"rdma_busy_poll", "TRIBUTARY_RDMA_BUSY_POLL", "0", "a number of microseconds, without a unit, up to 1000000",
        "For transport verbs: how long a waiting thread polls the completion queue before it sleeps until an event "
        "comes. 0: it polls for at most 50, and only if most waits end within that time."},
       set_rdma_busy_poll},
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
      {{"token_file", "TRIBUTARY_TOKEN_FILE", "none", "the path of a file",
        "The file holds the manager's job token. Only rank 0 reads it."},
       [](ClientSettings& s, std::string_view value) { return s.token_file = value, !value.empty(); }},
      {{"job", "TRIBUTARY_JOB", "default", "1 to 63 printable bytes without spaces",
        "The manager lists the group under this name."},
       [](ClientSettings& s, std::string_view value) { return set_name(s.job, value); }},
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

Status apply_config(ClientSettings& settings, const tributary_config& config) {
  const auto ours = readable(config);
  if (!ours) return std::unexpected(ours.error());
  struct Text {
    const char* value;
    std::string_view key, member;
  };
  for (const Text& text :
       {Text{ours->manager, "manager", "manager"}, Text{ours->path, "path", "path"},
        Text{ours->transport, "transport", "transport"}, Text{ours->interface_name, "ifname", "interface_name"},
        Text{ours->host_id, "host_id", "host_id"}, Text{ours->token_file, "token_file", "token_file"},
        Text{ours->job, "job", "job"}, Text{ours->tuning, "tuning", "tuning"},
        Text{ours->require, "require", "require"}}) {
    if (text.value == nullptr) continue;
    const std::string where = "tributary_config." + std::string(text.member);
    if (auto ok = set(settings, text.key, text.value, where); !ok) return ok;
  }
  if (ours->lanes != 0) {
    if (auto ok = set(settings, "lanes", std::to_string(ours->lanes), "tributary_config.lanes"); !ok) return ok;
  }
  if (ours->timeout_ms != 0) {
    if (ours->timeout_ms < 0 || static_cast<double>(ours->timeout_ms) > kTimeoutSecondsMax * 1000) {
      return fail(Errc::bad_config, "tributary_config.timeout_ms: '" + std::to_string(ours->timeout_ms) +
                                        "' is not allowed; allowed is a number of milliseconds from 1 to 315360000000");
    }
    settings.timeout = std::chrono::milliseconds(ours->timeout_ms);
  }
  if (ours->still_wanted != nullptr) {
    settings.still_wanted = [ask = ours->still_wanted, context = ours->still_wanted_context] {
      return ask(context) != 0;
    };
  }
  return {};
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

Status set(ClientSettings& settings, std::string_view key, const std::string& value, const std::string& where) {
  const auto found = std::ranges::find(all_settings(), key, [](const Setting& s) { return s.help.key; });
  if (found == all_settings().end()) return fail(Errc::bad_config, where + ": there is no such setting");
  if (found->set(settings, value)) return {};
  return fail(Errc::bad_config,
              where + ": '" + value + "' is not allowed; allowed is " + std::string(found->help.allowed));
}

Result<ClientSettings> load_settings(const tributary_config* config, const Environment& environment) {
  const auto variable = [&](std::string_view name) {
    const char* value = environment(std::string(name).c_str());
    return value == nullptr ? std::string() : std::string(value);
  };
  ClientSettings settings;
  settings.host_id = host_name();
  if (const std::string file = variable("TRIBUTARY_CONFIG"); !file.empty()) {
    if (auto ok = apply_file(settings, file); !ok) return std::unexpected(ok.error());
  }
  for (const SettingHelp& help : setting_help()) {
    const std::string value = variable(help.variable);
    if (value.empty()) continue;
    if (auto ok = set(settings, help.key, value, std::string(help.variable)); !ok) return std::unexpected(ok.error());
  }
  if (config != nullptr) {
    if (auto ok = apply_config(settings, *config); !ok) return std::unexpected(ok.error());
  }
  if (settings.require_in_network && settings.path == PathMode::fallback) {
    return fail(
        Errc::bad_config,
        "TRIBUTARY_REQUIRE=in-network contradicts TRIBUTARY_PATH=fallback, which forbids trees; set one of them");
  }
  // Wait longer than the communicator, so that the communicator reports a lost rank first.
  settings.udp.peer_timeout = settings.timeout + std::chrono::seconds(5);
  return settings;
}

Result<ClientSettings> load_settings(const tributary_config* config) {
  return load_settings(config, [](const char* name) { return std::getenv(name); });
}

}  // namespace tributary::client
