#include "transport/verbs/verbs_listener.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace tributary::transport::verbs {
namespace {

constexpr int kBacklog = 1024;

/// Finds a reason to refuse a request before a queue pair is made for it. Returns none if the listener accepts it.
std::optional<Refusal> refusal_of(const VerbsCore& core, const Greeting& request, const sockaddr& from) {
  const auto& keys = core.settings().keys;
  const PacketSecurity level = request.security();
  if (!keys) return level == PacketSecurity::off ? std::nullopt : std::optional(Refusal::never_seals);
  if (level < keys->least()) {
    return keys->least() == PacketSecurity::encrypt ? Refusal::wants_encryption : Refusal::wants_authentication;
  }
  const auto secret = keys->of(claim_of(request));
  if (!secret) return secret.error() == NoSecret::not_yet ? Refusal::no_key_yet : Refusal::no_secret;
  if (!same_proof(request.proof, proof_of_request(*secret, request, from))) return Refusal::unproved;
  return std::nullopt;
}

/// Moves the id's events to the core. False: the system refuses.
bool comes_to(const VerbsCore& core, rdma_cm_id& id) {
  return id.channel == core.events() || rdma_migrate_id(&id, core.events()) == 0;
}

}  // namespace

VerbsListenPoint::VerbsListenPoint(const std::shared_ptr<VerbsCore>& core, Acceptor* acceptor,
                                   VerbsTransport::Route route)
    : core_(core), acceptor_(acceptor), route_(std::move(route)) {
  core->enter(*this);
}

VerbsListenPoint::~VerbsListenPoint() {
  shut_down();
}

void VerbsListenPoint::shut_down() {
  *listening_ = false;
  if (const auto core = core_.lock()) core->leave(*this);
  core_.reset();
  id_.reset();
}

Status VerbsListenPoint::open(const Endpoint& at) {
  const auto core = core_.lock();
  const auto refused = [&](const std::string& why) {
    return fail(Errc::io, "cannot listen for RDMA at " + to_string(at) + ": " + why + ".");
  };
  Endpoint where = at;
  if (where.host.empty()) where.host = core->settings().bind_address.empty() ? "::" : core->settings().bind_address;
  const bool all = where.host == "::";
  auto addresses = addresses_of(where, false);
  if (!addresses) return refused(addresses.error().message);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(core->events(), &id, static_cast<Notified*>(this), RDMA_PS_TCP) != 0)
    return refused(std::strerror(errno));
  id_.reset(id);
  int only_its_family = all ? 0 : 1;
  rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only_its_family, sizeof only_its_family);
  if (rdma_bind_addr(id, addresses->front().get()) != 0 || rdma_listen(id, kBacklog) != 0) {
    return refused(errno == EADDRINUSE ? "the port is in use" : std::strerror(errno));
  }
  host_ = at.host.empty() ? "::" : at.host;
  return {};
}

Endpoint VerbsListenPoint::local() const {
  return {host_, ntohs(rdma_get_src_port(id_.get()))};
}

void VerbsListenPoint::notice(const Notice& notice) {
  const auto core = core_.lock();
  if (notice.event != RDMA_CM_EVENT_CONNECT_REQUEST || notice.request == nullptr || !core) return;
  ConnectionIdPtr id = std::move(*notice.request);
  Greeting greeting;
  if (!read_greeting({notice.data.data(), notice.data_bytes}, greeting)) {
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  if (!route_) {
    return take_request(core, std::move(id), greeting, notice.reads,
                        [acceptor = acceptor_, listening = listening_] { return *listening ? acceptor : nullptr; });
  }
  VerbsTransport* const target = route_({.group = greeting.group, .lane = greeting.lane});
  if (target == nullptr) {
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  auto shared = std::make_shared<ConnectionIdPtr>(std::move(id));
  target->take_routed([shared, greeting, reads = notice.reads](const std::shared_ptr<VerbsCore>& other) {
    take_request(other, std::move(*shared), greeting, reads, [weak = std::weak_ptr(other)]() -> Acceptor* {
      const auto alive = weak.lock();
      return alive ? alive->routed_acceptor : nullptr;
    });
  });
}

void take_request(const std::shared_ptr<VerbsCore>& core, ConnectionIdPtr id, const Greeting& greeting,
                  std::uint8_t reads, std::function<Acceptor*()> acceptor, TimePoint key_until) {
  if (const auto refusal = refusal_of(*core, greeting, *rdma_get_peer_addr(id.get()))) {
    if (*refusal == Refusal::no_key_yet && Clock::now() < key_until && comes_to(*core, *id)) {
      auto kept = std::make_shared<ConnectionIdPtr>(std::move(id));
      const auto again = [&core = *core, kept, greeting, reads, acceptor = std::move(acceptor), key_until] {
        take_request(core.shared_from_this(), std::move(*kept), greeting, reads, acceptor, key_until);
      };
      if (core->look_again(again, Clock::now())) return;
      id = std::move(*kept);
    }
    const bool unproved = *refusal == Refusal::unproved || *refusal == Refusal::no_secret;
    ++(unproved ? core->statistics.refused_unproved : core->statistics.seals_refused);
    rdma_reject(id.get(), &*refusal, sizeof *refusal);
    return;
  }
  const bool full = core->statistics.connections >= core->settings().connections_max;
  if (full) ++core->statistics.refused_full;
  if (full || !comes_to(*core, *id)) {
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  std::string peer = to_string(endpoint_of(*rdma_get_peer_addr(id.get())));
  auto connection = std::make_shared<VerbsConnection>(*core, std::move(peer), nullptr);
  // The connection keeps itself alive until it is open, because it has no other owner before.
  connection->accept(std::move(id), greeting, reads, [weak = std::weak_ptr(core), connection, acceptor] {
    const auto alive = weak.lock();
    Acceptor* const to = alive ? acceptor() : nullptr;
    if (to == nullptr) return connection->close();
    ++alive->statistics.accepted;
    auto channel = std::make_unique<VerbsChannel>(alive, connection);
    alive->count_callback();
    ChannelHandler* const handler = to->on_accept(std::move(channel));
    if (handler == nullptr) return connection->close();
    connection->set_handler(handler);
  });
}

}  // namespace tributary::transport::verbs
