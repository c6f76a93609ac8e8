#include "aggregator/daemon/front_door.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <vector>

#include "aggregator/daemon/host_address.h"
#include "aggregator/daemon/join_queue.h"
#include "tributary/protocol/reason.h"
#include "tributary/transport/source.h"

namespace tributary::aggregator {

using transport::Accept;
using transport::Placement;
using transport::Reject;

namespace {

constexpr auto kTickPeriod = std::chrono::milliseconds(50);
// The most checks of signatures in one turn, which take about 2 ms. Then the door looks at the network again, however
// many forged joins come.
constexpr int kChecksPerTurn = 16;

std::int64_t nanoseconds(transport::Duration time) {
  return std::chrono::nanoseconds(time).count();
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns the tenant that a join claims, which check_join() has found well formed; its signature was not checked.
std::string tenant_of(std::span<const std::byte> join) {
  const auto tokens = decode_join(join);
  const auto claims = tokens ? read_claims(tokens->tokens.front()) : std::unexpected(tokens.error());
  return claims ? claims->tenant : std::string();
}

/// A single address always counts as live: processes of this host can connect even without a link.
Status good_anyway(const std::string&) {
  return {};
}

enum class Count : std::uint8_t {
  accepted,
  handed_over,
  denied,
  malformed,
  timed_out,
  displaced,
  over_limit,
  not_open,
  gone,
  unjoined
};
constexpr std::size_t kCounts = 10;

}  // namespace

/// A connection that has not joined yet.
class FrontDoor::Visitor final : public transport::ChannelHandler {
 public:
  Visitor(Reception& reception, WaitingRoom::Id id, std::unique_ptr<transport::Channel> channel)
      : reception_(reception), id_(id), from_(transport::source_of(channel->peer())), channel_(std::move(channel)) {}

  Placement on_header(transport::Channel&, const FrameHeader& header) override;
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte> payload) override;
  void on_closed(transport::Channel&, const Error& error) override;

  /// Sends the reason and closes.
  void refuse(Count count, const std::string& reason);
  [[nodiscard]] transport::Channel& channel() const noexcept { return *channel_; }
  [[nodiscard]] WaitingRoom::Id id() const noexcept { return id_; }
  [[nodiscard]] Source from() const noexcept { return from_; }
  /// Returns the join frame's payload, after it has come.
  [[nodiscard]] std::span<const std::byte> join() const noexcept { return join_; }

 private:
  Reception& reception_;
  const WaitingRoom::Id id_;
  const Source from_;
  std::vector<std::byte> join_;
  std::unique_ptr<transport::Channel> channel_;
  bool asked_ = false;  // its join has come: the door reads no more before the answer
};

/// The state of the front door's thread.
class FrontDoor::Reception final : public transport::Acceptor {
 public:
  Reception(const FrontDoorSettings& settings, KeyRing& keys, TenantLimits& tenants, HandOver hand_over)
      : settings_(settings),
        keys_(keys),
        tenants_(tenants),
        hand_over_(std::move(hand_over)),
        room_(settings.unjoined_max, nanoseconds(settings.join_limit)),
        transport_(settings.transport),
        places(settings.listen, {.open = [this](const Endpoint& at) { return transport_.listen(at, *this); },
                                 .probe = settings.listen.size() > 1 ? host_address_lives : good_anyway}) {}

  void run(const std::stop_token& stop);
  void wake() {
    transport_.post([] {});
  }

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;
  /// A visitor's join has come: refuses it if a cheap check says so, else queues it for the check of its signature.
  void on_join(Visitor& visitor);
  /// Called when the visitor has joined, has gone, or was refused. Destroys it after this turn's callbacks, when its
  /// last frame is sent.
  void leaves(Visitor& visitor);
  /// A refused visitor usually gets time to read the reason. Under a flood of refusals the door does not wait for it.
  [[nodiscard]] bool has_time_for_last_words() const noexcept { return leaving_.size() <= settings_.unjoined_max; }

  void count(Count what) noexcept { at(what).fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t counted(Count what) const noexcept {
    return counts_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  }
  [[nodiscard]] const FrontDoorSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] transport::TimePoint now() const { return transport_.now(); }
  [[nodiscard]] std::int64_t now_ns() const { return nanoseconds(now().time_since_epoch()); }

  ReasonCounts reasons;  // why connections were refused
  std::atomic<std::chrono::steady_clock::duration> last_turn{std::chrono::steady_clock::now().time_since_epoch()};
  void set_closed(std::string reason) {
    const std::lock_guard lock(closed_mutex_);
    closed_because_ = std::move(reason);
  }

