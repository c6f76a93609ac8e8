#include "client/collectives/fallback/peer_mesh.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tributary::client {

namespace {

// Where there is a second way, nobody waits longer for the first.
constexpr auto kFirstWayLimit = std::chrono::seconds(5);

constexpr std::array kClasses{PeerClass::collective, PeerClass::message, PeerClass::repair};
static_assert(kClasses.size() == kPeerClasses);

}  // namespace

PeerMesh::PeerMesh(PeerWays ways, std::uint32_t rank, const Secret& secret, transport::Duration connect_limit)
    : ways_(std::move(ways)),
      rank_(rank),
      secret_(secret),
      connect_limit_(connect_limit),
      second_(ways_.first_at.size()) {
  for (auto& links : links_) links.resize(ways_.first_at.size());
}

PeerLink& PeerMesh::link(PeerClass peer_class, std::uint32_t peer) {
  auto& link = slot(peer_class, peer);
  if (link) return *link;
  link = std::make_unique<PeerLink>(*users_[static_cast<std::size_t>(peer_class)], peer, peer_class,
                                    ways_.second != nullptr ? static_cast<FirstWayWatch*>(this) : nullptr,
                                    ways_.early_bytes_max);
  if (second_[peer]) link->leave_first_way(transport::TimePoint::max(), "");
  if (closed_) {
    link->close();
  } else if (rank_ > peer) {
    connect(peer_class, peer);
  }
  return *link;
}

void PeerMesh::connect(PeerClass peer_class, std::uint32_t peer) {
  const auto introduce = [this, peer_class, peer](std::string_view nonce) {
    return introduction(peer_class, peer, nonce);
  };
  PeerLink& link = *slot(peer_class, peer);
  if (link.on_second_way()) return link.connect(*ways_.second, ways_.second_at[peer], connect_limit_, introduce);
  const auto limit =
      ways_.second != nullptr ? std::min<transport::Duration>(connect_limit_, kFirstWayLimit) : connect_limit_;
  link.connect(ways_.first, ways_.first_at[peer], limit, introduce);
}

std::string PeerMesh::introduction(PeerClass peer_class, std::uint32_t peer, std::string_view nonce) {
  const std::string purpose(to_string(peer_class));
  nlohmann::json hello{{"rank", rank_}, {"class", purpose}, {"proof", proof(secret_, nonce, purpose, rank_)}};
  const PeerLink& link = *slot(peer_class, peer);
  if (link.on_second_way()) hello["taken"] = link.taken();
  return hello.dump();
}

transport::ChannelHandler* PeerMesh::accept(PeerClass peer_class, std::uint32_t peer, const PeerHello& hello,
                                            std::unique_ptr<transport::Channel>& channel) {
  if (closed_ || peer <= rank_ || peer >= second_.size()) return nullptr;
  if (hello.second && !second_[peer] && !leave_first_way(peer, "rank " + std::to_string(peer) + " has left it"))
    return nullptr;
  PeerLink& target = link(peer_class, peer);
  if (target.connected() || target.on_second_way() != hello.second) return nullptr;
  target.adopt(std::move(channel), hello.taken);
  return &target;
}

bool PeerMesh::leave_first_way(std::uint32_t peer, const std::string& reason) {
  if (ways_.second == nullptr || closed_ || peer == rank_ || peer >= second_.size() || second_[peer]) return false;
  second_[peer] = true;
  left_.push_back(peer);
  const transport::TimePoint until = ways_.first.now() + connect_limit_;
  for (const PeerClass peer_class : kClasses) {
    PeerLink* const link = slot(peer_class, peer).get();
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
  for (const std::uint32_t peer : left_) {
    for (const auto& links : links_) {
      if (links[peer]) links[peer]->look_for_second(now);
    }
  }
}

void PeerMesh::excuse(transport::Duration absence) {
  for (const std::uint32_t peer : left_) {
    for (const auto& links : links_) {
      if (links[peer]) links[peer]->excuse(absence);
    }
  }
}

std::pair<std::uint32_t, std::uint32_t> PeerMesh::open_links() const noexcept {
  std::pair<std::uint32_t, std::uint32_t> number{};
  for (const auto& links : links_) {
    for (const auto& link : links) {
      if (!link || !link->connected()) continue;
      ++number.first;
      number.second += link->shares_memory() ? 1U : 0U;
    }
  }
  return number;
}

void PeerMesh::visit_held_back(PeerClass peer_class,
                               const std::function<void(std::uint32_t, const FrameHeader&)>& visit) const {
  const auto& links = links_[static_cast<std::size_t>(peer_class)];
  for (std::uint32_t peer = 0; peer < links.size(); ++peer) {
    if (links[peer] && links[peer]->held_back()) visit(peer, *links[peer]->held_back());
  }
}

void PeerMesh::close() {
  closed_ = true;
  for (auto& links : links_) {
    for (auto& link : links) {
      if (link) link->close();
    }
  }
}

}  // namespace tributary::client
