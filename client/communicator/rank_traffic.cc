#include "client/communicator/rank_traffic.h"

#include "tributary/protocol/assert.h"

namespace tributary::client {

using transport::TimePoint;

void RankTraffic::open(const tuning::Policy& policy) {
  const CommunicatorSettings& settings = shared_.settings;
  mesh_ = std::make_unique<PeerMesh>(second_way_.ways(), directory_, settings.rank, settings.id.secret,
                                     settings.timeout / 3);
  for (const PeerClass peer_class : {PeerClass::collective, PeerClass::repair, PeerClass::share})
    mesh_->set_user(peer_class, static_cast<PeerLinkUser&>(*this));
  const auto runner = [&](PeerClass peer_class) {
    return std::make_unique<FallbackRunner>(*mesh_, peer_class, settings.rank, settings.nranks, policy,
                                            settings.segment_trace, settings.known_as);
  };
  runner_ = runner(PeerClass::collective);
  shares_ = runner(PeerClass::share);
  messages_.use(*mesh_);
}

void RankTraffic::send(std::uint32_t peer, Message message) {
  message.called_at = shared_.clock.now();
  messages_.send(peer, std::move(message));
}

void RankTraffic::receive(std::optional<std::uint32_t> source, Message message) {
  message.called_at = shared_.clock.now();
  messages_.receive(source, std::move(message));
}

MessageEvents RankTraffic::message_events() {
  return {
      .arrived =
          [this] {
            shared_.whole.look_at_clock();
            user_.message_progress();
          },
      .ended = [this] { user_.message_moved(); },
      .disagree =
          [this](std::string text) {
            shared_.whole.tell_rank_0(Shared::abort_message({Errc::mismatch, std::move(text)}));
          },
      .lost = [this](std::uint32_t peer, const std::string& reason) { peer_failed(peer, PeerClass::message, reason); }};
}

void RankTraffic::run(const Operation& operation, std::span<const Piece> pieces, std::function<void()> done) {
  runner_->run(operation, pieces, std::move(done));
}

void RankTraffic::run_share(const Operation& operation, const Piece& share, std::function<void()> done) {
  TRIBUTARY_ASSERT(!shares_->busy(), "the share of {} begins while another runs", to_string(operation));
  shares_->run(operation, {&share, 1}, std::move(done));
}

std::string RankTraffic::waits_for() const {
  return waits_for(*runner_);
}

std::string RankTraffic::share_waits_for(const Operation& o) const {
  const std::string share = "the ranks' share of it, ";
  if (shares_->runs(o)) return share + waits_for(*shares_);
  return share + "which has not begun; the share of an earlier operation is at " + waits_for(*shares_);
}

std::uint64_t RankTraffic::rounds_of(const Operation& o) const {
  return (runner_->runs(o) ? runner_->rounds_started() : 0) + (shares_->runs(o) ? shares_->rounds_started() : 0);
}

std::string RankTraffic::waits_for(const FallbackRunner& runner) const {
  std::string text = "segment " + std::to_string(runner.round()) + " of the fallback";
  const auto ranks = runner.waits_for();
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i == 0 ? ", which needs rank " : ", ") + std::to_string(ranks[i]);
  return text + troubles();
}

std::string RankTraffic::troubles() const {
  const std::string troubles = mesh_ ? mesh_->troubles() : std::string();
  return troubles.empty() ? "" : " (" + troubles + ")";
}

void RankTraffic::peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                                std::span<std::byte> payload) {
  shared_.whole.look_at_clock();
  user_.operation_progress(peer_class);
  if (peer_class == PeerClass::repair) return user_.repair_received(peer, receive, payload);
  shared_.part_came(receive.operation, shared_.clock.now());
  runner_of(peer_class).received(peer, receive, payload);
}

FallbackRunner& RankTraffic::runner_of(PeerClass peer_class) const {
  return peer_class == PeerClass::share ? *shares_ : *runner_;
}

void RankTraffic::peer_sent(std::uint32_t, PeerClass peer_class, std::uint64_t cookie) {
  if (peer_class == PeerClass::repair) return user_.repair_sent();
  runner_of(peer_class).sent(cookie);
}

// Remembers the lost peer. A channel between ranks breaks when a rank ends, or when the network between two ranks
// fails. In both cases the group is no longer whole.
void RankTraffic::peer_failed(std::uint32_t peer, PeerClass, const std::string& reason) {
  if (shared_.life.left() || !shared_.life.well() || lost_) return;
  // Wait before the report: the peer may have aborted, which closes its connections. Its own error text is better than
  // this rank's text, and arrives a little later through rank 0.
  lost_ = LostPeer{peer, reason, shared_.transport.now() + shared_.settings.drain_grace};
  directory_.want(peer);  // the error text names the peer's host
}

void RankTraffic::report_lost_peer() {
  if (!lost_ || shared_.clock.now() < lost_->report_at) return;
  lost_->report_at = TimePoint::max();
  shared_.whole.tell_rank_0(Shared::abort_message(
      {Errc::peer_gone, "rank " + std::to_string(shared_.known_as()) + " lost its connection to rank " +
                            std::to_string(shared_.known_as(lost_->peer)) + directory_.on_host(lost_->peer) + ": " +
                            lost_->reason}));
}

void RankTraffic::peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                                const FrameHeader& arrived) {
  TRIBUTARY_ASSERT(peer_class != PeerClass::message, "a message of rank {} is not in the queue", peer);
  user_.mismatch(peer, expected, arrived);
}

void RankTraffic::peer_goes_second_way(std::uint32_t peer, const std::string& reason) {
  shared_.whole.look_at_clock();
  second_way_.broken_with(peer, reason);
}

void RankTraffic::tick() {
  if (mesh_) mesh_->tick(shared_.clock.now());
  report_lost_peer();
}

void RankTraffic::excuse(transport::Duration absence) {
  if (mesh_) mesh_->excuse(absence);
  if (lost_ && lost_->report_at != TimePoint::max()) lost_->report_at += absence;
}

void RankTraffic::close() {
  if (runner_) runner_->stop();
  if (shares_) shares_->stop();
  if (mesh_) mesh_->close();
}

std::pair<std::uint32_t, std::uint32_t> RankTraffic::open_links() const {
  return mesh_ ? mesh_->open_links() : std::pair<std::uint32_t, std::uint32_t>{};
}

}  // namespace tributary::client
