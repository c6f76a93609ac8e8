#pragma once
// The end of a connection that consists of channels of frames.
#include <memory>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

/// Closes the channel. Pass `in_order` if all requests of this end have ended. Frames to the other end may still be on
/// their way: a message, or the news that a message was received. The call then waits for them, at most two seconds.
void end_channel(Engine& engine, std::unique_ptr<transport::Channel> channel, bool in_order);

}  // namespace tributary::nccl
