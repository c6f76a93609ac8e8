#pragma once
// Hosts on this machine: network namespaces around a switch, with shaped links.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/network/child_host.h"
#include "client/cli/network/links.h"
#include "client/cli/network/network_namespace.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

inline constexpr std::uint32_t kHostsMax = 250;                   // of all kinds: their addresses are 10.77.0.1 and on
inline constexpr std::uint64_t kLinkRateMin = 1'000'000;          // bit/s
inline constexpr std::uint64_t kLinkRateMax = 1'000'000'000'000;  // bit/s
inline constexpr const char* kHostDevice = "eth0";                // every host's end of its link

struct HostLink {
  std::string host;
  std::uint64_t bits_per_second = 0;  // 0: as fast as this machine
};

/// All hosts reach each other and nothing else. Links are shaped in both directions: at the host's end and at the
/// switch's. The hosts end with the last process that is in them or holds this object.
class HostNetwork {
 public:
  /// Errc::denied without the rights to make hosts, Errc::bad_argument for more than kHostsMax.
  [[nodiscard]] static Result<std::unique_ptr<HostNetwork>> make(std::vector<HostLink> links);

  /// The functions below need a host of the list.
  [[nodiscard]] std::string address_of(const std::string& host) const;
  /// Says where a process starts that shall run there; valid as long as this object.
  [[nodiscard]] ChildHost place_of(const std::string& host) const;
  /// Moves the calling thread to the host. All that it starts from now on is there, too.
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
