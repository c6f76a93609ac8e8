#include "client/cli/meter/own_host.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tributary::cli::meter {

std::string own_host() {
  const char* const given = std::getenv("TRIBUTARY_HOST_ID");
  if (given != nullptr && *given != '\0') return given;
  std::array<char, 64> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace tributary::cli::meter
