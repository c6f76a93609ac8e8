#pragma once
// Looks at every group a few times a second and says what NCCL's user should know: that sums are made in the network,
// that a tree was lost and what became of it, that there is none. Writes the counters where TRIBUTARY_NCCL_METRICS
// says.
//
// A thread of its own, because the question to a group waits for its progress thread, and NCCL's may not wait.
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tributary/tributary.h"

namespace tributary::nccl {

class Observer {
 public:
  /// One for the process. Its thread lives while there are groups.
  static Observer& process();

  void add(tributary_comm* comm, int ranks, int rank);
  /// A last look, and a line with the group's totals; `comm` is not touched afterwards.
  void remove(tributary_comm* comm);

 private:
  struct Group {
    int number = 0;  // in this process, from 0
    int ranks = 0;
    int rank = 0;
    int looks = 0;
    bool said_how = false;  // which path it began on
    tributary_info last{};
  };

  void run(int generation);
  void look(tributary_comm* comm, Group& group);
  void write_metrics() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<tributary_comm*, Group> groups_;
  tributary_info ended_{};  // sums over groups that are no more
  int next_number_ = 0;
  int generation_ = 0;  // of the thread; a thread of an older one ends
  std::thread thread_;
};

}  // namespace tributary::nccl
