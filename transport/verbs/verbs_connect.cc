// Class VerbsConnection: opens. It tries addresses in turn, finds a path, makes the queue pairs, and exchanges
// greetings.
#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "transport/verbs/on_link.h"
#include "transport/verbs/verbs_connection.h"
#include "transport/verbs/verbs_sealing.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::transport::verbs {
namespace {

constexpr Duration kAcceptLimit = std::chrono::seconds(10);  // time from a request to the open connection

std::string text_of(int error) {
  return std::strerror(error);
}

/// Returns the text of a refusal. InfiniBand numbers the reasons; iWARP's reasons are errno values below zero.
std::string refusal(const Notice& notice) {
  if (notice.status == 28 && notice.data_bytes > 0) {
    const auto reason = static_cast<Refusal>(notice.data[0]);
    if (reason == Refusal::unproved)
      return "it was refused: the connection does not prove that it belongs to the group that it names";
    if (reason == Refusal::no_secret)
      return "it was refused: the aggregator there shares no secret with the manager yet";
    if (reason == Refusal::no_key_yet) return "it was refused: the aggregator there has not reached its manager yet";
    if (reason == Refusal::never_seals) return "it has security 'off'; set the same TRIBUTARY_SECURITY on every rank";
    if (reason == Refusal::wants_authentication || reason == Refusal::wants_encryption) {
      const std::string wanted(
          to_string(reason == Refusal::wants_encryption ? PacketSecurity::encrypt : PacketSecurity::authenticate));
      return "it takes no connections below security '" + wanted + "'; set TRIBUTARY_SECURITY=" + wanted +
             " on every rank";
    }
  }
  switch (notice.status) {
    case 8:
      return "nobody listens there";
    case 28:
      return "it was refused";
    default:
      return notice.status < 0 ? text_of(-notice.status)
                               : "it was refused with reason " + std::to_string(notice.status);
  }
}

/// A random number of 24 bits.
std::uint32_t new_first_packet() {
  std::random_device random;
  return random() & 0xFFFFFFU;
}

}  // namespace

Result<std::vector<NetworkAddress>> addresses_of(const Endpoint& endpoint, bool numeric) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &wanted, &found);
  if (error != 0)
    return fail(Errc::unreachable, std::string("cannot find an address for its name: ") + ::gai_strerror(error));
  std::vector<NetworkAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::memcpy(&addresses.emplace_back().storage, one->ai_addr, one->ai_addrlen);
  }
  ::freeaddrinfo(found);
  return addresses;
}

Endpoint endpoint_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET6) {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
      ::inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text.data(), text.size());
    } else {
      ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    }
    return {text.data(), ntohs(six.sin6_port)};
  }
  const auto& four = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  return {text.data(), ntohs(four.sin_port)};
}

/// Begins to connect. The search for a device begins in the next turn, when the first frame is queued, which names the
/// lane.
void VerbsConnection::connect(const Endpoint& to, Duration limit) {
  opening_.to = to;
  opening_.deadline = Clock::now() + limit;
  core_.set_timer(*this, opening_.deadline);
  const auto go_on = [weak = weak_from_this()](const Result<std::vector<NetworkAddress>>& found) {
    if (const auto connection = weak.lock()) connection->found_addresses(found);
  };
  if (auto numeric = addresses_of(to, true))
    return core_.post([go_on, numeric = std::move(numeric)] { go_on(numeric); });
  const BlockedSignals blocked;
  opening_.look_up = std::jthread([to, go_on, core = core_.weak_from_this()] {
    auto found = addresses_of(to, false);
    if (const auto alive = core.lock()) alive->post([go_on, found = std::move(found)] { go_on(found); });
  });
}

