#pragma once
// Numbers the hosts of one group's trees, and their interfaces, so that each name is looked up once for all ranks and
// lanes.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree-manager/planner/domains.h"

namespace tributary::manager {

class HostNumbers {
 public:
  struct Host {
    const std::string* name = nullptr;  // points into the trees or the list of ranks
    std::uint32_t number = 0;           // number in DomainTree
    std::uint32_t first = 0;            // number of its first interface here
    std::uint32_t interfaces = 1;
  };

  explicit HostNumbers(const DomainTree& domains) : domains_(domains) {}

  /// Returns the host's number in this object.
  std::uint32_t add(const std::string& name) {
    const auto [it, added] = known_.emplace(name, static_cast<std::uint32_t>(hosts_.size()));
    if (added) {
      const std::uint32_t number = domains_.find(name);
      const std::uint32_t interfaces = number == kUnknownHost ? 1 : domains_.interfaces(number);
      hosts_.push_back({&name, number, interfaces_, interfaces});
      interfaces_ += interfaces;
    }
    return it->second;
  }
  /// Returns the host's interface for lanes of this route; kNoInterface: the host is not on this route's rail.
  [[nodiscard]] std::uint32_t interface_of(const Host& host, std::uint32_t route) const {
    return host.number == kUnknownHost ? 0 : domains_.interface_of(host.number, route);
  }

  [[nodiscard]] const std::vector<Host>& hosts() const noexcept { return hosts_; }
  /// Returns the number of interfaces of all hosts in this object.
  [[nodiscard]] std::uint32_t interfaces() const noexcept { return interfaces_; }

 private:
  const DomainTree& domains_;
  std::unordered_map<std::string_view, std::uint32_t> known_;
  std::vector<Host> hosts_;
  std::uint32_t interfaces_ = 0;
};

}  // namespace tributary::manager