 private:
  std::atomic<std::uint64_t>& at(Count what) noexcept { return counts_[static_cast<std::size_t>(what)]; }
  [[nodiscard]] std::string closed_because() {
    const std::lock_guard lock(closed_mutex_);
    return closed_because_;
  }
  void displace(WaitingRoom::Id id);
  void check_joins();
  void check(Visitor& visitor);
  void take_up_early_joins(transport::TimePoint now);
  void tick();

  const FrontDoorSettings settings_;
  KeyRing& keys_;
  TenantLimits& tenants_;
  const HandOver hand_over_;
  std::array<std::atomic<std::uint64_t>, kCounts> counts_{};
  std::mutex closed_mutex_;  // guards closed_because_
  std::string closed_because_;
  WaitingRoom room_;
  JoinQueue joins_;                                        // visitors in the room whose join has come
  std::map<WaitingRoom::Id, transport::TimePoint> early_;  // joins that came before a key, and until when they wait
  WaitingRoom::Id next_id_ = 1;
  transport::NearTransport transport_;
  std::map<WaitingRoom::Id, Visitor> waiting_;  // visitors in the room
  std::map<WaitingRoom::Id, Visitor> leaving_;

 public:
  ListenPlaces places;
};

Placement FrontDoor::Visitor::on_header(transport::Channel&, const FrameHeader& header) {
  if (asked_) return transport::NotYet{};
  if (header.type != FrameType::join || header.payload_bytes > kJoinBytesMax) {
    return Reject{{Errc::denied, "a " + std::string(to_string(header.type)) + " frame before a join"}};
  }
  join_.resize(header.payload_bytes);
  return Accept{join_};
}

void FrontDoor::Visitor::on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) {
  asked_ = true;
  reception_.on_join(*this);
}

void FrontDoor::Visitor::on_closed(transport::Channel&, const Error& error) {
  reception_.leaves(*this);
  reception_.count(error.code == Errc::peer_gone ? Count::gone : Count::malformed);
}

void FrontDoor::Visitor::refuse(Count count, const std::string& reason) {
  reception_.leaves(*this);
  reception_.count(count);
  reception_.reasons.add(split_code(reason).reason);
  if (!reception_.has_time_for_last_words()) return channel_->close();
  FrameHeader header;
  header.type = FrameType::refuse;
  const std::string text = cut_before_code(reason, payload_bytes_max(FrameType::refuse));
  channel_->send_copy(header, std::as_bytes(std::span(text)));
  channel_->close_after_flush(reception_.settings().flush_limit);
}

transport::ChannelHandler* FrontDoor::Reception::on_accept(std::unique_ptr<transport::Channel> channel) {
  count(Count::accepted);
  if (const auto in_the_way = room_.makes_room()) displace(*in_the_way);
  const WaitingRoom::Id id = next_id_++;
  Visitor& visitor = waiting_.try_emplace(id, *this, id, std::move(channel)).first->second;
  room_.enter(id, visitor.from(), now_ns());
  return &visitor;
}

void FrontDoor::Reception::leaves(Visitor& visitor) {
  room_.leave(visitor.id());
  joins_.remove(visitor.id());
  early_.erase(visitor.id());
  leaving_.insert(waiting_.extract(visitor.id()));
}

void FrontDoor::Reception::displace(WaitingRoom::Id id) {
  count(Count::displaced);
  room_.leave(id);
  joins_.remove(id);
  early_.erase(id);
  waiting_.erase(id);
}

void FrontDoor::Reception::on_join(Visitor& visitor) {
  if (const std::string reason = closed_because(); !reason.empty()) {
    return visitor.refuse(Count::not_open,
                          coded(Reason::draining, "aggregator " + settings_.name + " takes no new lanes: " + reason));
  }
  const auto key = keys_.current();
  if (!key) {
    early_.try_emplace(visitor.id(), now() + transport::kKeyLimit);
    return;
  }
  if (const auto ok = check_join(key->name, visitor.join(), unix_seconds()); !ok) {
    return visitor.refuse(ok.error().code == Errc::corrupt ? Count::malformed : Count::denied,
                          coded(Reason::join_malformed, ok.error().message));
  }
  // A tenant at its limit costs no checks of signatures. A process without the tenant's tokens cannot bring the tenant
  // to its limit.
  if (const auto ok = tenants_.check(tenant_of(visitor.join()), now_ns()); !ok) {
    return visitor.refuse(Count::over_limit, ok.error().message);
  }
  joins_.add(visitor.id(), visitor.from());
}

void FrontDoor::Reception::check_joins() {
  for (int i = 0; i < kChecksPerTurn; ++i) {
    const auto id = joins_.next();
    if (!id) return;
    check(waiting_.at(*id));
  }
}