void VerbsConnection::found_addresses(Result<std::vector<NetworkAddress>> found) {
  if (state_ != State::connecting) return;
  if (!found) return connect_failed(found.error().message);
  const auto from = sources();
  if (!from) return broken(from.error());
  if (from->empty()) {
    for (const NetworkAddress& address : *found) opening_.routes.push_back({.from = {}, .to = address});
  }
  for (const NetworkAddress& source : *from) {
    for (const NetworkAddress& address : *found) {
      if (source.get()->sa_family == address.get()->sa_family)
        opening_.routes.push_back({.from = source, .to = address});
    }
  }
  // Rails may be networks of their own. If this lane's device is away, the peer's address may be in another rail's
  // network; then that rail's device comes first. Otherwise the devices keep their order.
  if (from->size() > 1)
    std::ranges::stable_partition(opening_.routes,
                                  [](const Route& r) { return is_on_link(*r.from->get(), *r.to.get()); });
  try_next_address();
}

/// The source addresses in the order of the attempts; empty: the system chooses.
Result<std::vector<NetworkAddress>> VerbsConnection::sources() const {
  const VerbsSettings& settings = core_.settings();
  std::vector<std::string> texts = settings.rails;
  if (texts.empty() && !settings.bind_address.empty()) texts.push_back(settings.bind_address);
  std::vector<NetworkAddress> sources;
  for (const std::string& text : texts) {
    const auto found = addresses_of({text, 0}, true);
    if (!found) return fail(Errc::bad_config, "the source address " + text + " is no numeric address.");
    sources.push_back(found->front());
  }
  const auto* const first = queue_.first();
  if (first == nullptr || first->header.type != FrameType::join || sources.size() < 2) return sources;
  std::ranges::rotate(sources, sources.begin() + static_cast<std::ptrdiff_t>(first->header.lane % sources.size()));
  return sources;
}

/// Tries the next address. If all fail, the error of the last address is reported.
void VerbsConnection::connect_failed(const std::string& why) {
  opening_.error = why;
  try_next_address();
}

void VerbsConnection::try_next_address() {
  while (!opening_.routes.empty()) {
    const Route route = opening_.routes.front();
    opening_.routes.pop_front();
    const auto ok = start_resolving(route);
    if (ok) return;
    opening_.error = ok.error().message;
  }
  if (opening_.error.empty()) opening_.error = "none of its addresses is of our device's kind";
  broken({Errc::unreachable, "cannot connect to " + peer_ + ": " + opening_.error + "."});
}

