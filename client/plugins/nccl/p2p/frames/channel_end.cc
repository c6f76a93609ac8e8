#include "client/plugins/nccl/p2p/frames/channel_end.h"

#include <chrono>
#include <thread>

#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

// The other end's device confirms frames without its process. So only a broken network needs more than this time.
constexpr std::chrono::seconds kLastWordsLimit{2};

}  // namespace

void end_channel(Engine& engine, std::unique_ptr<transport::Channel> channel, bool in_order) {
  TRIBUTARY_ASSERT(channel != nullptr, "a connection is closed twice");
  auto lock = engine.lock();
  if (in_order && engine.loses_last_words()) {
    channel->close_after_flush(kLastWordsLimit);
    while (!channel->closed()) {
      engine.poll();
      lock.unlock();  // NCCL's progress thread may need the lock to move on other connections
      std::this_thread::yield();
      lock.lock();
    }
  }
  channel.reset();
}

}  // namespace tributary::nccl
