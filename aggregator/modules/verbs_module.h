#pragma once
// The module tributary-aggregator-verbs.so: RDMA verbs. The aggregator's program itself links no library of RDMA.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "service-kit/module.h"
#include "tributary/transport/verbs.h"

namespace tributary::aggregator {

struct VerbsModule : service::ModuleTable {
  using Route = std::function<transport::Transport*(const transport::VerbsClaim& claim)>;
  Status (*available)();
  std::vector<transport::Rail> (*rails)();
  Status (*address_lives)(const std::string& host);
  /// Makes a VerbsTransport. The functions below call its functions of the same names: pass them no other
  /// transport.
  Result<std::unique_ptr<transport::Transport>> (*make)(const transport::VerbsSettings& settings);
  Result<std::unique_ptr<transport::Listener>> (*listen_for)(transport::Transport& transport, const Endpoint& at,
                                                             Route route);
  void (*accept_routed)(transport::Transport& transport, transport::Acceptor* acceptor);
  transport::VerbsStatistics (*statistics)(const transport::Transport& transport);
};
inline constexpr const char* kVerbsTable = "tributary_aggregator_verbs";

}  // namespace tributary::aggregator