void FrontDoor::Reception::check(Visitor& visitor) {
  const auto key = keys_.current();
  auto verified = verify_join(key->verifier, key->name, visitor.join(), unix_seconds());
  if (verified) {
    if (auto ok = keys_.admit(verified->claims); !ok) verified = std::unexpected(ok.error());
  }
  if (verified) {
    if (auto ok = add_parent_link(*verified, key->shared, false); !ok) verified = std::unexpected(ok.error());
  }
  if (!verified) {
    const bool malformed = verified.error().code == Errc::corrupt;
    return visitor.refuse(malformed ? Count::malformed : Count::denied,
                          coded(Reason::join_malformed, verified.error().message));
  }
  auto place = tenants_.enter(verified->claims.tenant, now_ns());
  if (!place) return visitor.refuse(Count::over_limit, place.error().message);
  verified->place = std::move(*place);
  auto connection = transport_.release(visitor.channel());
  if (!connection) {
    return visitor.refuse(Count::malformed, coded(Reason::join_malformed,
                                                  "frames came with the join, before this aggregator said ready"));
  }
  leaves(visitor);
  count(Count::handed_over);
  hand_over_(std::move(*connection), std::move(*verified));
}

void FrontDoor::Reception::take_up_early_joins(transport::TimePoint now) {
  if (early_.empty()) return;
  const bool has_key = keys_.current() != nullptr;
  std::vector<WaitingRoom::Id> due;
  for (const auto& [id, limit] : early_) {
    if (has_key || now >= limit) due.push_back(id);
  }
  for (const WaitingRoom::Id id : due) {
    Visitor& visitor = waiting_.at(id);
    early_.erase(id);
    if (has_key) {
      on_join(visitor);
    } else {
      visitor.refuse(Count::not_open, coded(Reason::no_key, "aggregator " + settings_.name +
                                                                " has not reached its manager yet, so it cannot verify "
                                                                "tokens"));
    }
  }
}

void FrontDoor::Reception::tick() {
  const transport::TimePoint time = now();
  take_up_early_joins(time);
  while (const auto late = room_.late(nanoseconds(time.time_since_epoch()))) {
    waiting_.at(*late).refuse(Count::timed_out, coded(Reason::join_late, "no join came in time"));
  }
  places.tick(time);
  std::erase_if(leaving_, [](const auto& visitor) { return visitor.second.channel().closed(); });
  at(Count::unjoined).store(waiting_.size(), std::memory_order_relaxed);
}

void FrontDoor::Reception::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "front-door");
  transport::TimePoint next_tick = now() + kTickPeriod;
  while (!stop.stop_requested()) {
    const bool busy = !joins_.empty();
    transport_.poll(busy ? transport::Duration::zero() : std::max(transport::Duration::zero(), next_tick - now()));
    check_joins();
    const transport::TimePoint time = now();
    last_turn.store(time.time_since_epoch(), std::memory_order_relaxed);
    if (time < next_tick) continue;
    tick();
    next_tick = time + kTickPeriod;
  }
}

FrontDoor::FrontDoor(const FrontDoorSettings& settings, KeyRing& keys, TenantLimits& tenants, HandOver hand_over)
    : reception_(std::make_unique<Reception>(settings, keys, tenants, std::move(hand_over))) {}

Result<std::unique_ptr<FrontDoor>> FrontDoor::open(const FrontDoorSettings& settings, KeyRing& keys,
                                                   TenantLimits& tenants, HandOver hand_over) {
  std::unique_ptr<FrontDoor> door(new FrontDoor(settings, keys, tenants, std::move(hand_over)));
  if (auto ok = door->reception_->places.open(); !ok) return std::unexpected(ok.error());
  door->thread_ = std::jthread([&reception = *door->reception_](const std::stop_token& stop) { reception.run(stop); });
  return door;
}

FrontDoor::~FrontDoor() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  reception_->wake();
  thread_.join();
}

ListenPlaces& FrontDoor::places() const noexcept {
  return reception_->places;
}

void FrontDoor::close_to_joins(std::string reason) {
  reception_->set_closed(std::move(reason));
}

FrontDoorCounts FrontDoor::counts() const {
  const auto of = [this](Count what) { return reception_->counted(what); };
  return {.accepted = of(Count::accepted),
          .handed_over = of(Count::handed_over),
          .denied = of(Count::denied),
          .malformed = of(Count::malformed),
          .timed_out = of(Count::timed_out),
          .displaced = of(Count::displaced),
          .over_limit = of(Count::over_limit),
          .not_open = of(Count::not_open),
          .gone = of(Count::gone),
          .unjoined = of(Count::unjoined),
          .reasons = reception_->reasons.read()};
}

std::chrono::steady_clock::time_point FrontDoor::last_turn() const noexcept {
  return std::chrono::steady_clock::time_point(reception_->last_turn.load(std::memory_order_relaxed));
}

}  // namespace tributary::aggregator
