#include "client/communicator/membership.h"

#include <nlohmann/json.hpp>

#include "client/collectives/local/meeting_place.h"
#include "client/control/json_number.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/protocol/link_rate.h"

namespace tributary::client {

using nlohmann::json;

namespace {

/// Returns the host of an endpoint's text: "10.0.0.1" of "10.0.0.1:7471", "::1" of "[::1]:7471".
std::string host_of(const std::string& peer) {
  const auto endpoint = parse_endpoint(peer);
  return endpoint ? endpoint->host : peer;
}

/// Returns this rank's process; an unknown one if nobody is to look at it.
ProcessPlace process_of(const CommunicatorSettings& settings) {
  return settings.neighbours && settings.nranks > 1 ? own_process_place() : ProcessPlace();
}

/// Returns the process that a rank has introduced. An older rank names none.
ProcessPlace process_in(const json& hello) {
  const auto number = hello.find("process");
  if (number == hello.end()) return {};
  return {.space = hello.value("process_space", std::string()),
          .number = static_cast<pid_t>(json_number<std::uint32_t>(*number))};
}

}  // namespace

std::string host_token_of(const CommunicatorSettings& settings) {
  return settings.local && settings.nranks > 1 ? local::host_token() : std::string();
}

Membership::Membership(Shared& shared, MembershipUser& user, SecondWayUse& second_way)
    : shared_(shared),
      user_(user),
      second_way_(second_way),
      star_(transport::lasting_way(shared.transport)),
      arrivals_(shared.settings.nranks),
      directory_(shared.settings.rank, shared.settings.nranks) {}

Status Membership::start() {
  const bool root = rank() == 0;
  host_tokens_.resize(root ? shared_.settings.nranks : 0);
  links_.resize(root ? shared_.settings.nranks : 1);
  if (auto ok = open_listeners(); !ok) return ok;
  if (root) {
    host_tokens_[0] = host_token_of(shared_.settings);
  } else {
    meet_rank_0();
  }
  return {};
}

/// Opens this rank's listeners. On rank 0 one of them is open already: it was made with the unique id.
Status Membership::open_listeners() {
  const bool root = rank() == 0;
  const CommunicatorSettings& settings = shared_.settings;
  const Endpoint at = root ? Endpoint{settings.id.root.host, 0} : settings.listen;
  const auto open = [&](transport::Transport& way, std::unique_ptr<transport::Listener>& into) -> Status {
    auto listener = way.listen(at, *this);
    if (!listener) return std::unexpected(listener.error());
    into = std::move(*listener);
    return {};
  };
  if (!root && second_way_.exists()) {
    if (auto ok = open(second_way_.second(), second_listener_); !ok) return ok;
  }
  Member self{.at = settings.id.root,
              .second_port = settings.id.root.port,
              .host_id = settings.host_id,
              .link_rate = settings.link_rate,
              .rail = settings.rail,
              .process = process_of(settings)};
  if (!root || second_way_.exists()) {
    if (auto ok = open(shared_.transport, listener_); !ok) return ok;
    self.at.port = listener_->local().port;
  }
  if (root) directory_.learn(0, std::move(self));
  return {};
}

void Membership::meet_rank_0() {
  TRIBUTARY_ASSERT(rank() != 0 && links_.size() == 1, "rank {} meets rank 0 by {} links", rank(), links_.size());
  if (links_[0]) discarded_.push_back(std::move(links_[0]));
  links_[0] = std::make_unique<ControlLink>(static_cast<ControlLinkUser&>(*this), 0);
  links_[0]->connect(star_, shared_.settings.id.root, std::chrono::seconds(5),
                     ConnectingProof(secret(), {.purpose = "control", .connecting = rank(), .accepting = 0}));
}

transport::ChannelHandler* Membership::on_accept(std::unique_ptr<transport::Channel> channel) {
  shared_.whole.look_at_clock();
  return &arrivals_.enter(static_cast<ArrivalUser&>(*this), std::move(channel), shared_.clock.now());
}

/// Returns this rank's introduction. Only a process that has proved to be rank 0 gets this text.
std::string Membership::introduction() const {
  const ProcessPlace process = process_of(shared_.settings);
  return json{{"nranks", shared_.settings.nranks},
              {"host_id", shared_.settings.host_id},
              {"host_token", host_token_of(shared_.settings)},
              {"port", listener_->local().port},
              {"second_port", second_listener_ ? second_listener_->local().port : 0},
              {"address", shared_.settings.advertised_host},
              {"link_rate", shared_.settings.link_rate},
              {"rail", shared_.settings.rail},
              {"process_space", process.space},
              {"process", process.number},
              {"amends", true}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

void Membership::on_hello(Arrival& arrival, const std::string& body) {
  if (rank() != 0) return arrival.refuse("this is not rank 0 of your group");
  // If the communicator has failed, tell its error: this rank comes only now, and so has not heard of the error.
  if (const auto& error = shared_.life.error()) return arrival.refuse(error->message);
  admit(arrival, body);
}

/// On rank 0: admits a rank that has proved itself and now introduces itself.
void Membership::admit(Arrival& arrival, const std::string& body) {
  const json hello = json_or_discarded(body);
  if (!hello.is_object()) return arrival.refuse("this is not rank 0 of your group");
  const std::uint32_t from = arrival.scope().connecting;
  const std::uint32_t nranks = shared_.settings.nranks;
  try {
    const auto theirs = json_number<std::uint32_t>(hello.at("nranks"));
    if (theirs != nranks) {
      return arrival.refuse("rank 0 makes a communicator of " + std::to_string(nranks) + " ranks, rank " +
                            std::to_string(from) + " makes one of " + std::to_string(theirs));
    }
    if (from == 0 || from >= nranks) return arrival.refuse("there is no place for a rank " + std::to_string(from));
    if (shared_.life.has_begun() || links_[from])
      return arrival.refuse("rank " + std::to_string(from) +
                            " has joined already: two processes were given the same rank");
    const auto address = hello.at("address").get<std::string>();
    directory_.learn(from, {.at = {address.empty() ? host_of(arrival.peer()) : address,
                                   json_number<std::uint16_t>(hello.at("port"))},
                            .second_port = json_number<std::uint16_t>(hello.at("second_port")),
                            .host_id = hello.at("host_id").get<std::string>(),
                            .link_rate = std::min(hello.value("link_rate", std::uint64_t{0}), kLinkRateMax),
                            .rail = hello.value("rail", std::string()),
                            .process = process_in(hello)});
    host_tokens_[from] = hello.value("host_token", std::string());
    if (hello.value("amends", false)) {
      not_amending_.erase(from);  // a rank that comes again counts once
    } else {
      not_amending_.insert(from);
    }
    links_[from] = std::make_unique<ControlLink>(static_cast<ControlLinkUser&>(*this), from);
    links_[from]->adopt(std::move(arrival.channel()), arrival.take_seals());
    arrival.hand_on(*links_[from]);
  } catch (const json::exception&) {
    return arrival.refuse("a malformed introduction");
  }
  TRIBUTARY_ASSERT(come_ + 1 < nranks, "{} ranks beside rank 0 have come, of {} in all", come_, nranks);
  if (++come_ + 1 == nranks) user_.all_have_come();
}

void Membership::on_peer_hello(Arrival& arrival) {
  const ProofScope& scope = arrival.scope();
  for (std::size_t i = 0; i < kPeerClasses; ++i) {
    const auto peer_class = static_cast<PeerClass>(i);
    if (to_string(peer_class) != scope.purpose) continue;
    const auto way = peer_hello_of(scope.detail);
    if (!way) return arrival.refuse(way.error().message);
    const auto [handler, moved] = mesh_->accept(peer_class, scope.connecting, *way, arrival.channel());
    if (handler == nullptr)
      return arrival.refuse("rank " + std::to_string(scope.connecting) + " has this connection already");
    arrival.hand_on(*handler);
    if (moved) arrival.leave();
    return;
  }
  arrival.refuse("an unknown kind of connection");
}

void Membership::learn(const json& members) {
  (void)learn_members(directory_, members);
  if (directory_.find(0) == nullptr) throw std::invalid_argument("members");
  const Endpoint& root = shared_.settings.id.root;
  Member rank_0 = *directory_.find(0);
  rank_0.at.host = root.host;
  (second_way_.exists() ? rank_0.second_port : rank_0.at.port) = root.port;
  directory_.learn(0, std::move(rank_0));
}

void Membership::use(PeerMesh& mesh) {
  TRIBUTARY_ASSERT(mesh_ == nullptr, "the ranks meet twice, in a group of {}", shared_.settings.nranks);
  mesh_ = &mesh;
  second_way_.watch(mesh, listener_ ? listener_->local().host : "");
  directory_.on_wanted = [this] {
    shared_.transport.post([this, alive = shared_.alive] {
      if (*alive) ask_for_members();
    });
  };
  arrivals_.resume();
}

void Membership::ask_for_members() {
  if (const auto ranks = directory_.take_wanted(); !ranks.empty() && rank() != 0)
    tell_rank_0({.type = FrameType::whereabouts, .body = json(ranks).dump()});
}

/// On rank 0: answers a rank that asks for the address of another.
void Membership::answer_whereabouts(std::uint32_t from, const std::string& body) {
  const auto ranks = decode_ranks(body, shared_.settings.nranks);
  if (mesh_ == nullptr || !ranks) return;
  tell(from, {.type = FrameType::members,
              .body = members_to_json(directory_, *ranks).dump(-1, ' ', false, json::error_handler_t::replace)});
}

void Membership::on_members(const std::string& body) {
  if (mesh_ == nullptr || !shared_.life.well()) return;
  try {
    for (const std::uint32_t found : learn_members(directory_, json_or_discarded(body))) mesh_->found(found);
  } catch (const std::exception&) {
    shared_.whole.begin_failing({Errc::corrupt, "rank 0 sent a malformed table of members"});
  }
}

void Membership::tell_rank_0(ControlMessage message) {
  if (rank() != 0) {
    if (!links_.empty() && links_[0]) links_[0]->send(message);
    return;
  }
  shared_.transport.post([this, alive = shared_.alive, m = std::move(message)] {
    if (!*alive) return;
    shared_.whole.look_at_clock();
    user_.on_word_to_rank_0(0, m);
  });
}

void Membership::tell(std::uint32_t to, const ControlMessage& message) {
  if (to != 0) {
    TRIBUTARY_ASSERT(rank() == 0 && to < links_.size(), "rank {} tells rank {} of {}", rank(), to, links_.size());
    if (links_[to]) links_[to]->send(message);
    return;
  }
  shared_.transport.post([this, alive = shared_.alive, m = message] {
    if (!*alive) return;
    shared_.whole.look_at_clock();
    user_.on_word_of_rank_0(m);
  });
}

void Membership::tell_all(const ControlMessage& message) {
  for (std::uint32_t to = 0; to < shared_.settings.nranks; ++to) tell(to, message);
}

void Membership::tell_those_here(const ControlMessage& message) {
  for (auto& link : links_) {
    if (rank() == 0 && link) link->send(message);
  }
}

void Membership::close() {
  for (auto& link : links_) {
    if (link) link->close_after_flush(std::chrono::seconds(1));
  }
}

void Membership::tick() {
  discarded_.clear();
  arrivals_.tick(shared_.clock.now());
  if (reconnect_.take_due(shared_.clock.now())) meet_rank_0();
}

void Membership::on_control(std::uint32_t from, const ControlMessage& message) {
  shared_.whole.look_at_clock();
  if (rank() == 0) {
    if (message.type == FrameType::second_way) {
      if (message.operation == from) second_way_.spread(message);
    } else if (message.type == FrameType::whereabouts) {
      answer_whereabouts(from, message.body);
    } else {
      user_.on_word_to_rank_0(from, message);
    }
    return;
  }
  if (mesh_ == nullptr && message.type != FrameType::abort && message.type != FrameType::welcome) {
    return shared_.whole.begin_failing(
        {Errc::corrupt, "rank 0 sent a " + std::string(to_string(message.type)) + " frame before its welcome"});
  }
  if (message.type == FrameType::members) return on_members(message.body);
  user_.on_word_of_rank_0(message);
}

void Membership::control_closed(std::uint32_t from, const std::string& why) {
  shared_.whole.look_at_clock();
  if (shared_.life.left()) return;
  if (rank() == 0) {
    if (mesh_ != nullptr) return user_.on_rank_gone(from, why);
    discarded_.push_back(std::move(links_[from]));  // the rank may connect again: the group has not met yet
    --come_;
    return;
  }
  if (mesh_ == nullptr && shared_.life.well()) return reconnect_.failed(shared_.clock.now());
  shared_.whole.begin_failing(
      {Errc::peer_gone, "rank 0 on " + to_string(shared_.settings.id.root) + " is gone: " + why});
}

/// Fails: a process answers at rank 0's address, but has not proved to be rank 0. This rank believes none of its words.
void Membership::not_rank_0(const std::string& why) {
  shared_.whole.look_at_clock();
  shared_.whole.begin_failing(
      {Errc::denied, "the process that answers at " + to_string(shared_.settings.id.root) +
                         " has not proved to be rank 0 of this group: " + why +
                         ". It was told nothing. Either rank 0 has another unique id than rank " +
                         std::to_string(shared_.known_as()) + ", or another program is at its address"});
}

std::string Membership::missing() const {
  constexpr std::uint32_t kNamedMax = 32;
  std::string text = "these ranks did not come: ";
  std::uint32_t missing = 0;
  for (std::uint32_t r = 1; r < shared_.settings.nranks; ++r) {
    if (links_[r] || ++missing > kNamedMax) continue;
    text += (missing == 1 ? "rank " : ", rank ") + std::to_string(r);
  }
  return missing <= kNamedMax ? text : text + " and " + std::to_string(missing - kNamedMax) + " more";
}

}  // namespace tributary::client