Status VerbsConnection::start_resolving(const Route& route) {
  id_.reset();
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(core_.events(), &id, static_cast<Notified*>(this), RDMA_PS_TCP) != 0) {
    return fail(Errc::exhausted, "no more ids of the connection manager: " + text_of(errno));
  }
  id_.reset(id);
  auto from = route.from;
  auto to = route.to;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(opening_.deadline - Clock::now()).count();
  const int wait = static_cast<int>(std::clamp<std::int64_t>(left, 1, 60'000));
  if (rdma_resolve_addr(id, from ? from->get() : nullptr, to.get(), wait) != 0) {
    return fail(Errc::unreachable, "no RDMA device leads there: " + text_of(errno));
  }
  return {};
}

Greeting VerbsConnection::greeting() const {
  Greeting ours;
  ours.set_security(seal_ ? seal_->link().security : PacketSecurity::off);
  const std::uint32_t payload = seal_ ? core_.settings().sealed_bytes : core_.settings().eager_bytes;
  ours.receive_depth = static_cast<std::uint8_t>(std::clamp(core_.settings().receive_depth, kDepthMin, kDepthMax));
  const std::size_t longest =
      message_bytes_for(std::clamp<std::uint32_t>(payload, sizeof(RemotePayload), kEagerBytesMax));
  ours.message_eighths = static_cast<std::uint16_t>((longest + tag_bytes(ours.security())) / 8);
  return ours;
}

/// Makes the queue pairs, and posts receives before any side can send: a queue pair takes receives from its first state
/// on.
Status VerbsConnection::make_queue_pairs(std::uint64_t group, std::uint32_t count) {
  TRIBUTARY_ASSERT(pairs_.empty() && reserved_ == 0 && count >= 1 && count <= kQueuePairsMax,
                   "{} queue pairs are made beside {}", count, pairs_.size());
  const Greeting ours = greeting();
  credit_.post(ours.receive_depth);
  const std::uint32_t reads = std::clamp(core_.settings().reads_in_flight, 1U, kReadsMax);
  // The send queue has room for twice the messages that may be unacknowledged, because this side sees their completions
  // later. It also has room for binds and revocations of windows, for READs, for a probe, and for the requests that one
  // list may have beyond may_send().
  const auto sends_with = [&](std::uint32_t binds) {
    return 2 * credit_.depth() + 2 * binds + reads + 1 + static_cast<std::uint32_t>(SendList::kRoom);
  };
  // Windows are needed for payloads that the peer fetches, for places, and for the landing room.
  const std::uint32_t places = seal_ ? 0 : std::min(core_.settings().places_max, kPlacesMax);
  auto device =
      core_.device_of(id_->verbs, count * (credit_.depth() + sends_with(core_.settings().windows_max + places + 1)));
  if (!device) return std::unexpected(device.error());
  device_ = std::move(*device);
  const bool has_windows = !seal_ && device_->windows() > 0;
  binds_max_ = has_windows ? device_->windows() + places + 1 : 0;
  const std::uint32_t sends = sends_with(binds_max_);
  fetch_.set_reads_max(std::min(reads, device_->reads_max()));
  auto domain = device_->domain_of(group);
  if (!domain) return std::unexpected(domain.error());
  domain_ = std::move(*domain);
  if (auto ok = device_->reserve(count * (credit_.depth() + sends)); !ok) return ok;
  reserved_ = count * (credit_.depth() + sends);
  const QueuePair::Wanted wanted{.domain = domain_->get(),
                                 .completions = device_->completion_queue(),
                                 .sends = sends,
                                 .receives = credit_.depth(),
                                 .inline_bytes = core_.settings().inline_bytes,
                                 .reads_asked = static_cast<std::uint8_t>(fetch_.reads_max()),
                                 .reads_answered = static_cast<std::uint8_t>(device_->reads_max()),
                                 .extended = core_.settings().extended_posting,
                                 .extended_gathers = !device_->is_software_roce()};
  inline_bytes_ = core_.settings().inline_bytes;
  pairs_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    QueuePair pair;
    pair.index = i;
    if (auto ok = made_by_manager() ? pair.make_of_manager(*id_, wanted) : pair.make(wanted); !ok) {
      return fail(Errc::exhausted, "RDMA device " + device_->name() + " makes " + ok.error().message);
    }
    inline_bytes_ = std::min(inline_bytes_, pair.inline_bytes());
    pairs_.push_back(std::move(pair));
    ++core_.statistics.queue_pairs;
    if (pairs_.back().extended()) ++core_.statistics.queue_pairs_extended;
  }
  windows_.open(*domain_->get(), has_windows ? device_->windows() : 0, core_.statistics);
  for (MemoryWindow& window : landing_windows_) window.open(*domain_->get(), core_.statistics);
  places_.open(*domain_->get(), device_->writes_tell() ? places : 0, has_windows, core_.statistics);
  auto rings =
      Rings::make(*domain_, count * credit_.depth(), ours.message_bytes(), credit_.depth(), ours.message_bytes());
  if (!rings) return std::unexpected(rings.error());
  rings_ = std::move(*rings);
  if (!made_by_manager()) {
    if (auto ok = pairs_.front().prepare(*id_, core_.settings().path); !ok) return ok;
  }
  post_first_receives(pairs_.front());
  return {};
}

