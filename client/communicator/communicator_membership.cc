// How the ranks meet, and how they talk to rank 0.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/communicator/communicator.h"
#include "client/communicator/host_level.h"
#include "client/control/control_link.h"
#include "client/control/json_number.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::client {

using nlohmann::json;
using transport::TimePoint;

namespace {

/// "10.0.0.1" of "10.0.0.1:7471", "::1" of "[::1]:7471".
std::string host_of(const std::string& peer) {
  const auto endpoint = parse_endpoint(peer);
  return endpoint ? endpoint->host : peer;
}

}  // namespace

void Communicator::start(std::function<void(const Status&)> on_ready) {
  look_at_clock(transport_.now());
  on_ready_ = std::move(on_ready);
  // Rank 0 gives up first, so that the others hear from it who is missing.
  ready_deadline_ = now_ + (settings_.rank == 0 ? settings_.timeout : settings_.timeout * 21 / 20);
  host_tokens_.resize(settings_.rank == 0 ? settings_.nranks : 0);
  control_.resize(settings_.rank == 0 ? settings_.nranks : 1);
  if (auto ok = open_listeners(); !ok) return begin_failing(ok.error());
  if (settings_.rank == 0) {
    if (settings_.nranks == 1) welcome_all();
    return;
  }
  meet_rank_0();
}

void Communicator::meet_rank_0() {
  if (control_[0]) discarded_control_.push_back(std::move(control_[0]));
  control_[0] = std::make_unique<ControlLink>(*this, 0);
  control_[0]->connect(
      star_, settings_.id.root, std::chrono::seconds(5),
      ConnectingProof(settings_.id.secret, {.purpose = "control", .connecting = settings_.rank, .accepting = 0}));
}

transport::ChannelHandler* Communicator::on_accept(std::unique_ptr<transport::Channel> channel) {
  look_at_clock(transport_.now());
  return &arrivals_.enter(*this, std::move(channel), now_);
}

