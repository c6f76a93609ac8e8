#pragma once
// Asynchronous events of devices. A process has one context of each device, so a transport may read an event that
// concerns another transport. Each event goes to all transports that use the device, on their own threads.
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
  /// Reads the events that have come, without waiting. Returns false if the device is gone, and reports no more events.
  /// Any thread may call it.
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
