#pragma once
// Looks at every group a few times a second and logs what NCCL's user should know: that sums are made in the network,
// that a tree was lost and how the group went on, or that there is no tree. Writes the counters to the file that
// TRIBUTARY_NCCL_METRICS names.
//
// It has a thread of its own, because a question to a group waits for its progress thread, and NCCL's threads may not
// wait.
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tributary/tributary.h"

namespace tributary::nccl {

class Observer {
 public:
  /// Returns the only observer of the process. Its thread lives while there are groups.
  static Observer& process();

  void add(tributary_comm* comm, int ranks, int rank);
  /// Looks a last time, and logs the group's totals; does not touch `comm` afterwards.
  void remove(tributary_comm* comm);

 private:
  struct Group {
    int number = 0;  // counted in this process, from 0
    int ranks = 0;
    int rank = 0;
    int looks = 0;
    bool said_how = false;  // the log says on which path the group began
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
  int generation_ = 0;  // the thread's; a thread of an older generation ends
  std::thread thread_;
};

}  // namespace tributary::nccl
