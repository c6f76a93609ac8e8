#pragma once
// The service manager's protocol (sd_notify(3)): one datagram to the socket that NOTIFY_SOCKET names.
#include <chrono>
#include <optional>
#include <string_view>

namespace tributary::service {

/// Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or "STATUS=...", or several, separated by line ends. Without a service
/// manager it does nothing.
void notify_service_manager(std::string_view message) noexcept;
/// Returns how often the service manager wants a WATCHDOG=1, if it does.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_period();

}  // namespace tributary::service
