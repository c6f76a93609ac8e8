#include "transport/verbs/verbs_sealing.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

constexpr std::size_t kPartBytesMin = 8;

}  // namespace

// ---- The greeting

bool VerbsSealing::begin(VerbsConnection& c, const FrameHeader& first) {
  const auto link = choose_link(*c.core_.settings().keys, first.group, first.epoch, first.lane, c.peer_);
  if (link && !*link) return true;
  auto seal = link ? SealedMessages::of_client(**link) : std::unexpected(link.error());
  if (!seal) {
    c.broken(std::move(seal.error()));
    return false;
  }
  c.seal_ = std::move(*seal);
  return true;
}

bool VerbsSealing::greets(VerbsConnection& c) {
  if (!c.seal_ || c.seal_->ready() || !c.seal_->is_client()) return false;
  if (c.credit_.number() == 0) send_greeting(c);
  return true;
}

void VerbsSealing::send_greeting(VerbsConnection& c) {
  TRIBUTARY_ASSERT(c.credit_.number() == 0, "the greeting to {} is message {}", c.peer_, c.credit_.number());
  QueuePair& pair = c.pairs_.front();
  const auto message = c.rings_.send(0).first(kGreetingBytes);
  std::ranges::copy(c.seal_->ours(), message.begin());
  ibv_send_wr& work = pair.list.add(c.next_work(WorkKind::send, pair), message, c.rings_.local_key());
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  c.credit_.send();
  ++c.core_.statistics.messages_sent;
  static_cast<void>(c.post(pair));
}

void VerbsSealing::take_greeting(VerbsConnection& c, const Came& what, std::span<const std::byte> message) {
  c.inbox_.take_next();
  ++c.core_.statistics.messages_received;
  const Status greeted = c.seal_->greet(message);
  if (!greeted) {
    ++c.core_.statistics.seals_refused;
    const bool client = c.seal_->is_client();
    return c.broken(
        {greeted.error().code,
         (client ? "cannot connect to " + c.peer_ + ": " : c.peer_ + " is refused: ") + greeted.error().message + "."});
  }
  c.pairs_[what.queue_pair].to_receive.push_back(what.index);
  if (!c.seal_->is_client()) send_greeting(c);
  c.make_due();
  c.core_.make_dirty(c);
}

// ---- Receiving

/// One queue pair brings the messages in their order. After a message that this side does not believe, it takes none.
void VerbsSealing::came(VerbsConnection& c, const Came& what) {
  if (c.seal_->failed()) return;
  if (what.written) return distrust(c, "a write to a sealed connection");
  const auto message = c.receive(what.queue_pair, what.index).first(what.bytes);
  if (!c.seal_->ready()) return take_greeting(c, what, message);
  const auto content = c.seal_->open(message);
  if (content.empty()) {
    ++c.core_.statistics.messages_forged;
    return c.broken({Errc::corrupt, "message " + std::to_string(c.seal_->opened()) + " of the sealed connection to " +
                                        c.peer_ +
                                        " is not authentic: it was changed on its way, or by a process between the two "
                                        "sides."});
  }
  Came opened = what;
  opened.bytes = static_cast<std::uint32_t>(content.size());
  if (c.early_by(opened) != 0U) return distrust(c, "a message out of turn");
  c.take(opened);
}

void VerbsSealing::distrust(VerbsConnection& c, const char* why) {
  c.seal_->fail();
  static_cast<void>(c.corrupt(why));
}

bool VerbsSealing::serve_part(VerbsConnection& c, std::span<const std::byte> part) {
  const auto rest = c.reader_.in_frame() ? c.reader_.rest() : std::span<std::byte>();
  if (part.empty() || part.size() > rest.size()) return c.corrupt("a part that no frame waits for");
  if (!c.copy_payload(rest.first(part.size()), part.data())) {
    c.reader_.forget();
    return false;
  }
  c.reader_.land(part.size());
  if (c.reader_.whole()) return c.deliver();
  c.inbox_.end_record();
  return true;
}

// ---- Sending

std::optional<std::size_t> VerbsSealing::seal(VerbsConnection& c, std::span<std::byte> content) {
  const std::span message(content.data(), content.size() + kMessageTagBytes);  // message_bytes_ leaves the room
  if (c.seal_->seal(message)) return message.size();
  c.broken({Errc::io, "cannot send to " + c.peer_ + ": OpenSSL does not seal a message."});
  return std::nullopt;
}

std::optional<std::size_t> VerbsSealing::write_part(VerbsConnection& c, FrameQueue::Frame& frame,
                                                    std::span<std::byte> rest) {
  if (rest.size() < sizeof(RecordHead) + kPartBytesMin) return 0;
  const auto left = frame.payload.subspan(frame.parted);
  const std::size_t bytes = std::min(left.size(), rest.size() - sizeof(RecordHead));
  RecordHead head{.kind = frame.parted == 0 ? RecordKind::begin : RecordKind::part,
                  .payload_bytes = static_cast<std::uint32_t>(bytes),
                  .header = {}};
  if (frame.parted == 0) encode(frame.header, head.header);
  std::memcpy(rest.data(), &head, sizeof head);
  if (!c.copy_payload(rest.subspan(sizeof head, bytes), left.data())) return std::nullopt;
  frame.parted += bytes;
  c.spend(bytes, kTurnBytesOfPacket);
  if (bytes == left.size()) {
    c.queue_.sent(false);
    ++c.core_.statistics.frames_sent;
  }
  return sizeof head + aligned(bytes);
}

}  // namespace tributary::transport::verbs
