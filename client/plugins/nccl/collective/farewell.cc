#include "client/plugins/nccl/collective/farewell.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "client/plugins/nccl/log.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::nccl {
namespace {

// The longest wait at the process's exit. A rank that has all its results can leave: every other rank has its results
// after at most one pause of the network.
constexpr std::chrono::seconds kExitLimit{10};

struct UnderWay {
  std::mutex mutex;
  std::condition_variable changed;
  int groups = 0;
};

// Returns the process's count. It is never destroyed, because the threads may run longer than main().
UnderWay& under_way() {
  static auto* const one = new UnderWay;
  return *one;
}

void wait_at_exit() {
  UnderWay& all = under_way();
  std::unique_lock lock(all.mutex);
  all.changed.wait_for(lock, kExitLimit, [&] { return all.groups == 0; });
}

void end_comm(tributary_comm* comm) {
  if (tributary_comm_destroy(comm) != TRIBUTARY_OK) {
    info(std::string("a group ended before all its ranks had left it: ") + tributary_last_error(nullptr));
  }
  UnderWay& all = under_way();
  const std::lock_guard lock(all.mutex);
  --all.groups;
  all.changed.notify_all();
}

}  // namespace

void end_in_the_background(tributary_comm* comm) {
  static const int registered = std::atexit(wait_at_exit);
  static_cast<void>(registered);
  {
    const std::lock_guard lock(under_way().mutex);
    ++under_way().groups;
  }
  const transport::BlockedSignals blocked;
  std::thread(end_comm, comm).detach();
}

}  // namespace tributary::nccl
