#include "aggregator/worker/worker.h"

#include <algorithm>

#include "aggregator/worker/lane_node.h"
#include "aggregator/worker/session.h"
#include "tributary/protocol/lane_memory.h"
#include "tributary/protocol/reason.h"
#include "tributary/transport/source.h"

namespace tributary::aggregator {

namespace {
// The number of ended lanes that the worker remembers, so that a token that is still valid cannot bring a lane back.
// Tokens are valid for about two minutes; a worker that ends more lanes in that time forgets the oldest. A lane that
// came back would only wait for its other children until form_limit.
constexpr std::size_t kOverRemembered = 4096;
}  // namespace

bool MemoryBudget::reserve(std::uint64_t bytes) noexcept {
  return reserve_up_to(bytes, bytes_max_);
}

bool MemoryBudget::reserve_up_to(std::uint64_t bytes, std::uint64_t limit) noexcept {
  std::uint64_t in_use = in_use_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || in_use > limit - bytes) return false;
  } while (!in_use_.compare_exchange_weak(in_use, in_use + bytes, std::memory_order_relaxed));
  return true;
}

namespace {
Status check_claims(const TokenClaims& claims, std::string_view aggregator_name, std::size_t tokens) {
  if (claims.aggregator != aggregator_name) {
    return fail(
        Errc::denied, Reason::join_token_elsewhere,
        "the token is for aggregator '" + claims.aggregator + "', this is '" + std::string(aggregator_name) + "'");
  }
  if (claims.root != (tokens == 1)) {
    return fail(Errc::denied, Reason::join_contradicts,
                claims.root ? "the token is for a root, but tokens for a parent came with it"
                            : "no token for the parent came with the child's token");
  }
  return {};
}

/// Only the parent checks the signature of the token for it. But this aggregator keeps the secret of its connection to
/// the parent by the group, epoch and lane of this token, and no child may name those of another group.
Status check_parent(const TokenClaims& claims, const Token& token) {
  const auto parent = read_claims(token);
  if (!parent) return std::unexpected(parent.error());
  if (parent->group == claims.group && parent->epoch == claims.epoch && parent->lane == claims.lane) return {};
  return fail(Errc::denied, Reason::join_contradicts,
              "the token for the parent is for another group, epoch or lane than the child's token");
}
}  // namespace

Status check_join(std::string_view aggregator_name, std::span<const std::byte> payload, std::int64_t now_s) {
  const auto join = decode_join(payload);
  if (!join) return std::unexpected(join.error());
  const auto claims = read_claims(join->tokens.front());
  if (!claims) return std::unexpected(claims.error());
  if (auto ok = check_claims(*claims, aggregator_name, join->tokens.size()); !ok) return ok;
  if (now_s < claims->expires_at) return {};
  return fail(Errc::denied, Reason::join_token_expired,
              "the token expired " + std::to_string(now_s - claims->expires_at) +
                  " s ago; ask the manager for a new one (are the clocks set?)");
}

Result<VerifiedJoin> verify_join(const TokenVerifier& verifier, std::string_view aggregator_name,
                                 std::span<const std::byte> payload, std::int64_t now_s) {
  auto join = decode_join(payload);
  if (!join) return std::unexpected(join.error());
  TokenChain* const chain = &join->tokens;
  auto claims = verifier.verify(chain->front(), now_s);
  if (!claims) return std::unexpected(claims.error());
  if (auto ok = check_claims(*claims, aggregator_name, chain->size()); !ok) return std::unexpected(ok.error());
  chain->erase(chain->begin());
  if (!chain->empty()) {
    if (auto ok = check_parent(*claims, chain->front()); !ok) return std::unexpected(ok.error());
  }
  const bool named = claims->kind == ChildKind::aggregator;
  return VerifiedJoin{.claims = std::move(*claims),
                      .parent_tokens = std::move(*chain),
                      .child_name = named ? std::move(join->name) : std::string()};
}

Status add_parent_link(VerifiedJoin& join, const std::optional<SharedSecret>& shared, bool wanted) {
  if (join.parent_tokens.empty() || (!wanted && join.claims.security == PacketSecurity::off)) return {};
  if (!shared)
    return fail(Errc::denied, Reason::join_security,
                "aggregator " + join.claims.aggregator + " shares no secret with its manager");
  const auto parent = read_claims(join.parent_tokens.front());
  if (!parent) return std::unexpected(parent.error());
  const LinkName name{parent->group, parent->epoch, parent->lane, parent->child};
  join.parent_link = transport::LinkKeys::Link{{name, parent->security},
                                               masked(parent->masked_secret, *shared, name, parent->aggregator)};
  return {};
}

