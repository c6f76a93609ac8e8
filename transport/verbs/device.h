#pragma once
// One RDMA device as one transport uses it: a completion queue that its queue pairs share, and its protection domains.
// The object lives while a connection uses it.
#include <map>
#include <memory>
#include <vector>

#include "transport/verbs/registrations.h"
#include "transport/verbs/resources.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

/// A protection domain of a group or of one connection, and the memory that is registered in it.
class Domain {
 public:
  Domain(ProtectionDomainPtr domain, Exposed exposed, const VerbsSettings& settings, const KeptRanges& kept,
         VerbsStatistics& statistics, bool on_demand)
      : domain_(std::move(domain)), registrations_(*domain_, exposed, settings, kept, statistics, on_demand) {}
  [[nodiscard]] ibv_pd* get() const noexcept { return domain_.get(); }
  [[nodiscard]] Registrations& registrations() noexcept { return registrations_; }

 private:
  ProtectionDomainPtr domain_;
  Registrations registrations_;
};

class Device {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Device>> open(ibv_context* context, const VerbsSettings& settings,
                                                            const KeptRanges& kept, VerbsStatistics& statistics);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] ibv_context* context() const noexcept { return context_; }
  [[nodiscard]] ibv_cq* completion_queue() const noexcept { return queue_.get(); }
  [[nodiscard]] int completion_descriptor() const noexcept { return channel_->fd; }
  [[nodiscard]] std::string name() const { return ibv_get_device_name(context_->device); }
  [[nodiscard]] std::uint32_t reads_max() const noexcept { return reads_max_; }

  /// The number of memory windows of one queue pair; 0: the device has no windows.
  [[nodiscard]] std::uint32_t windows() const noexcept { return windows_; }

  /// True if the device has RDMA WRITE WITH IMMEDIATE; iWARP devices seldom have it.
  [[nodiscard]] bool writes_tell() const noexcept { return !is_iwarp(); }

  /// True for Linux's rdma_rxe. Before rdma-core 64 its ibv_wr_set_sge_list counts the first buffer's length for every
  /// buffer, and so sends too few bytes; there, lists that gather several buffers are posted by ibv_post_send.
  [[nodiscard]] bool is_software_roce() const noexcept { return windows_unbounded_; }

  /// Returns the group's domain. For group 0, and where peers get the keys of registrations, each call makes a new
  /// domain.
  [[nodiscard]] Result<std::shared_ptr<Domain>> domain_of(std::uint64_t group);
  void forget(std::span<const std::byte> memory, Registrations::Kept kept = Registrations::Kept::stays);

  /// The completion queue must never overflow, so a connection reserves room for its outstanding work before the work
  /// begins. A device bounds the length of a queue: if has_room() is false, the transport opens the same device once
  /// more, as another Device.
  [[nodiscard]] bool has_room(std::uint32_t completions) const noexcept {
    return reserved_ + completions <= completions_max_;
  }
  [[nodiscard]] Status reserve(std::uint32_t completions);
  /// Ends a reservation. Completions of that connection may still be in the queue, until the queue is empty for the
  /// first time.
  void give_back(std::uint32_t completions) noexcept {
    leftover_ += completions;
    TRIBUTARY_ASSERT(leftover_ <= reserved_, "{} completions are given back, of {} reserved", leftover_, reserved_);
  }
  void seen_empty() noexcept {
    reserved_ -= leftover_;
    leftover_ = 0;
  }

  /// Makes the next completion wake the thread that waits for completion_descriptor().
  void arm() noexcept;
  void take_events() noexcept;

 private:
  [[nodiscard]] bool is_iwarp() const noexcept { return context_->device->transport_type == IBV_TRANSPORT_IWARP; }
  Device(ibv_context* context, const VerbsSettings& settings, const KeptRanges& kept, VerbsStatistics& statistics)
      : context_(context), settings_(settings), kept_(kept), statistics_(statistics) {}

  ibv_context* context_;  // the connection manager owns it as long as the process lives
  const VerbsSettings& settings_;
  const KeptRanges& kept_;
  VerbsStatistics& statistics_;
  CompletionChannelPtr channel_;
  CompletionQueuePtr queue_;
  std::uint32_t completions_max_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t leftover_ = 0;
  std::uint32_t reads_max_ = 1;
  std::uint32_t windows_ = 0;
  bool windows_unbounded_ = false;
  bool on_demand_ = false;
  bool armed_ = false;
  std::map<std::uint64_t, std::weak_ptr<Domain>> domains_;  // domains of groups
  std::vector<std::weak_ptr<Domain>> own_domains_;          // domains of single connections
};

}  // namespace tributary::transport::verbs
