#include "tributary/protocol/lane_loss.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/reason.h"

namespace tributary {

namespace {

/// The bytes that come before the name and the reason.
struct Head {
  std::uint8_t who = 0;
  std::uint8_t name_bytes = 0;
  std::uint16_t zero = 0;
  std::uint32_t rank = 0;
};
static_assert(sizeof(Head) == 8);

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::vector<std::byte> encode(const LaneLoss& loss) {
  TRIBUTARY_ASSERT(loss.aggregator.size() <= kNameBytesMax, "an aggregator's name has {} bytes",
                   loss.aggregator.size());
  TRIBUTARY_ASSERT(loss.aggregator.empty() == (loss.who != LaneLoss::Who::aggregator),
                   "a loss of kind {} names an aggregator of {} bytes", loss.who, loss.aggregator.size());
  const Head head{.who = static_cast<std::uint8_t>(loss.who),
                  .name_bytes = static_cast<std::uint8_t>(loss.aggregator.size()),
                  .rank = loss.rank};
  const std::size_t room = payload_bytes_max(FrameType::failed) - sizeof head - loss.aggregator.size();
  const std::string reason = cut_before_code(loss.reason, room);
  std::vector<std::byte> payload(sizeof head + loss.aggregator.size() + reason.size());
  std::memcpy(payload.data(), &head, sizeof head);
  const auto end = std::ranges::copy(bytes_of(loss.aggregator), payload.begin() + sizeof head).out;
  std::ranges::copy(bytes_of(reason), end);
  return payload;
}

LaneLoss decode_lane_loss(std::span<const std::byte> payload) {
  LaneLoss malformed{.reason = coded(Reason::lane_broken, "a failed frame that cannot be read")};
  Head head;
  if (payload.size() < sizeof head) return malformed;
  std::memcpy(&head, payload.data(), sizeof head);
  const auto rest = payload.subspan(sizeof head);
  const auto who = static_cast<LaneLoss::Who>(head.who);
  const bool of_aggregator = who == LaneLoss::Who::aggregator;
  if (who > LaneLoss::Who::aggregator || head.zero != 0 || head.name_bytes > kNameBytesMax ||
      head.name_bytes > rest.size() || of_aggregator != (head.name_bytes > 0)) {
    return malformed;
  }
  LaneLoss loss{.who = who,
                .rank = who == LaneLoss::Who::rank ? head.rank : 0,
                .aggregator = text_of(rest.first(head.name_bytes)),
                .reason = text_of(rest.subspan(head.name_bytes))};
  if (of_aggregator && !is_name(loss.aggregator)) return malformed;
  return loss;
}

}  // namespace tributary
