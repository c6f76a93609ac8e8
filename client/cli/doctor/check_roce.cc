// Checks the classes of RoCE packets, their protection from loss, and their ECN marks, on this host's side of the link.
#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {
namespace {

constexpr unsigned kUsualPriority = 3;
constexpr unsigned kUsualTrafficClass = 106;  // DSCP 26, ECN-capable
constexpr const char* kSwitches = "; the switches need the same settings";

struct Port {
  std::string device, number, interface;
  [[nodiscard]] std::string name() const { return device + " port " + number; }
};

/// Returns the interface that carries a port's packets: the interface of the port's first address.
std::string interface_of(const SystemTree& system, const std::string& device, const std::string& number) {
  const std::string names = "/sys/class/infiniband/" + device + "/ports/" + number + "/gid_attrs/ndevs";
  for (const std::string& index : system.list(names)) {
    if (const auto name = system.read(names + "/" + index); name && !name->empty()) return *name;
  }
  const auto own = system.list("/sys/class/infiniband/" + device + "/device/net");
  return own.empty() ? "" : own.front();
}

std::optional<unsigned> last_number(const std::string& text) {
  const auto begin = text.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// Returns the traffic class that the driver or the connection manager gives to connections without one of their own.
std::optional<unsigned> traffic_class_of(const SystemTree& system, const Port& port) {
  const auto driver = system.read("/sys/class/infiniband/" + port.device + "/tc/" + port.number + "/traffic_class");
  if (driver) {
    if (const auto value = last_number(*driver)) return value;
  }
  const auto manager =
      system.read("/sys/kernel/config/rdma_cm/" + port.device + "/ports/" + port.number + "/default_roce_tos");
  return manager ? last_number(*manager) : std::nullopt;
}

Finding traffic_class_finding(const Port& port, std::optional<unsigned> value) {
  Finding f{.part = "rdma", .what = port.name() + " traffic class"};
  if (!value) {
    f.level = Level::unknown;
    f.found = "neither the driver nor rdma_cm's configuration shows a default";
    f.mend = fmt::format(
        "mount -t configfs none /sys/kernel/config; mkdir /sys/kernel/config/rdma_cm/{}; cat "
        "/sys/kernel/config/rdma_cm/{}/ports/{}/default_roce_tos",
        port.device, port.device, port.number);
    return f;
  }
  f.found = fmt::format("{} (DSCP {})", *value, *value / 4);
  if (*value != 0) return f;
  f.level = Level::warning;
  f.why =
      "switches put packets of DSCP 0 into the default queue, which drops them when it is full; a lost RoCE packet "
      "costs a time-out or a sequence sent again";
  f.mend = fmt::format("TRIBUTARY_RDMA_TRAFFIC_CLASS={} and rdma_traffic_class: {} on aggregators{}",
                       kUsualTrafficClass, kUsualTrafficClass, kSwitches);
  return f;
}

Finding trust_finding(const SystemTree& system, const Port& port, const std::optional<Qos>& qos) {
  Finding f{.part = "rdma", .what = port.name() + " trust"};
  const auto file = system.read("/sys/class/net/" + port.interface + "/qos/trust");
  if (!file && !qos) {
    f.level = Level::unknown;
    f.found = "the driver of " + port.interface + " does not tell";
    f.mend = "dcb app show dev " + port.interface;
    return f;
  }
  const bool dscp = file ? file->contains("dscp") : !qos->dscp_priorities.empty();
  f.found = dscp ? "dscp" : "pcp";
  if (dscp) return f;
  f.level = Level::warning;
  f.why =
      "the device sorts packets by VLAN tag, which routed RoCE packets lack: they share the queue of all other packets";
  f.mend = fmt::format("mlnx_qos -i {} --trust dscp, or: dcb app add dev {} dscp-prio 26:{}", port.interface,
                       port.interface, kUsualPriority);
  return f;
}

Finding pfc_finding(const Port& port, const std::optional<Qos>& qos, unsigned priority) {
  Finding f{.part = "rdma", .what = port.name() + " PFC"};
  if (!qos) {
    f.level = Level::unknown;
    f.found = "the driver of " + port.interface + " does not tell";
    f.mend = "dcb pfc show dev " + port.interface;
    return f;
  }
  std::string on;
  for (unsigned i = 0; i < 8; ++i) {
    if ((qos->pfc_enabled >> i & 1) != 0) on += (on.empty() ? "" : ", ") + std::to_string(i);
  }
  f.found = on.empty() ? "off" : "on for priority " + on;
  if ((qos->pfc_enabled >> priority & 1) != 0) return f;
  f.level = Level::warning;
  f.found += fmt::format("; RoCE has priority {}", priority);
  f.why =
      "when a queue runs full, RoCE packets are dropped, and a lost packet costs a time-out or a sequence sent again";
  f.mend = fmt::format("dcb pfc set dev {} prio-pfc all:off {}:on{}", port.interface, priority, kSwitches);
  return f;
}

Finding ecn_finding(const SystemTree& system, const Port& port, unsigned priority) {
  Finding f{.part = "rdma", .what = port.name() + " ECN"};
  const std::string folder = "/sys/class/net/" + port.interface + "/ecn/";
  const std::string file = "/enable/" + std::to_string(priority);
  const auto answers = system.number(folder + "roce_np" + file), obeys = system.number(folder + "roce_rp" + file);
  if (!answers || !obeys) {
    f.level = Level::unknown;
    f.found = "the driver of " + port.interface + " does not tell";
    f.mend = "ls /sys/class/net/" + port.interface + "/ecn; cat /sys/kernel/debug/mlx5/*/cc_params/*";
    return f;
  }
  f.found = fmt::format("priority {}: answers marks {}, slows down {}", priority, *answers != 0 ? "on" : "off",
                        *obeys != 0 ? "on" : "off");
  if (*answers != 0 && *obeys != 0) return f;
  f.level = Level::warning;
  f.why =
      "senders do not slow down when a queue fills: the queue overflows, or its pauses spread to ports of other "
      "traffic";
  f.mend = fmt::format("echo 1 > {}roce_np{}; echo 1 > {}roce_rp{}{}", folder, file, folder, file, kSwitches);
  return f;
}

/// Returns the priority into which the device sorts the packets.
unsigned priority_of(const std::optional<Qos>& qos, std::optional<unsigned> traffic_class) {
  const unsigned value = traffic_class.value_or(0) != 0 ? *traffic_class : kUsualTrafficClass;
  const auto dscp = static_cast<std::uint8_t>(value / 4);
  if (qos && qos->dscp_priorities.contains(dscp)) return qos->dscp_priorities.at(dscp) & 7U;
  return dscp / 8U & 7U;  // the devices' default: eight DSCPs for each priority
}

}  // namespace

Findings check_roce(const SystemTree& system, const AskQos& ask_qos) {
  Findings findings;
  for (const transport::RdmaPort& active : transport::active_ports(system)) {
    if (!active.ethernet) continue;
    Port port{.device = active.device, .number = std::to_string(active.port), .interface = {}};
    port.interface = interface_of(system, port.device, port.number);
    const std::optional<Qos> qos = ask_qos(port.interface);
    const auto traffic_class = traffic_class_of(system, port);
    const unsigned priority = priority_of(qos, traffic_class);
    findings.push_back(trust_finding(system, port, qos));
    findings.push_back(traffic_class_finding(port, traffic_class));
    findings.push_back(pfc_finding(port, qos, priority));
    findings.push_back(ecn_finding(system, port, priority));
  }
  return findings;
}

}  // namespace tributary::cli::doctor