rdma_conn_param VerbsConnection::parameters(const Greeting& ours) const {
  TRIBUTARY_ASSERT(!pairs_.empty() && device_ != nullptr, "the connection to {} has no queue pair", peer_);
  rdma_conn_param parameters{};
  parameters.private_data = &ours;
  parameters.private_data_len = sizeof ours;
  parameters.responder_resources = static_cast<std::uint8_t>(device_->reads_max());
  parameters.initiator_depth = static_cast<std::uint8_t>(fetch_.reads_max());
  parameters.retry_count = std::min<std::uint8_t>(core_.settings().path.retry_count, 7);
  parameters.rnr_retry_count = std::min<std::uint8_t>(core_.settings().path.rnr_retry_count, 7);
  parameters.qp_num = pairs_.front().get()->qp_num;
  return parameters;
}

/// Each side uses the smaller of both sides' numbers.
void VerbsConnection::set_up_sending(const Greeting& theirs) {
  const Greeting ours = greeting();
  credit_.open(std::min(theirs.receive_depth, ours.receive_depth));
  message_bytes_ = std::min(theirs.message_bytes(), ours.message_bytes()) - tag_bytes(ours.security());
}

Status VerbsConnection::start_connecting() {
  std::optional<LinkKeys::Link> link;
  const auto* const first = queue_.first();
  if (first != nullptr) opening_.claimed_group = first->header.group;
  if (const auto& keys = core_.settings().keys) {
    const FrameHeader place = first == nullptr ? FrameHeader{} : first->header;
    if (!VerbsSealing::begin(*this, place)) return {};
    link = keys->to_connect(place.group, place.epoch, place.lane);
  }
  if (auto ok = make_queue_pairs(opening_.claimed_group, pairs_wanted()); !ok) return ok;
  opening_.first_packet = new_first_packet();
  Greeting ours = greeting_with_pairs();
  ours.group = opening_.claimed_group;
  if (first != nullptr) ours.lane = static_cast<std::uint8_t>(first->header.lane);
  if (link) {
    ours.epoch = link->link.name.epoch;
    ours.child = link->link.name.child;
    ours.proof = proof_of_request(link->secret, ours, *rdma_get_local_addr(id_.get()));
    opening_.proved_by = Proved{link->secret, ours.proof};
  }
  rdma_conn_param wanted = parameters(ours);
  if (rdma_connect(id_.get(), &wanted) != 0) return fail(Errc::unreachable, text_of(errno));
  return {};
}

void VerbsConnection::accept(ConnectionIdPtr id, const Greeting& theirs, std::uint8_t reads,
                             std::function<void()> accepted) {
  TRIBUTARY_ASSERT(state_ == State::connecting && !id_, "the connection to {} is accepted in state {}", peer_, state_);
  state_ = State::accepting;
  opening_.here = true;
  id_ = std::move(id);
  id_->context = static_cast<Notified*>(this);
  opening_.accepted = std::move(accepted);
  opening_.claimed_group = theirs.group;
  opening_.claimed_by_peer = true;
  core_.set_timer(*this, Clock::now() + kAcceptLimit);
  const auto& keys = core_.settings().keys;
  const auto secret = keys ? keys->of(claim_of(theirs)) : std::unexpected(NoSecret::unknown);
  const bool sealed = theirs.security() != PacketSecurity::off;
  if (sealed && secret) seal_ = SealedMessages::of_listener({{claim_of(theirs), theirs.security()}, *secret});
  const auto offered = static_cast<std::uint32_t>(
      std::ranges::count_if(theirs.further, [](const auto& number) { return value_of(number) != 0; }));
  auto ok = sealed && !seal_ ? Status(fail(Errc::denied, "its secret is gone"))
                             : make_queue_pairs(opening_.claimed_group, std::min(pairs_wanted(), offered + 1));
  opening_.first_packet = new_first_packet();
  if (ok) ok = join_pairs(theirs);
  if (ok) {
    set_up_sending(theirs);
    Greeting ours = greeting_with_pairs();
    if (secret) ours.proof = proof_of_answer(*secret, ours, theirs.proof);
    rdma_conn_param answer = parameters(ours);
    answer.responder_resources = std::min<std::uint8_t>(reads, static_cast<std::uint8_t>(device_->reads_max()));
    if (rdma_accept(id_.get(), &answer) == 0) return;
  }
  rdma_reject(id_.get(), nullptr, 0);
  tear_down();
}

