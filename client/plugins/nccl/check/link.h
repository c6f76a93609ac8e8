#pragma once
// The connections of one rank: to and from every other one, several each.
#include <vector>

#include "client/plugins/nccl/check/session.h"

namespace tributary::nccl::check {

struct Link {
  int peer = 0;
  int number = 0;  // among those to this peer
  void* send_comm = nullptr;
  void* receive_comm = nullptr;
};

/// As NCCL's service thread: listens for everybody, then asks connect and accept in turn until all stand; neither may
/// wait.
[[nodiscard]] std::vector<Link> make_links(Session& session, int connections);
void close_links(Session& session, std::vector<Link>& links);

}  // namespace tributary::nccl::check
