#include "tree-manager/daemon/reload.h"

#include <spdlog/spdlog.h>

#include "service-kit/notify.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {

void Reloader::begin() {
  service::notify_service_manager("RELOADING=1");
  const auto settings = read_again_();
  if (!settings) {
    spdlog::error("nothing was reloaded: {}", settings.error().message);
  } else {
    spdlog::set_level(spdlog::level::from_str(settings->log_level));
    waiting_.reset();
    changes_.files(*settings);
    const auto taken = changes_.records(*settings);
    if (const auto ok = audit_ != nullptr ? audit_->reopen() : Status{}; !ok) spdlog::error("{}", ok.error().message);
    if (taken) {
      spdlog::info("reloaded; log level {}", settings->log_level);
    } else {
      waiting_ = *settings;
      spdlog::warn("the reload waits for the store, and goes on by itself: {}", taken.error().message);
    }
  }
  service::notify_service_manager("READY=1");
}

void Reloader::go_on() {
  TRIBUTARY_ASSERT(waits(), "a reload goes on that does not wait");
  const auto taken = changes_.records(*waiting_);
  if (!taken) return;
  if (*taken) {
    spdlog::info("the reload has gone on: the store takes changes again");
  } else {
    spdlog::warn("the reload has ended without some of its changes: the errors above say which, and why");
  }
  waiting_.reset();
}

}  // namespace tributary::manager
