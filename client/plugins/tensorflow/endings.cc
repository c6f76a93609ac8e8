#include "client/plugins/tensorflow/endings.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace tributary::tensorflow {
namespace {

struct Ending {
  void (*end)(void*);
  void* context;
};

/// Lives as long as the process: calls may end while the interpreter is being torn down.
class EndingThread {
 public:
  EndingThread() { std::thread(&EndingThread::run, this).detach(); }

  void add(Ending ending) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(ending);
    }
    wake_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !waiting_.empty(); });
      const Ending next = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      next.end(next.context);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Ending> waiting_;
};

}  // namespace

void end_later(void (*end)(void* context), void* context) {
  static auto* const thread = new EndingThread;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
  thread->add({end, context});
}

}  // namespace tributary::tensorflow
