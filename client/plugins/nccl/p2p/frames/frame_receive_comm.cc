#include "client/plugins/nccl/p2p/frames/frame_receive_comm.h"

#include <algorithm>
#include <bit>

#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/p2p/frames/channel_end.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

transport::Placement refuse(const char* what) {
  return transport::Reject{{Errc::corrupt, what}};
}

}  // namespace

FrameReceiveComm::FrameReceiveComm(std::shared_ptr<Engine> on, std::unique_ptr<transport::Channel> channel,
                                   const Secret& secret, const std::string& listening_at)
    : ReceiveComm(std::move(on)),
      greeting_(secret, {listening_at, engine().accepted_end(*channel)}, 1),
      channel_(std::move(channel)) {
  for (Buffer& buffer : buffers_) {
    buffer.comm = this;
    free_.push_back(&buffer);
  }
  if (const auto begun = greeting_.begin(*channel_); !begun) {
    failed_ = true;
    failure_ = begun.error().message;
  }
}

FrameReceiveComm::~FrameReceiveComm() {
  if (channel_)
    end_channel(engine(), std::move(channel_), greeting_.proved() && !failed_ && free_.size() == buffers_.size());
}

abi::Result FrameReceiveComm::receive(void* data, std::size_t bytes, int tag, nccl::Request** request) {
  const auto lock = engine().lock();
  *request = nullptr;
  if (free_.empty()) {
    engine().poll();
    return abi::Result::success;
  }
  Buffer* buffer = free_.back();
  free_.pop_back();
  TRIBUTARY_ASSERT(buffer->comm == this, "a buffer of another connection is free here");
  buffer->room = {static_cast<std::byte*>(data), bytes};
  buffer->landed_bytes = 0;
  buffer->tag = tag;
  buffer->done = false;
  posted_.push_back(buffer);
  channel_->resume();
  *request = buffer;
  return abi::Result::success;
}

transport::Placement FrameReceiveComm::on_header(transport::Channel&, const FrameHeader& header) {
  if (!greeting_.proved()) return greeting_.place(header);
  if (header.type != FrameType::message) return refuse("a frame that is no message");
  return header.segment == 0 ? place_first(header) : place_next(header);
}

transport::Placement FrameReceiveComm::place_first(const FrameHeader& header) {
  if (filling_ != nullptr) return refuse("a message begins inside another");
  const auto at = std::ranges::find(posted_, std::bit_cast<int>(header.root), &Buffer::tag);
  if (at == posted_.end()) return transport::NotYet{};
  if (header.count > (*at)->room.size()) return refuse("a message is longer than the buffer that was posted for it");
  filling_ = *at;
  posted_.erase(at);
  filling_->room = filling_->room.first(header.count);
  return place_next(header);
}

transport::Placement FrameReceiveComm::place_next(const FrameHeader& header) {
  if (filling_ == nullptr || filling_->room.size() - filling_->landed_bytes < header.payload_bytes) {
    return refuse("a piece that has no place in its message");
  }
  return transport::Accept{filling_->room.subspan(filling_->landed_bytes, header.payload_bytes)};
}

void FrameReceiveComm::on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte> payload) {
  if (!greeting_.proved()) {
    const auto taken = greeting_.take(channel);
    if (taken) return;
    failed_ = true;
    failure_ = taken.error().message + ".";
    channel.close();
    return;
  }
  TRIBUTARY_ASSERT(filling_ != nullptr && payload.size() <= filling_->room.size() - filling_->landed_bytes,
                   "{} bytes came, more than the message still lacks", payload.size());
  filling_->landed_bytes += payload.size();
  if (filling_->landed_bytes < filling_->room.size()) return;
  filling_->done = true;
  filling_ = nullptr;
}

void FrameReceiveComm::on_closed(transport::Channel& channel, const Error& error) {
  failed_ = true;
  failure_ = channel.peer() + ": " + error.message;
}

abi::Result FrameReceiveComm::Buffer::test(int* finished, int* sizes) {
  Engine& engine = comm->engine();
  const auto lock = engine.lock();
  if (!done) engine.poll();
  *finished = done ? 1 : 0;
  if (!done && !comm->failed_) return abi::Result::success;
  TRIBUTARY_ASSERT(comm->free_.size() < comm->buffers_.size(), "all {} buffers are free already",
                   comm->buffers_.size());
  comm->free_.push_back(this);
  if (done) {
    if (sizes != nullptr) *sizes = static_cast<int>(room.size());
    return abi::Result::success;
  }
  std::erase(comm->posted_, this);
  warn("a message of up to " + std::to_string(room.size()) + " bytes did not come: " + comm->failure_);
  return abi::Result::remote_error;
}

}  // namespace tributary::nccl