void VerbsConnection::notice(const Notice& notice) {
  if (state_ == State::closed) return;
  const ConnectionPtr alive = shared_from_this();
  switch (notice.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: {
      // The traffic class is set first, because the path depends on it.
      std::uint8_t traffic_class = core_.settings().path.traffic_class;
      if (traffic_class != 0)
        rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof traffic_class);
      if (rdma_resolve_route(id_.get(), 2000) != 0) connect_failed("there is no route: " + text_of(errno));
      return;
    }
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (auto ok = start_connecting(); !ok)
        broken({ok.error().code, "cannot connect to " + peer_ + ": " + ok.error().message});
      return;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:  // comes for queue pairs of this side; iWARP gets ESTABLISHED at once
      if (state_ == State::connecting && join(notice)) {
        if (rdma_establish(id_.get()) != 0)
          return broken({Errc::io, "cannot connect to " + peer_ + ": " + text_of(errno) + "."});
        opened();
      }
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (state_ != State::connecting || message_bytes_ != 0 || join(notice)) opened();
      return;
    case RDMA_CM_EVENT_ADDR_ERROR:
      return connect_failed("no RDMA device leads there: " + text_of(-notice.status));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return connect_failed("there is no route: " + text_of(-notice.status));
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED: {
      // The other side has accepted, and closes while the client greets, or waits for the end of the handshake.
      if (state_ != State::connecting || message_bytes_ != 0)
        return broken({Errc::peer_gone, peer_ + " gave up connecting."});
      const std::string why = notice.event == RDMA_CM_EVENT_REJECTED ? refusal(notice) : "no answer";
      return broken({Errc::unreachable, "cannot connect to " + peer_ + ": " + why + "."});
    }
    case RDMA_CM_EVENT_DISCONNECTED:
      if (running()) return broken({Errc::peer_gone, peer_ + " closed the connection."});
      return broken({Errc::peer_gone, peer_ + " closed the connection before it was open."});
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      failed_ = true;
      return broken({Errc::io, "the connection to " + peer_ + " is broken: its RDMA device was removed."});
    default:
      return;  // changed addresses, and ends of connections that are closed already
  }
}

/// Takes the answer of the other side. Returns false if the connection is broken.
bool VerbsConnection::join(const Notice& answer) {
  Greeting theirs;
  if (!read_greeting({answer.data.data(), answer.data_bytes}, theirs)) {
    broken({Errc::corrupt, "the process at " + peer_ + " speaks another protocol."});
    return false;
  }
  if (theirs.security() != greeting().security()) {
    broken({Errc::denied, "the process at " + peer_ + " answers with another security than this side asked for."});
    return false;
  }
  if (opening_.proved_by &&
      !same_proof(theirs.proof, proof_of_answer(opening_.proved_by->secret, theirs, opening_.proved_by->proof))) {
    broken({Errc::denied, "the process at " + peer_ + " does not know the secret that it should."});
    return false;
  }
  set_up_sending(theirs);
  if (auto ok = join_pairs(theirs); !ok) {
    broken({Errc::io, "cannot connect to " + peer_ + ": " + ok.error().message + "."});
    return false;
  }
  return true;
}

void VerbsConnection::opened() {
  if (state_ != State::connecting && state_ != State::accepting) return;
  if (VerbsSealing::greets(*this)) return;
  const bool was_accepting = state_ == State::accepting;
  state_ = detached_ ? State::flushing : State::open;
  core_.make_due(*this);
  core_.make_dirty(*this);
  if (detached_) return;  // the timer of the flush runs
  core_.clear_timer(*this);
  keepalive_.heard = true;
  probe();  // repeated from time to time while no message comes
  if (was_accepting) {
    const auto accepted = std::exchange(opening_.accepted, nullptr);
    if (accepted) accepted();
    return;
  }
  core_.count_callback();
  handler_->on_open(*channel_);
}

}  // namespace tributary::transport::verbs
