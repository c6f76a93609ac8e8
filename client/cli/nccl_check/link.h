#pragma once
// The connections of one rank: several in each direction with every other rank.
#include <vector>

#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

struct Link {
  int peer = 0;
  int number = 0;  // number of the connection among this peer's connections
  void* send_comm = nullptr;
  void* receive_comm = nullptr;
};

/// Makes the links as NCCL's service thread does: listens for every rank, then calls connect and accept in turn until
/// all links exist. Neither call may block.
[[nodiscard]] std::vector<Link> make_links(Session& session, int connections);
void close_links(Session& session, std::vector<Link>& links);

}  // namespace tributary::cli::nccl_check
