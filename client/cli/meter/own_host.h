#pragma once
#include <string>

namespace tributary::cli::meter {

/// Returns the name that measurements give to this host: TRIBUTARY_HOST_ID, or else the system's name of the host.
[[nodiscard]] std::string own_host();

}  // namespace tributary::cli::meter
