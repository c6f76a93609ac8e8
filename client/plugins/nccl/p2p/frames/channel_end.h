#pragma once
// The end of a connection over channels of frames.
#include <memory>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

/// Closes the channel. `in_order`: this end has no request under way, but frames to the other end may still be: a
/// message, or the news that one was received. The call then waits for these frames, at most two seconds.
void end_channel(Engine& engine, std::unique_ptr<transport::Channel> channel, bool in_order);

}  // namespace tributary::nccl
