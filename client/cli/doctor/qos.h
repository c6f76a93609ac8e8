#pragma once
// Data centre bridging of an interface (IEEE 802.1Q): priority flow control and DSCP.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace tributary::cli::doctor {

struct Qos {
  std::uint8_t pfc_enabled = 0;                          // one bit for each priority
  std::map<std::uint8_t, std::uint8_t> dscp_priorities;  // empty: packets are not classified by DSCP
};

/// nullopt: the driver does not tell.
using AskQos = std::function<std::optional<Qos>(const std::string& interface)>;
/// Asks the kernel over netlink. Any user may.
[[nodiscard]] std::optional<Qos> ask_kernel_for_qos(const std::string& interface);

}  // namespace tributary::cli::doctor
