#pragma once
// The ranks of a launcher meet and make one communicator.
#include <string>

#include "client/cli/perf/launch.h"
#include "client/cli/perf/owned_comm.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct MeetWish {
  std::string id_file;  // file through which the ranks meet; empty: they meet at MASTER_ADDR:MASTER_PORT
  double seconds = 60;
};

/// Every rank must call this.
[[nodiscard]] Result<OwnedComm> meet(const Launch& launch, const MeetWish& wish, const tributary_config& config);

}  // namespace tributary::cli
