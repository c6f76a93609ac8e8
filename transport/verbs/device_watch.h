#pragma once
// Asynchronous events of devices. A process has one context of each device, so whichever transport reads an event may
// have read another one's: it goes to all that use the device, each on its own thread.
#include <memory>
#include <mutex>
#include <vector>

#include "transport/verbs/resources.h"

namespace tributary::transport {
class VerbsCore;
}

namespace tributary::transport::verbs {

class DeviceWatch {
 public:
  [[nodiscard]] static DeviceWatch& of_process();
  void enter(ibv_context* context, std::weak_ptr<VerbsCore> core);
  /// Reads what has come, without waiting. False: the device is gone, and tells nothing any more. Any thread.
  [[nodiscard]] bool read(ibv_context* context);

 private:
  struct User {
    ibv_context* context;
    std::weak_ptr<VerbsCore> core;
  };
  std::mutex mutex_;  // guards users_
  std::vector<User> users_;
};

}  // namespace tributary::transport::verbs
