#pragma once
#include <string_view>

namespace tributary::manager {

/// Tells systemd, as sd_notify(3) does: one datagram to the socket that $NOTIFY_SOCKET names. Without it: nothing.
void notify_service_manager(std::string_view state);

}  // namespace tributary::manager
