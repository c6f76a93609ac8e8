#include "transport/verbs/device_watch.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <string>

#include "transport/verbs/verbs_core.h"

namespace tributary::transport::verbs {
namespace {

struct Failure {
  std::uint32_t queue_pair = 0;  // 0: the whole device
  std::string what;
};

std::optional<Failure> failure_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
      return Failure{event.element.qp->qp_num, ibv_event_type_str(event.event_type)};
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return Failure{0, ibv_event_type_str(event.event_type)};
    case IBV_EVENT_PORT_ERR:
      return Failure{0, "port " + std::to_string(event.element.port_num) + " is down"};
    default:
      return std::nullopt;  // no failure, or the connection manager also reports it
  }
}

}  // namespace

// The object is never destroyed, because transports may end while the process ends.
DeviceWatch& DeviceWatch::of_process() {
  static auto* const one = new DeviceWatch;
  return *one;
}

void DeviceWatch::enter(ibv_context* context, std::weak_ptr<VerbsCore> core) {
  const int flags = ::fcntl(context->async_fd, F_GETFL);
  ::fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK);
  const std::lock_guard lock(mutex_);
  std::erase_if(users_, [](const User& user) { return user.core.expired(); });
  users_.push_back({context, std::move(core)});
}

bool DeviceWatch::read(ibv_context* context) {
  ibv_async_event event{};
  for (;;) {
    errno = 0;
    if (ibv_get_async_event(context, &event) != 0) return errno == EAGAIN || errno == EINTR;
    const auto failure = failure_of(event);
    ibv_ack_async_event(&event);  // comes first: before this call, the queue pair cannot be destroyed
    if (!failure) continue;
    const std::lock_guard lock(mutex_);
    for (const User& user : users_) {
      const auto core = user.context == context ? user.core.lock() : nullptr;
      if (!core) continue;
      core->post([weak = user.core, context, failure = *failure] {
        if (const auto alive = weak.lock()) alive->device_failed(context, failure.queue_pair, failure.what);
      });
    }
  }
}

}  // namespace tributary::transport::verbs
