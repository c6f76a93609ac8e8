#pragma once
// Which transport a communicator runs on.
#include <memory>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// The first of `wanted` that is built, or the library's choice for an empty list; Errc::unsupported if there is none.
[[nodiscard]] Result<std::string> choose_transport(const std::vector<std::string>& wanted);
/// The one that ranks meet by, and so far the only one: tcp.
[[nodiscard]] std::unique_ptr<transport::Transport> make_transport();

}  // namespace tributary::client
