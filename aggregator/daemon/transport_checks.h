#pragma once
#include "aggregator/daemon/settings.h"
#include "tributary/protocol/error.h"

namespace tributary::aggregator {

/// Checks that the settings about the transport fit together. A start and --check refuse the same settings.
[[nodiscard]] Status check_transport_settings(const Settings& settings);
/// Checks that the transport's module is installed and finds its devices.
[[nodiscard]] Status check_transport_module(const Settings& settings);

}  // namespace tributary::aggregator
