#pragma once
// The daemon over DPDK: one device, with a queue for each worker and, if there are several workers, a queue for the
// door.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/daemon/settings.h"
#include "aggregator/daemon/udp_door.h"
#include "aggregator/daemon/worker_thread.h"
#include "aggregator/modules/dpdk_module.h"
#include "tributary/transport/link_keys.h"

namespace tributary::aggregator {

class DpdkNetwork {
 public:
  /// Opens the device that `settings` name; `settings` must outlive the result. Errc::bad_config names the missing
  /// setting.
  [[nodiscard]] static Result<std::unique_ptr<DpdkNetwork>> open(const Settings& settings,
                                                                 std::shared_ptr<transport::LinkKeys> keys);

  [[nodiscard]] Result<std::unique_ptr<WorkerThread>> start_worker(std::uint32_t index, MemoryBudget& budget,
                                                                   WorkerSettings worker,
                                                                   Worker::VerifyJoin verify) const;
  /// Returns nullptr if there is one worker, because this worker listens itself. Called once, when all workers listen.
  [[nodiscard]] Result<std::unique_ptr<UdpDoor>> open_door(transport::DpdkTransport::Route route);

  // ---- Calls of any thread
  [[nodiscard]] std::string address() const { return module_.address(*device_); }
  [[nodiscard]] transport::DpdkDeviceStatistics statistics() const { return module_.device_statistics(*device_); }
  /// Returns the counts of the door's queue; empty without a door, or if its thread does not answer. Call it before you
  /// destroy the door.
  [[nodiscard]] std::optional<transport::DpdkStatistics> door_statistics() const;

 private:
  DpdkNetwork(const Settings& settings, const DpdkModule& module, std::shared_ptr<transport::LinkKeys> keys)
      : settings_(settings), module_(module), keys_(std::move(keys)) {}
  [[nodiscard]] Status open_device();
  [[nodiscard]] transport::DpdkSettings queue_settings(std::uint32_t queue) const;
  [[nodiscard]] bool needs_door() const noexcept { return settings_.workers > 1; }

  const Settings& settings_;
  const DpdkModule& module_;
  const std::shared_ptr<transport::LinkKeys> keys_;
  std::shared_ptr<transport::DpdkDevice> device_;  // shared by all workers and the door
  transport::Transport* door_ = nullptr;           // null until open_door() makes one
};

}  // namespace tributary::aggregator
