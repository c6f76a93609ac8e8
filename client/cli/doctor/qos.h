#pragma once
// Data centre bridging of an interface (IEEE 802.1Q): priority flow control, and DSCP.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace tributary::cli::doctor {

struct Qos {
  std::uint8_t pfc_enabled = 0;                          // one bit for each priority
  std::map<std::uint8_t, std::uint8_t> dscp_priorities;  // empty: the device does not classify packets by DSCP
};

/// The function that asks for an interface's settings; nullopt: the driver does not tell them.
using AskQos = std::function<std::optional<Qos>(const std::string& interface)>;
/// Asks the kernel over netlink. Every user may ask.
[[nodiscard]] std::optional<Qos> ask_kernel_for_qos(const std::string& interface);

}  // namespace tributary::cli::doctor
