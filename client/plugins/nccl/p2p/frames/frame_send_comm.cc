#include "client/plugins/nccl/p2p/frames/frame_send_comm.h"

#include <algorithm>
#include <bit>

#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/p2p/frames/channel_end.h"
#include "client/plugins/nccl/settings.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

// Enough frames to keep the device busy. With more frames, the queue that every write searches would only be longer.
constexpr std::uint32_t kFramesQueuedMax = 64;

// Over verbs, all connections of one memory group share a buffer's registration. All connections of an engine use
// memory of the same communicator, so they are one group. Engines share nothing, so all engines may use the same
// number.
constexpr std::uint64_t kMemoryGroup = 1;

}  // namespace

FrameSendComm::FrameSendComm(std::shared_ptr<Engine> on, const NetHandle& to)
    : SendComm(std::move(on)),
      listening_at_(to_string(to.endpoint())),
      open_until_(transport::Clock::now() + settings().connect_limit),
      secret_(to.secret),
      greeting_(to.secret, {.connection = std::string(kNonceDigits, '0')}) {
  for (Message& message : messages_) {
    message.comm = this;
    free_.push_back(&message);
  }
  const auto lock = engine().lock();
  channel_ = engine().transport().connect(to.endpoint(), *this, settings().connect_limit);
  const std::uint64_t sealed_as = engine().keys().connect(secret_);
  greeting_.begin(*channel_, sealed_as != 0 ? sealed_as : kMemoryGroup);
}

FrameSendComm::~FrameSendComm() {
  end_channel(engine(), std::move(channel_), greeting_.proved() && !failed_ && free_.size() == messages_.size());
  const auto lock = engine().lock();
  engine().keys().connected(secret_);
}

SendComm::Opening FrameSendComm::opening() {
  const auto lock = engine().lock();
  engine().poll();
  // If a connection has opened and then closed, report it as open, as the other end does: its messages will fail.
  if (greeting_.proved()) return Opening::open;
  if (!failed_ && transport::Clock::now() > open_until_) {
    failed_ = true;
    failure_ =
        listening_at_ + " has not proved that it is the listening process within TRIBUTARY_NCCL_CONNECT_TIMEOUT.";
  }
  if (!failed_) return Opening::under_way;
  warn("cannot connect: " + failure_);
  return Opening::failed;
}

abi::Result FrameSendComm::send(const void* data, std::size_t bytes, int tag, nccl::Request** request) {
  const auto lock = engine().lock();
  *request = nullptr;
  if (free_.empty()) {
    engine().poll();
    return abi::Result::success;
  }
  Message* message = free_.back();
  free_.pop_back();
  message->data = {static_cast<const std::byte*>(data), bytes};
  message->tag = tag;
  message->number = next_number_++;
  message->queued_bytes = 0;
  message->frames_queued = 0;
  message->all_queued = message->done = false;
  to_queue_.push_back(message);
  queue_frames();
  engine().poll();  // send now; the next test may come late
  *request = message;
  return abi::Result::success;
}

void FrameSendComm::queue_frames() {
  while (!failed_ && !to_queue_.empty() && frames_queued_ < kFramesQueuedMax) {
    Message& message = *to_queue_.front();
    if (!queue_next_frame(message)) return;
    if (message.all_queued) to_queue_.pop_front();
  }
}

bool FrameSendComm::queue_next_frame(Message& message) {
  TRIBUTARY_ASSERT(!message.all_queued && message.queued_bytes <= message.data.size(),
                   "{} of a message's {} bytes are queued, and it waits", message.queued_bytes, message.data.size());
  const auto piece = message.data.subspan(
      message.queued_bytes, std::min<std::size_t>(message.data.size() - message.queued_bytes, kPeerBytesMax));
  FrameHeader header;
  header.type = FrameType::message;
  header.sequence = message.number;
  header.count = message.data.size();
  header.segment = static_cast<std::uint32_t>(message.queued_bytes / kPeerBytesMax);
  header.root = std::bit_cast<std::uint32_t>(message.tag);
  if (!channel_->send(header, piece, reinterpret_cast<std::uint64_t>(&message))) return false;
  message.queued_bytes += piece.size();
  ++message.frames_queued;
  ++frames_queued_;
  message.all_queued = message.queued_bytes == message.data.size();
  return true;
}

void FrameSendComm::on_sent(transport::Channel&, std::uint64_t cookie) {
  auto& message = *reinterpret_cast<Message*>(cookie);
  TRIBUTARY_ASSERT(message.comm == this && message.frames_queued > 0 && message.frames_queued <= frames_queued_,
                   "a frame was sent of message {}, which has {} of {} queued frames", message.number,
                   message.frames_queued, frames_queued_);
  --message.frames_queued;
  --frames_queued_;
  message.done = message.all_queued && message.frames_queued == 0;
  queue_frames();
}

transport::Placement FrameSendComm::on_header(transport::Channel& channel, const FrameHeader& header) {
  if (!greeting_.proved()) return greeting_.place(header);
  return transport::Reject{{Errc::corrupt, channel.peer() + " sent a frame of type " +
                                               std::string(to_string(header.type)) +
                                               " on a connection that only receives."}};
}

void FrameSendComm::on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte>) {
  const auto taken = greeting_.take(channel, {listening_at_, engine().connecting_end(channel)});
  if (taken) return;
  failed_ = true;
  failure_ = taken.error().message + ".";
  channel.close();
}

void FrameSendComm::on_closed(transport::Channel&, const Error& error) {
  failed_ = true;
  failure_ = error.message;
  if (!greeting_.proved() && error.code == Errc::peer_gone)
    failure_ += " It has not proved that it is the listening process.";
}

abi::Result FrameSendComm::Message::test(int* finished, int* sizes) {
  Engine& engine = comm->engine();
  const auto lock = engine.lock();
  if (!done) engine.poll();
  *finished = done ? 1 : 0;
  if (!done && !comm->failed_) return abi::Result::success;
  TRIBUTARY_ASSERT(comm->free_.size() < comm->messages_.size(), "all {} messages are free already",
                   comm->messages_.size());
  comm->free_.push_back(this);
  if (done) {
    TRIBUTARY_ASSERT(all_queued && frames_queued == 0, "message {} is done with {} frames queued", number,
                     frames_queued);
    if (sizes != nullptr) *sizes = static_cast<int>(data.size());
    return abi::Result::success;
  }
  std::erase(comm->to_queue_, this);
  warn("a message of " + std::to_string(data.size()) + " bytes was not sent: " + comm->failure_);
  return abi::Result::remote_error;
}

}  // namespace tributary::nccl
