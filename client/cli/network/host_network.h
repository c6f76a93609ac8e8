#pragma once
// Hosts on this machine: network namespaces around a switch, with links of limited rates.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/network/child_host.h"
#include "client/cli/network/links.h"
#include "client/cli/network/network_namespace.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint32_t kHostsMax = 250;                   // most hosts of all kinds; the first has 10.77.0.1
inline constexpr std::uint64_t kLinkRateMin = 1'000'000;          // bit/s
inline constexpr std::uint64_t kLinkRateMax = 1'000'000'000'000;  // bit/s
inline constexpr const char* kHostDevice = "eth0";                // every host's end of its link

struct HostLink {
  std::string host;
  std::uint64_t bits_per_second = 0;  // rate of the link; 0: as fast as this machine
};

/// The hosts. They reach each other, and no other host. Links have their rates in both directions: at the host's end
/// and at the switch's end. A host ends when no process is in it, and this object is gone.
class HostNetwork {
 public:
  /// Makes the hosts. Errc::denied: this process lacks the rights. Errc::bad_argument: more than kHostsMax hosts.
  [[nodiscard]] static Result<std::unique_ptr<HostNetwork>> make(std::vector<HostLink> links);

  /// The following functions need the name of a host in `links`.
  [[nodiscard]] std::string address_of(const std::string& host) const;
  /// Returns the rate of the host's link, in bits per second; 0: as fast as this machine.
  [[nodiscard]] std::uint64_t rate_of(const std::string& host) const { return links_[index_of(host)].bits_per_second; }
  /// Returns the place of a host, for a process that starts there; valid as long as this object lives.
  [[nodiscard]] ChildHost place_of(const std::string& host) const;
  /// Moves the calling thread to the host. All processes that it starts from now on are on this host, too.
  [[nodiscard]] Status enter(const std::string& host) const;

 private:
  explicit HostNetwork(NetworkNamespace fabric, std::vector<HostLink> links)
      : switch_(std::move(fabric)), links_(std::move(links)) {}
  [[nodiscard]] Status connect();
  [[nodiscard]] Status prepare_switch() const;
  [[nodiscard]] Status prepare_host(std::size_t index) const;
  [[nodiscard]] std::size_t index_of(const std::string& host) const;
  const NetworkNamespace switch_;
  const std::vector<HostLink> links_;
  std::vector<NetworkNamespace> hosts_;
};

}  // namespace tributary::cli