Worker::Worker(transport::Transport& transport, VerifyJoin verify, MemoryBudget& budget, WorkerSettings settings)
    : transport_(transport),
      verify_(std::move(verify)),
      budget_(budget),
      settings_(std::move(settings)),
      trace_(settings_.traced_segments_max),
      unjoined_(settings_.sessions_unjoined_max, WaitingRoom::kNoLimit),  // each session has its own deadline
      discard_(kSegmentBytesMax) {}

Worker::Worker(transport::Transport& transport, const TokenVerifier& verifier, MemoryBudget& budget,
               const WorkerSettings& settings, std::function<std::int64_t()> unix_seconds)
    : Worker(
          transport,
          [&verifier, name = settings.name, unix_seconds = std::move(unix_seconds)](
              std::span<const std::byte> payload) { return verify_join(verifier, name, payload, unix_seconds()); },
          budget, settings) {}

Worker::Worker(transport::Transport& transport, MemoryBudget& budget, WorkerSettings settings)
    : Worker(transport, VerifyJoin(), budget, std::move(settings)) {}

Worker::~Worker() {
  // Channels must end before the nodes from whose buffers they may be sending.
  sessions_.clear();
  nodes_.clear();  // sessions own nodes; nodes never own sessions
}

transport::ChannelHandler* Worker::on_accept(std::unique_ptr<transport::Channel> channel) {
  if (const auto displaced = unjoined_.makes_room()) {
    ++metrics_.sessions_displaced;
    reinterpret_cast<Session*>(static_cast<std::uintptr_t>(*displaced))->close();
  }
  const Source from = transport::source_of(channel->peer());
  auto session = std::make_unique<Session>(*this, transport_.now() + settings_.join_limit);
  session->attach(std::move(channel));
  Session* handler = session.get();
  sessions_.emplace(handler, std::move(session));
  const auto id = static_cast<WaitingRoom::Id>(reinterpret_cast<std::uintptr_t>(handler));
  unjoined_.enter(id, from, 0);
  handler->wait_in(unjoined_, id);
  return handler;
}

void Worker::take(const VerifiedJoin& verified,
                  const std::function<std::unique_ptr<transport::Channel>(transport::ChannelHandler&)>& attach) {
  auto session = std::make_unique<Session>(*this, transport_.now() + settings_.join_limit);
  Session* handler = session.get();
  auto channel = attach(*handler);
  if (!channel) return;
  session->attach(std::move(channel));
  sessions_.emplace(handler, std::move(session));
  join(*handler, verified);
}

void Worker::on_join(Session& session, const FrameHeader& header) {
  if (!verify_)
    return refuse(session,
                  {Errc::denied, coded(Reason::lane_ended, "this lane is over; connect again to join another")});
  session.begin_join(header, transport_.now() + transport::kKeyLimit);
  check_join_of(session);
}

/// Checks the join that has come. If it must wait for the manager's key, the next tick calls this function again.
void Worker::check_join_of(Session& session) {
  const auto [header, payload, key_until] = session.join_under_way();
  auto verified = verify_(payload);
  if (!verified && verified.error().code == Errc::retry && transport_.now() < key_until) return;
  session.end_join();
  if (!verified) return refuse(session, verified.error());
  // A transport may have used the header to put the connection into this group's protection domain.
  if (header.group != 0 && (header.group != verified->claims.group || header.lane != verified->claims.lane)) {
    return refuse(session, {Errc::denied, coded(Reason::join_token_elsewhere,
                                                "the join frame names another group or lane than its token")});
  }
  join(session, *verified);
}

void Worker::join(Session& session, const VerifiedJoin& verified) {
  session.take_place(verified.place);
  if (!draining_.empty())
    return refuse(session, {Errc::denied, coded(Reason::draining,
                                                "aggregator " + settings_.name + " takes no new lanes: " + draining_)});
  if (auto ok = check_seal(session, verified.claims); !ok) return refuse(session, ok.error());
  auto node = node_for(verified, session.channel().shares_memory());
  if (!node) return refuse(session, node.error());
  if (auto ok = (*node)->add(session, verified); !ok) return refuse(session, ok.error());
  give_share(session.channel(), verified.claims);
  ++metrics_.joins_accepted;
}

/// If a connection is not encrypted, other hosts can read a token, but never the secret of its place. Shared memory
/// needs no seal: only processes of this host and user can reach it.
Status Worker::check_seal(Session& session, const TokenClaims& claims) {
  const auto sealed = session.channel().sealed();
  const PacketSecurity have = sealed ? sealed->security : PacketSecurity::off;
  if (have < claims.security && !session.channel().shares_memory()) {
    return fail(Errc::denied, Reason::join_security,
                "the connections of group " + std::to_string(claims.group) + " must have security '" +
                    std::string(to_string(claims.security)) + "', and this connection has '" +
                    std::string(to_string(have)) + "'");
  }
  if (sealed && sealed->name != LinkName{claims.group, claims.epoch, claims.lane, claims.child}) {
    return fail(Errc::denied, Reason::join_token_elsewhere,
                "the connection is sealed for another place than its token is for");
  }
  return {};
}

