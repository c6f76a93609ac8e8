#pragma once
#include <string>

namespace tributary::cli {

/// The place of a child process: a host of its own, or this machine.
struct ChildHost {
  int network = -1;  // descriptor of a network namespace; -1: the namespace of this process
  std::string name;  // the host's name; empty: this machine's name
};

}  // namespace tributary::cli
