#include "tests/unit/aggregator/child.h"

#include <chrono>
#include <cmath>

#include "tributary/protocol/rank_troubles.h"

namespace tributary::aggregator::test {

TokenClaims claims_of_rank(std::string_view aggregator, std::uint32_t epoch, std::uint16_t child,
                           std::uint16_t children, std::int64_t expires_at) {
  TokenClaims c;
  c.job = "training";
  c.aggregator = aggregator;
  c.group = kGroup;
  c.epoch = epoch;
  c.child = child;
  c.children = children;
  c.window = kWindow;
  c.segment_bytes = kSegmentBytes;
  c.rank = child;
  c.ranks = children;
  c.root = true;
  c.expires_at = expires_at;
  return c;
}

std::int64_t end_of_new_token() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count() + 120;
}

Child::Child(transport::Transport& transport, const Endpoint& to, const Bytes& join, std::uint32_t epoch)
    : epoch_(epoch), channel_(transport.connect(to, *this, std::chrono::seconds(5))) {
  if (join.empty()) return;
  FrameHeader header;
  header.type = FrameType::join;
  channel_->send_copy(header, join);
}

void Child::send(FrameHeader header, Bytes payload) {
  borrowed_.push_back(std::move(payload));
  EXPECT_TRUE(channel_->send(header, borrowed_.back(), 0));
}

void Child::contribute(std::uint64_t sequence, const Signature& signature, Bytes payload, std::uint16_t flags) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.group = kGroup;
  header.epoch = epoch_;
  header.sequence = header.operation = sequence;
  header.flags = flags;
  header.set_signature(signature);
  send(header, std::move(payload));
}

void Child::leave() {
  FrameHeader header;
  header.type = FrameType::leave;
  header.group = kGroup;
  header.epoch = epoch_;
  send(header);
}

const Child::Result* Child::result_of(std::uint64_t sequence) const {
  for (const Result& result : results) {
    if (result.header.sequence == sequence) return &result;
  }
  return nullptr;
}

transport::Placement Child::on_header(transport::Channel&, const FrameHeader& header) {
  incoming_.assign(header.payload_bytes, std::byte{0});
  return transport::Accept{incoming_};
}

void Child::on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) {
  const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  switch (header.type) {
    case FrameType::ready:
      ready = true;
      return;
    case FrameType::alive:
      if (header.count == kWantsSighting) return seen_wanted.push_back(header.segment);
      ++(header.count == kWantsWord ? words_wanted : alive);
      return;
    case FrameType::result:
      results.push_back({header, {payload.begin(), payload.end()}});
      if (reads_in_place) {
        read_at.push_back(payload.data());
        channel.give_back(payload);
      }
      return;
    case FrameType::refuse:
      refused = text;
      return;
    case FrameType::failed:
      lost = decode_lane_loss(payload);
      failed = lost->reason;
      return;
    case FrameType::fault:
      fault = decode_mismatch(payload);
      return;
    default:
      ADD_FAILURE() << "an aggregator sent a " << to_string(header.type);
  }
}

std::vector<float> floats(std::uint32_t rank, std::size_t count, std::uint64_t sequence) {
  std::vector<float> list(count);
  for (std::size_t i = 0; i < count; ++i) {
    list[i] = std::ldexp(static_cast<float>((rank * 7919U + i * 104729U + sequence * 15485863U) % 9973U) + 0.3F,
                         static_cast<int>(rank % 7));
  }
  return list;
}

std::vector<float> sum_of(const std::vector<std::vector<float>>& inputs) {
  std::vector<float> sum = inputs.front();
  for (std::size_t n = 1; n < inputs.size(); ++n) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += inputs[n][i];
  }
  return sum;
}

}  // namespace tributary::aggregator::test
