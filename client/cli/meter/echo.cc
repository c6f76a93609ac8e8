#include "client/cli/meter/echo.h"

#include <algorithm>

#include "tributary/protocol/assert.h"
#include "tributary/transport/source.h"

namespace tributary::cli::meter {

using transport::Accept;
using transport::Duration;
using transport::Placement;
using transport::Reject;
using transport::TimePoint;

namespace {

constexpr std::size_t kStrangersMax = 16;
constexpr Duration kProofLimit = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(5);

}  // namespace

/// One connection.
class Echo::Guest final : public transport::ChannelHandler {
 public:
  Guest(Echo& echo, WaitingRoom::Id id, std::unique_ptr<transport::Channel> channel)
      : echo_(echo), id_(id), channel_(std::move(channel)) {}

  Placement on_header(transport::Channel&, const FrameHeader& header) override {
    if (!served_) {
      if (header.type != FrameType::join || header.payload_bytes != proof_.size())
        return Reject{{Errc::denied, "no proof"}};
      return Accept{proof_};
    }
    const bool is_answer_long = header.wants_result() && header.payload_bytes > kAnswerBytesMax;
    const bool fits = header.payload_bytes <= echo_.segment_.size() && !is_answer_long;
    if (header.type == FrameType::leave && header.payload_bytes == 0) return Accept{};
    if (header.type != FrameType::contribution || !fits) return Reject{{Errc::corrupt, "not a frame of a meter"}};
    return Accept{std::span(echo_.segment_).first(header.payload_bytes)};
  }

  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    if (header.type == FrameType::contribution) return answer(header, payload);
    if (header.type == FrameType::join && echo_.admit(*this)) {
      served_ = true;
      FrameHeader ready;
      ready.type = FrameType::ready;
      return channel_->send_copy(ready, {});
    }
    channel_->close();
    echo_.leaves(*this);
  }

  void on_closed(transport::Channel&, const Error&) override { echo_.leaves(*this); }

  [[nodiscard]] WaitingRoom::Id id() const noexcept { return id_; }
  [[nodiscard]] const EchoProof& proof() const noexcept { return proof_; }
  [[nodiscard]] transport::Channel& channel() noexcept { return *channel_; }

 private:
  void answer(const FrameHeader& header, std::span<const std::byte> payload) {
    FrameHeader result = header;
    result.type = FrameType::result;
    result.flags = header.wants_result() ? std::uint16_t{0} : frame_flags::kBare;
    channel_->send_copy(result, header.wants_result() ? payload : std::span<const std::byte>{});
  }

  Echo& echo_;
  const WaitingRoom::Id id_;
  EchoProof proof_{};
  bool served_ = false;
  std::unique_ptr<transport::Channel> channel_;
};

Echo::Echo(transport::Transport& transport, std::uint32_t segment_bytes)
    : transport_(transport),
      segment_(segment_bytes),
      room_(kStrangersMax, std::chrono::nanoseconds(kProofLimit).count()) {}

Echo::~Echo() = default;

std::int64_t Echo::now_ns() const {
  return std::chrono::nanoseconds(transport_.now().time_since_epoch()).count();
}

transport::ChannelHandler* Echo::on_accept(std::unique_ptr<transport::Channel> channel) {
  if (const auto in_the_way = room_.makes_room()) {
    room_.leave(*in_the_way);
    guests_.erase(*in_the_way);
  }
  const WaitingRoom::Id id = next_++;
  room_.enter(id, transport::source_of(channel->peer()), now_ns());
  return guests_.emplace(id, std::make_unique<Guest>(*this, id, std::move(channel))).first->second.get();
}

bool Echo::admit(Guest& guest) {
  if (!waits_ || !same_bytes(guest.proof(), proof_)) return false;
  TRIBUTARY_ASSERT(served_ == nullptr, "two connections are served, the second is {}", guest.id());
  room_.leave(guest.id());
  waits_ = false;
  came_ = true;
  served_ = &guest;
  return true;
}

void Echo::leaves(Guest& guest) {
  room_.leave(guest.id());
  if (served_ == &guest) served_ = nullptr;
  gone_.push_back(guest.id());
}

bool Echo::serve(const EchoProof& proof, Duration arrival_limit, Duration limit) {
  proof_ = proof;
  waits_ = true;
  came_ = false;
  const TimePoint begin = transport_.now();
  for (TimePoint now = begin; now < begin + limit && (waits_ || served_ != nullptr); now = transport_.now()) {
    if (waits_ && now >= begin + arrival_limit) break;
    transport_.poll(kLook);
    for (const WaitingRoom::Id id : gone_) guests_.erase(id);
    gone_.clear();
    while (const auto late = room_.late(now_ns())) {
      room_.leave(*late);
      guests_.erase(*late);
    }
  }
  waits_ = false;
  if (served_ != nullptr) guests_.erase(served_->id());
  served_ = nullptr;
  return came_;
}

}  // namespace tributary::cli::meter
