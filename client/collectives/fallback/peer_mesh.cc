#include "client/collectives/fallback/peer_mesh.h"

#include <nlohmann/json.hpp>

namespace tributary::client {

PeerMesh::PeerMesh(transport::Transport& transport, std::uint32_t rank, std::vector<Endpoint> ranks,
                   const Secret& secret, transport::Duration connect_limit)
    : transport_(transport), rank_(rank), ranks_(std::move(ranks)), secret_(secret), connect_limit_(connect_limit) {
  for (auto& links : links_) links.resize(ranks_.size());
}

PeerLink& PeerMesh::link(PeerClass peer_class, std::uint32_t peer) {
  auto& link = slot(peer_class, peer);
  if (link) return *link;
  link = std::make_unique<PeerLink>(*users_[static_cast<std::size_t>(peer_class)], peer, peer_class);
  if (closed_) {
    link->close();
  } else if (rank_ > peer) {
    link->connect(transport_, ranks_[peer], connect_limit_, [this, peer_class](std::string_view nonce) {
      const std::string purpose(to_string(peer_class));
      return nlohmann::json{{"rank", rank_}, {"class", purpose}, {"proof", proof(secret_, nonce, purpose, rank_)}}
          .dump();
    });
  }
  return *link;
}

transport::ChannelHandler* PeerMesh::accept(PeerClass peer_class, std::uint32_t peer,
                                            std::unique_ptr<transport::Channel>& channel) {
  if (closed_ || peer <= rank_ || peer >= ranks_.size()) return nullptr;
  PeerLink& target = link(peer_class, peer);
  if (target.connected()) return nullptr;
  target.adopt(std::move(channel));
  return &target;
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
