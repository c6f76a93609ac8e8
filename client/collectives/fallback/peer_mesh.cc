#include "client/collectives/fallback/peer_mesh.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tributary/protocol/assert.h"

namespace tributary::client {

namespace {

// If there is a second way, no rank waits longer than this for a channel of the first way.
constexpr auto kFirstWayLimit = std::chrono::seconds(5);
// A connection that was refused or displaced is tried again after this time.
constexpr auto kAgainFirst = std::chrono::milliseconds(20), kAgainLast = std::chrono::milliseconds(1000);

constexpr std::array kClasses{PeerClass::collective, PeerClass::message, PeerClass::repair, PeerClass::tagged,
                              PeerClass::share};
static_assert(kClasses.size() == kPeerClasses);

}  // namespace

PeerMesh::PeerMesh(PeerWays ways, Directory& directory, std::uint32_t rank, const Secret& secret,
                   transport::Duration connect_limit)
    : ways_(ways), directory_(directory), rank_(rank), secret_(secret), connect_limit_(connect_limit) {}

PeerLink* PeerMesh::existing(PeerClass peer_class, std::uint32_t peer) const {
  const auto& links = links_[static_cast<std::size_t>(peer_class)];
  const auto it = links.find(peer);
  return it == links.end() ? nullptr : it->second.get();
}

PeerLink& PeerMesh::link(PeerClass peer_class, std::uint32_t peer) {
  if (PeerLink* const link = existing(peer_class, peer)) return *link;
  auto& link = links_[static_cast<std::size_t>(peer_class)][peer];
  link = std::make_unique<PeerLink>(*users_[static_cast<std::size_t>(peer_class)], peer, peer_class,
                                    ways_.second != nullptr ? static_cast<FirstWayWatch*>(this) : nullptr,
                                    ways_.early_bytes_max);
  if (left_.contains(peer)) link->leave_first_way(transport::TimePoint::max(), "");
  if (closed_) {
    link->close();
  } else if (rank_ > peer) {
    connect(peer_class, peer);
  }
  return *link;
}

Result<PeerHello> peer_hello_of(const std::string& detail) {
  if (detail.empty()) return PeerHello{};
  PeerHello hello{.second = true};
  const auto [end, error] = std::from_chars(detail.data(), detail.data() + detail.size(), hello.taken);
  if (error != std::errc{} || end != detail.data() + detail.size())
    return fail(Errc::corrupt, "a malformed count of frames");
  return hello;
}

/// Connects once the directory knows the peer's address; until then the link keeps the frames that it must send.
void PeerMesh::connect(PeerClass peer_class, std::uint32_t peer) {
  const Member* const member = directory_.find(peer);
  if (member == nullptr) return directory_.want(peer);
  PeerLink& link = *existing(peer_class, peer);
  if (link.on_second_way()) {
    TRIBUTARY_ASSERT(ways_.second != nullptr, "the link to rank {} takes a second way, and there is none", peer);
    return link.connect(*ways_.second, member->second(), connect_limit_, attempt(peer_class, peer));
  }
  const auto limit =
      ways_.second != nullptr ? std::min<transport::Duration>(connect_limit_, kFirstWayLimit) : connect_limit_;
  link.connect(ways_.first, member->at, limit, attempt(peer_class, peer));
}

void PeerMesh::found(std::uint32_t peer) {
  if (closed_ || rank_ <= peer) return;
  for (const PeerClass peer_class : kClasses) {
    if (const PeerLink* const link = existing(peer_class, peer); link != nullptr && !link->has_channel())
      connect(peer_class, peer);
  }
}

PeerLink::Attempt PeerMesh::attempt(PeerClass peer_class, std::uint32_t peer) {
  const PeerLink& link = *existing(peer_class, peer);
  ProofScope scope{.purpose = std::string(to_string(peer_class)), .connecting = rank_, .accepting = peer};
  if (link.on_second_way()) scope.detail = std::to_string(link.taken());
  auto introduce = [scope](const ProofAnswer& answer) {
    nlohmann::json hello{
        {"rank", scope.connecting}, {"class", scope.purpose}, {"nonce", answer.nonce}, {"proof", answer.proof}};
    if (!scope.detail.empty()) hello["taken"] = scope.detail;
    return hello.dump();
  };
  auto failed = [this, peer_class, peer](const std::string& reason) {
    auto& again = again_.try_emplace({peer_class, peer}, Again{Retry(kAgainFirst, kAgainLast), {}}).first->second;
    again.retry.failed(ways_.first.now());
    again.reason = reason;
  };
  return {ConnectingProof(secret_, std::move(scope)), std::move(introduce), std::move(failed)};
}

void PeerMesh::connect_again(transport::TimePoint now) {
  std::erase_if(again_,
                [this](const auto& entry) { return existing(entry.first.first, entry.first.second)->connected(); });
  for (auto& [where, again] : again_) {
    if (!closed_ && again.retry.take_due(now)) connect(where.first, where.second);
  }
}

std::string PeerMesh::troubles() const {
  std::string text;
  for (const auto& [where, again] : again_) {
    text += (text.empty() ? "" : ", ") + ("the connection to rank " + std::to_string(where.second)) + " failed " +
            std::to_string(again.retry.failures()) + " times: " + again.reason;
    if (text.size() > 500) return text + ", ...";
  }
  return text;
}

PeerMesh::Accepted PeerMesh::accept(PeerClass peer_class, std::uint32_t peer, const PeerHello& hello,
                                    std::unique_ptr<transport::Channel>& channel) {
  if (closed_ || peer <= rank_ || peer >= directory_.nranks()) return {};
  if (hello.second && !left_.contains(peer) && !leave_first_way(peer, "rank " + std::to_string(peer) + " has left it"))
    return {};
  PeerLink& target = link(peer_class, peer);
  if (target.connected() || target.on_second_way() != hello.second) return {};
  const transport::Channel* const before = channel.get();
  auto taken = ways_.io != nullptr ? ways_.io->to_io_thread(std::move(channel), target) : std::move(channel);
  const bool moved = taken.get() != before;
  target.adopt(std::move(taken), hello.taken);
  return {&target, moved};
}

bool PeerMesh::leave_first_way(std::uint32_t peer, const std::string& reason) {
  if (ways_.second == nullptr || closed_ || peer == rank_ || peer >= directory_.nranks()) return false;
  if (!left_.insert(peer).second) return false;
  const transport::TimePoint until = ways_.first.now() + connect_limit_;
  for (const PeerClass peer_class : kClasses) {
    PeerLink* const link = existing(peer_class, peer);
    if (link == nullptr) continue;
    link->leave_first_way(until, reason);
    if (rank_ > peer) connect(peer_class, peer);
  }
  return true;
}

void PeerMesh::first_way_broken(std::uint32_t peer, const std::string& reason) {
  if (leave_first_way(peer, reason)) users_.front()->peer_goes_second_way(peer, reason);
}

void PeerMesh::tick(transport::TimePoint now) {
  if (!again_.empty()) connect_again(now);
  if (left_.empty()) return;
  for (const auto& links : links_) {
    for (const auto& [peer, link] : links) link->look_for_second(now);
  }
}

void PeerMesh::excuse(transport::Duration absence) {
  if (left_.empty()) return;
  for (const auto& links : links_) {
    for (const auto& [peer, link] : links) link->excuse(absence);
  }
}

std::pair<std::uint32_t, std::uint32_t> PeerMesh::open_links() const noexcept {
  std::pair<std::uint32_t, std::uint32_t> number{};
  for (const auto& links : links_) {
    for (const auto& [peer, link] : links) {
      if (!link->connected()) continue;
      ++number.first;
      number.second += link->shares_memory() ? 1U : 0U;
    }
  }
  return number;
}

void PeerMesh::visit_held_back(PeerClass peer_class,
                               const std::function<void(std::uint32_t, const FrameHeader&)>& visit) const {
  const auto& links = links_[static_cast<std::size_t>(peer_class)];
  for (const auto& [peer, link] : links) {
    if (link->held_back()) visit(peer, *link->held_back());
  }
}

void PeerMesh::close() {
  closed_ = true;
  for (auto& links : links_) {
    for (auto& [peer, link] : links) link->close();
  }
}

}  // namespace tributary::client