void Worker::refuse(Session& session, const Error& error) {
  ++metrics_.joins_refused;
  const std::string reason = coded(Reason::join_malformed, error.message);
  metrics_.reasons.add(split_code(reason).reason);
  // A refused child usually gets time to read the reason. Under a flood of refusals the worker does not wait for it.
  if (++leaving_ > settings_.sessions_unjoined_max) return session.close();
  session.refuse(reason);
}

Result<std::shared_ptr<LaneNode>> Worker::node_for(const VerifiedJoin& verified, bool shared) {
  const TokenClaims& c = verified.claims;
  const LaneKey key{c.group, c.epoch, c.lane};
  if (const auto it = nodes_.find(key); it != nodes_.end()) return it->second;
  if (was_over(key))
    return fail(Errc::denied, Reason::lane_ended,
                "this lane has ended in epoch " + std::to_string(c.epoch) + "; ask the manager for the next epoch");
  const std::uint64_t bytes = lane_memory_bytes(c.children, c.window, c.segment_bytes);
  if (!budget_.reserve(bytes)) {
    return fail(Errc::exhausted, Reason::no_memory,
                "aggregator " + settings_.name + " has " + std::to_string(budget_.bytes_max() - budget_.in_use()) +
                    " of " + std::to_string(budget_.bytes_max()) + " bytes left; this lane needs " +
                    std::to_string(bytes));
  }
  std::shared_ptr<LaneNode> node;
  try {
    node = std::make_shared<LaneNode>(*this, verified, bytes, shared, transport_.now());
  } catch (const std::bad_alloc&) {
    budget_.give_back(bytes);
    return fail(Errc::exhausted, Reason::no_memory,
                "the host of aggregator " + settings_.name + " has no " + std::to_string(bytes) +
                    " bytes of memory for this lane");
  }
  nodes_.emplace(key, node);
  return node;
}

void Worker::give_share(transport::Channel& channel, const TokenClaims& claims) {
  // No tenant's name has a blank.
  const std::string party = claims.tenant.empty() ? "group " + std::to_string(claims.group) : claims.tenant;
  PartyShares& known = shares_[party];
  auto share = known.turns.lock();
  if (share) {
    share->set_weight(claims.weight);
  } else {
    known.turns = share = std::make_shared<transport::TurnShare>(claims.weight, parties_);
  }
  channel.set_turn_share(std::move(share));
  if (!settings_.link_classes) return;
  if (!known.link_class || known.weight != claims.weight) {
    known.link_class = settings_.link_classes->enter(party, claims.weight);
    known.weight = claims.weight;
  }
  channel.set_priority(known.link_class->priority());
}

void Worker::note_changed(const transport::Channel& channel, const std::string& lane, const Error& error) const {
  if (error.code != Errc::corrupt || !channel.sealed() || !settings_.changed) return;
  settings_.changed->add(lane + ": " + error.message);
}

void Worker::remember_over(const LaneKey& key) {
  over_.push_back(key);
  if (over_.size() > kOverRemembered) over_.pop_front();
}

bool Worker::was_over(const LaneKey& key) const {
  return std::find(over_.begin(), over_.end(), key) != over_.end();
}

void Worker::tick(transport::TimePoint now) {
  turn_ends();
  metrics_.share_waits = parties_->waits;
  for (auto& [session, owner] : sessions_) {
    if (session->is_joined() || session->over()) continue;
    if (session->waits_for_key()) {
      check_join_of(*session);
      if (session->is_joined()) session->channel().resume();
      if (session->is_joined() || session->over()) continue;
    }
    if (now >= session->join_deadline())
      refuse(*session, {Errc::timed_out, coded(Reason::join_late, "no join came in time")});
  }
  for (auto& [key, node] : nodes_) node->tick(now);
  std::erase_if(nodes_, [&](const auto& entry) {
    if (!entry.second->clearable(now)) return false;
    remember_over(entry.first);
    return true;
  });
  std::erase_if(sessions_, [&](const auto& entry) { return entry.first->clearable(now); });
  std::erase_if(shares_, [](const auto& entry) { return entry.second.turns.expired(); });
  const auto over = [](const auto& entry) { return entry.first->over(); };
  leaving_ = static_cast<std::size_t>(std::ranges::count_if(sessions_, over));
}

void Worker::drain(const std::string& reason) {
  draining_ = reason;
  for (auto& [key, node] : nodes_) node->fail(Reason::draining, "aggregator " + settings_.name + " drains: " + reason);
}

std::vector<LaneStatus> Worker::lanes() const {
  std::vector<LaneStatus> list;
  list.reserve(nodes_.size());
  for (const auto& [key, node] : nodes_) list.push_back(node->status());
  return list;
}

}  // namespace tributary::aggregator
