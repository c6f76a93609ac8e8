#include "client/plugins/nccl/p2p/frames/channel_end.h"

#include <chrono>
#include <thread>

#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

// The other end's device confirms frames without its process, so only a broken network takes longer than this.
constexpr std::chrono::seconds kLastWordsLimit{2};

}  // namespace

void end_channel(Engine& engine, std::unique_ptr<transport::Channel> channel, bool in_order) {
  TRIBUTARY_ASSERT(channel != nullptr, "a connection is closed twice");
  auto lock = engine.lock();
  if (in_order && engine.loses_last_words()) {
    channel->close_after_flush(kLastWordsLimit);
    while (!channel->closed()) {
      engine.poll();
      lock.unlock();  // NCCL's progress thread may have other connections to move on
      std::this_thread::yield();
      lock.lock();
    }
  }
  channel.reset();
}

}  // namespace tributary::nccl
