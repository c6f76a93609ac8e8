#pragma once
#include <sys/socket.h>

#include "client/cli/nccl_check/failure.h"

namespace tributary::cli::nccl_check {

/// Opens a socket for a connection. Ends the check with an error if the system has none.
inline int open_socket(int family) {
  const int one = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (one < 0) throw Failure("cannot open a socket");
  return one;
}

}  // namespace tributary::cli::nccl_check