/// Sent only to the one that has proved to be rank 0.
std::string Communicator::introduction() const {
  return json{{"nranks", settings_.nranks},
              {"host_id", settings_.host_id},
              {"host_token", host_token()},
              {"port", listener_->local().port},
              {"second_port", second_listener_ ? second_listener_->local().port : 0},
              {"address", settings_.advertised_host}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

void Communicator::on_hello(Arrival& arrival, const std::string& body) {
  const json hello = json_or_discarded(body);
  if (settings_.rank != 0 || !hello.is_object()) return arrival.refuse("this is not rank 0 of your group");
  if (error_) return arrival.refuse(error_->message);  // it stood still when this was told
  const std::uint32_t rank = arrival.scope().connecting;
  try {
    const auto nranks = json_number<std::uint32_t>(hello.at("nranks"));
    if (nranks != settings_.nranks) {
      return arrival.refuse("rank 0 makes a communicator of " + std::to_string(settings_.nranks) + " ranks, rank " +
                            std::to_string(rank) + " one of " + std::to_string(nranks));
    }
    if (rank == 0 || rank >= settings_.nranks)
      return arrival.refuse("there is no place for a rank " + std::to_string(rank));
    if (ready_ || control_[rank])
      return arrival.refuse("rank " + std::to_string(rank) +
                            " has joined already: two processes were given the same rank");
    const auto address = hello.at("address").get<std::string>();
    directory_.learn(rank, {.at = {address.empty() ? host_of(arrival.peer()) : address,
                                   json_number<std::uint16_t>(hello.at("port"))},
                            .second_port = json_number<std::uint16_t>(hello.at("second_port")),
                            .host_id = hello.at("host_id").get<std::string>()});
    host_tokens_[rank] = hello.value("host_token", std::string());
    control_[rank] = std::make_unique<ControlLink>(*this, rank);
    control_[rank]->adopt(std::move(arrival.channel()), arrival.take_seals());
    arrival.hand_on(*control_[rank]);
  } catch (const json::exception&) {
    return arrival.refuse("a malformed introduction");
  }
  if (++met_ + 1 == settings_.nranks) welcome_all();
}

void Communicator::on_peer_hello(Arrival& arrival) {
  const ProofScope& scope = arrival.scope();
  for (std::size_t i = 0; i < kPeerClasses; ++i) {
    const auto peer_class = static_cast<PeerClass>(i);
    if (to_string(peer_class) != scope.purpose) continue;
    const auto way = peer_hello_of(scope.detail);
    if (!way) return arrival.refuse(way.error().message);
    transport::ChannelHandler* handler = mesh_->accept(peer_class, scope.connecting, *way, arrival.channel());
    if (handler == nullptr)
      return arrival.refuse("rank " + std::to_string(scope.connecting) + " has this connection already");
    return arrival.hand_on(*handler);
  }
  arrival.refuse("an unknown kind of connection");
}

/// Ranks that tell the same address share its cores; the topology says between which of them there are links.
tuning::Policy Communicator::make_policy() const {
  tuning::GroupShape shape{.ranks = settings_.nranks};
  shape.ranks_per_host = directory_.ranks_of_fullest_address();
  const auto hosts = directory_.host_ids();
  shape.one_host = std::ranges::all_of(hosts, [&](const std::string& host) { return host == hosts[0]; });
  switch (settings_.tuning) {
    case TuningMode::off:
      return tuning::trees_always(shape);
    case TuningMode::automatic:
      return tuning::default_policy(shape, tuning::cores_here());
    case TuningMode::table:
      return tuning::policy_of(settings_.tuning_table, shape);
  }
  return {};
}

void Communicator::welcome_all() {
  policy_ = make_policy();
  auto place = open_local_place();
  const auto leaders = place ? std::nullopt : open_host_level();
  json welcome{{"tuning", tuning::encode(policy_)}, {"local", place.has_value()}};
  if (leaders) welcome["hosts"] = json{{"ranks", hosts::encode(host_level_->map())}, {"port", leaders->port}};
  for (std::uint32_t r = 1; r < settings_.nranks; ++r) {
    welcome["members"] = members_to_json(directory_, usual_peers(r, settings_.nranks));
    control_[r]->send(
        {.type = FrameType::welcome, .body = welcome.dump(-1, ' ', false, json::error_handler_t::replace)});
  }
  have_members();
  if (place) return meet_locally(std::move(place));
  if (leaders) return meet_by_hosts(*leaders);
  start_coordinator();
}

void Communicator::start_coordinator() {
  CoordinatorSettings c;
  c.nranks = settings_.nranks;
  c.hosts = directory_.host_ids();
  c.job = settings_.job;
  c.lanes = settings_.lanes;
  if (settings_.link_keys) c.packet_security = settings_.link_keys->least();
  if (settings_.link_keys && settings_.link_keys->wanted()) {
    if (const auto exchange = exchange_key_of_group(settings_.id.secret)) c.exchange_key = exchange->public_key();
  }
  c.known_as = settings_.known_as;
  c.first_commit = local_ ? kCommitLocal : host_level_ ? kCommitHosts : 0;
  c.use_trees = settings_.nranks > 1 && settings_.manager_configured && settings_.path != PathMode::fallback &&
                c.first_commit == 0;
  c.why_not = settings_.nranks == 1                  ? "one rank alone"
              : local_                               ? "all ranks are on one host"
              : host_level_                          ? path_between()
              : settings_.path == PathMode::fallback ? "TRIBUTARY_PATH is fallback"
                                                     : "no manager is configured (TRIBUTARY_MANAGER)";
  c.may_move = settings_.path != PathMode::in_network;  // moving takes the fallback for a moment
  c.inquiry_limit = settings_.timeout / 5;
  c.timeout = c.finalize_limit = settings_.timeout;
  c.join_limit = std::min<transport::Duration>(c.join_limit, settings_.timeout / 3);
  c.answer_limit = std::min<transport::Duration>(c.answer_limit, settings_.timeout / 3);
  c.begin_within = settings_.path == PathMode::in_network ? transport::Duration::max() : settings_.begin_within;
  GroupService* const service = host_level_ ? nullptr : service_;  // else it is the leaders' to use
  coordinator_ = std::make_unique<Coordinator>(static_cast<CoordinatorOutput&>(*this), service, std::move(c));
  coordinator_->start(now_);
}

void Communicator::on_welcome(const std::string& body) {
  if (error_ || failing_) return;
  const json object = json_or_discarded(body);
  std::optional<Endpoint> leaders;
  try {
    if (mesh_) throw std::invalid_argument("a second welcome");
    if (object.value("local", false)) meet_locally(std::nullopt);
    (void)learn_members(directory_, object.at("members"));
    if (directory_.find(0) == nullptr) throw std::invalid_argument("members");
    Member root = *directory_.find(0);
    root.at.host = settings_.id.root.host;  // as it is reached from here
    (two_ways_ != nullptr ? root.second_port : root.at.port) = settings_.id.root.port;
    directory_.learn(0, std::move(root));
    auto policy = tuning::decode_policy(object.at("tuning").get<std::string>());
    if (!policy) return begin_failing({Errc::corrupt, "rank 0 sent " + policy.error().message});
    policy_ = std::move(*policy);
    if (const auto it = object.find("hosts"); it != object.end()) {
      auto map = hosts::decode_hosts(it->at("ranks").get<std::string>(), settings_.nranks);
      if (!map) return begin_failing({Errc::corrupt, "rank 0 sent " + map.error().message});
      leaders = Endpoint{settings_.id.root.host, json_number<std::uint16_t>(it->at("port"))};
      make_host_level(std::move(*map));
    }
  } catch (const std::exception&) {
    return begin_failing({Errc::corrupt, "rank 0 sent a malformed table of members"});
  }
  have_members();
  if (leaders) meet_by_hosts(*leaders);
}

void Communicator::have_members() {
  directory_.on_wanted = [this] {
    transport_.post([this, alive = alive_] {
      if (*alive) ask_for_members();
    });
  };
  mesh_ = std::make_unique<PeerMesh>(ways(), directory_, settings_.rank, settings_.id.secret, settings_.timeout / 3);
  for (const auto peer_class : {PeerClass::collective, PeerClass::repair}) mesh_->set_user(peer_class, *this);
  runner_ = std::make_unique<FallbackRunner>(*mesh_, settings_.rank, settings_.nranks, policy_);
  messages_.use(*mesh_);
  arrivals_.resume();
}

// Rank 0's own messages take the long way through the transport's queue, so that a handler never changes what its
// caller is walking through.
void Communicator::tell_rank_0(ControlMessage message) {
  if (settings_.rank != 0) {
    if (!control_.empty() && control_[0]) control_[0]->send(message);
    return;
  }
  transport_.post([this, alive = alive_, m = std::move(message)] {
    if (!*alive || !coordinator_) return;
    look_at_clock(transport_.now());
    coordinator_->on_message(0, m, now_);
  });
}

void Communicator::send(std::uint32_t rank, const ControlMessage& message) {
  if (rank != 0) {
    if (control_[rank]) control_[rank]->send(message);
    return;
  }
  transport_.post([this, alive = alive_, m = message] {
    if (*alive) handle(m);
  });
}

void Communicator::broadcast(const ControlMessage& message) {
  for (std::uint32_t r = 0; r < settings_.nranks; ++r) send(r, message);
}

void Communicator::on_control(std::uint32_t from, const ControlMessage& message) {
  look_at_clock(transport_.now());
  if (settings_.rank == 0) {
    if (message.type == FrameType::second_way) {
      if (message.operation == from) spread_second_way(message);
    } else if (message.type == FrameType::whereabouts) {
      answer_whereabouts(from, message.body);
    } else if (coordinator_) {
      coordinator_->on_message(from, message, now_);
    } else {
      on_hosts_failed(from, message);
    }
    return;
  }
  if (message.type == FrameType::welcome) return on_welcome(message.body);
  if (!mesh_ && message.type != FrameType::abort) {
    return begin_failing(
        {Errc::corrupt, "rank 0 sent a " + std::string(to_string(message.type)) + " frame before its welcome"});
  }
  handle(message);
}

void Communicator::handle(const ControlMessage& message) {
  look_at_clock(transport_.now());
  switch (message.type) {
    case FrameType::descriptor:
      return on_descriptor(message);
    case FrameType::propose:
      return on_propose(message);
    case FrameType::commit:
      return on_commit(message);
    case FrameType::freeze:
      return on_freeze(message);
    case FrameType::recover:
      return on_recover(message);
    case FrameType::inquiry:
      return on_inquiry(message);
    case FrameType::second_way:
      return on_second_way_of(message);
    case FrameType::members:
      return on_members(message.body);
    case FrameType::abort:
      if (!failing_ && !error_) disputed_ = message.operation;
      return begin_failing({static_cast<Errc>(message.value), message.body});
    case FrameType::finalize:
      return take_leave();
    default:
      return;
  }
}

void Communicator::take_leave() {
  if (!finalize_sent_) {
    return begin_failing({Errc::corrupt, "rank 0 ends the communicator, which rank " +
                                             std::to_string(known_as(settings_.rank)) + " still uses"});
  }
  finalized_ = true;
  if (trees_ && !frozen_) {
    for (auto& lane : trees_->lanes) lane->leave(std::chrono::seconds(1));
  }
  auto done = std::exchange(on_finalized_, nullptr);
  if (!done) return;
  if (!host_level_) return done({});
  host_level_->finalize([done = std::move(done)] { done({}); });
}

void Communicator::control_closed(std::uint32_t rank, const std::string& why) {
  look_at_clock(transport_.now());
  if (finalized_) return;
  if (settings_.rank == 0) {
    if (coordinator_) {
      coordinator_->on_rank_gone(rank, why);
    } else if (mesh_) {  // all have met, and are on their way to shared memory
      broadcast({.type = FrameType::abort,
                 .value = static_cast<std::uint64_t>(Errc::peer_gone),
                 .body = "rank " + std::to_string(rank) + directory_.on_host(rank) + " is gone: " + why});
    } else {
      discarded_control_.push_back(std::move(control_[rank]));  // it may come again: the group has not met yet
      --met_;
    }
    return;
  }
  if (!mesh_ && now_ < ready_deadline_) {
    reconnect_.failed(now_);
    return;
  }
  begin_failing({Errc::peer_gone, "rank 0 on " + to_string(settings_.id.root) + " is gone: " + why});
}

/// Somebody answers at rank 0's address, and nothing that he says is believed.
void Communicator::not_rank_0(const std::string& why) {
  look_at_clock(transport_.now());
  begin_failing({Errc::denied, "the process that answers at " + to_string(settings_.id.root) +
                                   " has not proved to be rank 0 of this group: " + why +
                                   ". It was told nothing. Either rank 0 has another unique id than rank " +
                                   std::to_string(known_as(settings_.rank)) +
                                   ", or another program is at its address"});
}

}  // namespace tributary::client
