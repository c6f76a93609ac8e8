#pragma once
// The end of a connection over channels of frames.
#include <memory>

#include "client/plugins/nccl/p2p/engine.h"

namespace tributary::nccl {

/// Closes the channel. `in_order`: nothing is under way here any more, but the other side may not have heard of all of
/// it: a message that was sent, or that one was taken. That is waited for, though not for long.
void end_channel(Engine& engine, std::unique_ptr<transport::Channel> channel, bool in_order);

}  // namespace tributary::nccl
