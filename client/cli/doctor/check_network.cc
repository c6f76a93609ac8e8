// Checks network interfaces.
#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {
namespace {

constexpr std::int64_t kJumboFrom = 8000;        // bytes; the MTU of jumbo frames is a little below 9000
constexpr std::int64_t kFastFromMbits = 10'000;  // from this rate on, small frames cost much processor time

Finding interface(const SystemTree& system, const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  Finding f{.part = "network", .what = name};
  const std::string state = system.read(folder + "/operstate").value_or("unknown");
  const auto mtu = system.number(folder + "/mtu").value_or(0);
  const auto speed = system.number(folder + "/speed").value_or(-1);
  f.found = state + ", MTU " + std::to_string(mtu);
  if (speed > 0) f.found += ", " + std::to_string(speed) + " Mbit/s";
  if (state == "down") {
    f.level = Level::warning;
    f.why = "no job can use it";
    f.mend = "ip link set " + name + " up; then check its cable, or ignore it if it has none";
  } else if (speed >= kFastFromMbits && mtu < kJumboFrom) {
    f.level = Level::warning;
    f.why = "frames of 1500 bytes cost about six times as much processor time per byte as frames of 9000";
    f.mend = "ip link set " + name + " mtu 9000, if every switch and host on the way has this MTU, too";
  }
  return f;
}

}  // namespace

Findings check_network(const SystemTree& system) {
  Findings findings;
  for (const std::string& name : system.list("/sys/class/net")) {
    if (system.exists("/sys/class/net/" + name + "/device")) findings.push_back(interface(system, name));
  }
  if (findings.empty()) {
    findings.push_back({.part = "network",
                        .what = "interfaces",
                        .level = Level::unknown,
                        .found = "none belongs to a device: this is a container, or has only virtual interfaces",
                        .mend = "tributary doctor, on the host itself"});
  }
  return findings;
}

}  // namespace tributary::cli::doctor
