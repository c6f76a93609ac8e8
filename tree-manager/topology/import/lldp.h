#pragma once
// Reads the output of lldpcli about the neighbours of a host or switch, as JSON in either of its two forms (json,
// json0).
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// The answers of one machine. `lldpcli -f json show neighbors details` does not name the machine itself: `text` may
/// begin with the answer to `show chassis`; otherwise `machine` is the name.
struct LldpText {
  std::string file;
  std::string machine;
  std::string text;
};

struct LldpOptions {
  std::vector<std::string> hosts;  // machines that are hosts, even if they forward
  bool rails = false;              // true: each port of a host is an interface of its own; false: they form a bond
};

/// Joins the answers of several machines; both ends of a cable may describe it. A machine that forwards (a bridge or
/// router) is a switch, unless the options name it as a host. Errc::bad_config names the wrong file.
[[nodiscard]] Result<FoundFabric> read_lldp(const std::vector<LldpText>& texts, const LldpOptions& options);
[[nodiscard]] bool looks_like_lldp(std::string_view text);

/// Returns the rate of a kind of port such as "100GbaseCR4 - ..." or "10GigBaseLR", in bits per second; 0: not known.
[[nodiscard]] std::uint64_t ethernet_rate(std::string_view kind);

}  // namespace tributary::manager
