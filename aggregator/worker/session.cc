#include "aggregator/worker/session.h"

#include "aggregator/worker/lane_node.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"

namespace tributary::aggregator {

using transport::Accept;
using transport::Placement;
using transport::Reject;

bool Session::takes_in_place(transport::Channel&, const FrameHeader& header) {
  in_place_ =
      !over_ && serving_ && !left_ && header.type == FrameType::contribution && node_->takes_in_place(*this, header);
  if (in_place_) dropping_ = false;
  return in_place_;
}

transport::Placement Session::on_header(transport::Channel&, const FrameHeader& header) {
  dropping_ = in_place_ = false;
  if (over_) return Reject{{Errc::peer_gone, "the session is over"}};
  if (!serving_) {
    if (join_) return transport::NotYet{};
    if (header.type != FrameType::join) {
      return Reject{{Errc::denied, "a " + std::string(to_string(header.type)) +
                                       " frame before a join: nothing is served without a token"}};
    }
    join_payload_.resize(header.payload_bytes);
    return Accept{join_payload_};
  }
  if (left_) return Reject{{Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame after a leave"}};
  switch (header.type) {
    case FrameType::contribution: {
      TRIBUTARY_ASSERT(node_ != nullptr, "child {} serves no lane", child_);
      const auto place = node_->contribution_begins(*this, header);
      if (place) return Accept{*place};
      if (!harmless(place.error())) return Reject{{Errc::corrupt, std::string(to_string(place.error()))}};
      dropping_ = true;
      ++worker_.metrics_.frames_dropped;
      return Accept{std::span(worker_.discard_).first(header.payload_bytes)};
    }
    case FrameType::fault:
    case FrameType::failed:
      join_payload_.resize(header.payload_bytes);
      return Accept{join_payload_};
    case FrameType::leave:
    case FrameType::ask:
      return Accept{};
    default:
      return Reject{{Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame, which no child sends"}};
  }
}

void Session::on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) {
  if (over_ || dropping_ || (!serving_ && header.type != FrameType::join)) return;
  switch (header.type) {
    case FrameType::join:
      return worker_.on_join(*this, header);
    case FrameType::contribution:
      return node_->contribution_landed(*this, header, in_place_ ? payload : std::span<std::byte>{});
    case FrameType::fault:
      return node_->child_fault(*this, payload);
    case FrameType::failed:
      node_->child_failed(*this, decode_lane_loss(payload));
      return close();
    case FrameType::ask:
      return node_->child_asks(*this, header);
    case FrameType::leave:
      left_ = true;
      return node_->child_left(*this);
    default:
      return;
  }
}

void Session::on_sent(transport::Channel& channel, std::uint64_t cookie) {
  if (node_) node_->on_sent(channel, cookie);
}

void Session::on_closed(transport::Channel& channel, const Error& error) {
  over_ = true;
  worker_.note_changed(channel, node_ ? node_->name() : "a connection before its join", error);
  wait_no_more();
  clear_at_ = {};
  if (error.code == Errc::corrupt || error.code == Errc::denied) ++worker_.metrics_.frames_refused;
  if (serving_) node_->child_gone(*this, error.message);
}

void Session::joined(std::shared_ptr<LaneNode> node, std::uint32_t child, std::uint32_t rank, std::string name) {
  TRIBUTARY_ASSERT(node_ == nullptr && !serving_ && !over_, "a session joins as child {} after it was child {}", child,
                   child_);
  TRIBUTARY_ASSERT(node != nullptr, "child {} joins no lane", child);
  wait_no_more();
  node_ = std::move(node);
  serving_ = true;
  child_ = child;
  rank_ = rank;
  name_ = std::move(name);
}

void Session::lane_ready(const FrameHeader& header) {
  if (place_) place_->ready();
  channel_->send_copy(header, {});
}

void Session::refuse(std::string_view reason) {
  const std::string text = cut_before_code(reason, payload_bytes_max(FrameType::refuse));
  end(FrameType::refuse, std::as_bytes(std::span(text)));
}

void Session::end(FrameType type, std::span<const std::byte> payload) {
  if (over_) return;
  over_ = true;
  wait_no_more();
  serving_ = false;
  clear_at_ = worker_.transport_.now() + worker_.settings_.flush_limit;
  FrameHeader header;
  header.type = type;
  channel_->send_copy(header, payload);
  channel_->close_after_flush(worker_.settings_.flush_limit);
}

void Session::finish() {
  over_ = true;
  wait_no_more();
  serving_ = false;
  clear_at_ = worker_.transport_.now() + worker_.settings_.flush_limit;
  channel_->close_after_flush(worker_.settings_.flush_limit);
}

void Session::close() {
  over_ = true;
  wait_no_more();
  serving_ = false;
  clear_at_ = {};
  channel_->close();
}

}  // namespace tributary::aggregator
