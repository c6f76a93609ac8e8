#pragma once
// Messages to the service manager (sd_notify(3)): each is one datagram to the socket that NOTIFY_SOCKET names.
#include <chrono>
#include <optional>
#include <string_view>

namespace tributary::service {

/// Sends "READY=1", "STOPPING=1", "WATCHDOG=1" or "STATUS=...", or several of these, separated by line ends. Without a
/// service manager it does nothing.
void notify_service_manager(std::string_view message) noexcept;
/// Returns the period in which the service manager expects a WATCHDOG=1; nullopt if it expects none.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_period();

}  // namespace tributary::service
