#pragma once
// Reads what lldpcli prints of a host's or switch's neighbours, as JSON in either of its two forms (json, json0).
#include <string>
#include <string_view>
#include <vector>

#include "tree-manager/topology/import/found_fabric.h"

namespace tributary::manager {

/// The answers of one machine. `lldpcli -f json show neighbors details` does not say whose neighbours they are: the text
/// may hold `show chassis` before them, else `machine` names it.
struct LldpText {
  std::string file;
  std::string machine;
  std::string text;
};

struct LldpOptions {
  std::vector<std::string> hosts;  // these are hosts, even if they forward
  bool rails = false;              // the ports of a host are interfaces of their own, no bond
};

/// Joins the answers of several machines; both ends of a cable may tell of it. A machine that forwards (as a bridge or
/// router) is a switch, unless the options call it a host. Errc::bad_config names the file that is wrong.
[[nodiscard]] Result<FoundFabric> read_lldp(const std::vector<LldpText>& texts, const LldpOptions& options);
[[nodiscard]] bool looks_like_lldp(std::string_view text);

/// Returns the rate of a kind of port such as "100GbaseCR4 - ..." or "10GigBaseLR", in bits per second; 0: not known.
[[nodiscard]] std::uint64_t ethernet_rate(std::string_view kind);

}  // namespace tributary::manager
