#include "aggregator/modules/verbs_module.h"

namespace tributary::aggregator {
namespace {

using transport::VerbsTransport;

Result<std::unique_ptr<transport::Transport>> make(const transport::VerbsSettings& settings) {
  return VerbsTransport::create(settings);
}

Result<std::unique_ptr<transport::Listener>> listen_for(transport::Transport& transport, const Endpoint& at,
                                                        VerbsModule::Route route) {
  return static_cast<VerbsTransport&>(transport).listen_for(
      at, [route = std::move(route)](const transport::VerbsClaim& claim) {
        return static_cast<VerbsTransport*>(route(claim));
      });
}

void accept_routed(transport::Transport& transport, transport::Acceptor* acceptor) {
  static_cast<VerbsTransport&>(transport).accept_routed(acceptor);
}

transport::VerbsStatistics statistics(const transport::Transport& transport) {
  return static_cast<const VerbsTransport&>(transport).statistics();
}

}  // namespace
}  // namespace tributary::aggregator

extern "C" [[gnu::visibility("default")]] const tributary::aggregator::VerbsModule tributary_aggregator_verbs{
    {TRIBUTARY_VERSION},
    tributary::transport::verbs_available,
    tributary::transport::verbs_rails,
    tributary::transport::verbs_address_lives,
    tributary::aggregator::make,
    tributary::aggregator::listen_for,
    tributary::aggregator::accept_routed,
    tributary::aggregator::statistics};
