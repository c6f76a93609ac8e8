#pragma once
// Reads every group's counters a few times a second, and logs the events that matter to NCCL's user: the network makes
// the sums, a tree was lost and how the group continued, or the group has no tree. Writes the counters to the file that
// TRIBUTARY_NCCL_METRICS names.
//
// It has a thread of its own: reading a group's counters waits for the group's progress thread, and NCCL's threads may
// not wait.
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tributary/tributary.h"

namespace tributary::nccl {

class Observer {
 public:
  /// Returns the only observer of the process. Its thread runs while the process has groups.
  static Observer& process();

  void add(tributary_comm* comm, int ranks, int rank);
  /// Reads the group's counters a last time and logs their totals. Does not use `comm` afterwards.
  void remove(tributary_comm* comm);

 private:
  struct Group {
    int number = 0;  // number of the group in this process, from 0
    int ranks = 0;
    int rank = 0;
    int looks = 0;
    bool said_how = false;  // true once the log says on which path the group began
    tributary_info last{};
  };

  void run(int generation);
  void look(tributary_comm* comm, Group& group);
  void write_metrics() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<tributary_comm*, Group> groups_;
  tributary_info ended_{};  // sums over groups that have ended
  int next_number_ = 0;
  int generation_ = 0;  // generation of the thread; a thread of an older generation ends
  std::thread thread_;
};

}  // namespace tributary::nccl
