#include "transport/verbs/device.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

constexpr std::uint32_t kCompletionsAtFirst = 1024;
constexpr std::uint32_t kWindowsMax = 1024;
// Linux's rdma_rxe checks the bounds of the registration under a window instead of the window's own (in Linux 6.12).
constexpr std::uint32_t kSoftwareRoceVendor = 0xFFFFFF;

/// True if the device registers memory on demand for all operations of a reliable connection.
bool registers_on_demand(ibv_context& context) {
  constexpr unsigned kUses = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
  ibv_device_attr_ex attributes{};
  if (ibv_query_device_ex(&context, nullptr, &attributes) != 0) return false;
  const auto& can = attributes.odp_caps;
  return (can.general_caps & IBV_ODP_SUPPORT) != 0 && (can.per_transport_caps.rc_odp_caps & kUses) == kUses;
}

std::unexpected<Error> refused(const Device& device, const char* what) {
  const int error = errno;
  return fail(Errc::exhausted,
              "RDMA device " + device.name() + ": cannot make " + what + ": " + std::strerror(error) + ".");
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(ibv_context* context, const VerbsSettings& settings,
                                             const KeptRanges& kept, VerbsStatistics& statistics) {
  std::shared_ptr<Device> device(new Device(context, settings, kept, statistics));
  device->channel_.reset(ibv_create_comp_channel(context));
  if (!device->channel_) return refused(*device, "a completion channel");
  const int flags = ::fcntl(device->channel_->fd, F_GETFL);
  ::fcntl(device->channel_->fd, F_SETFL, flags | O_NONBLOCK);
  ibv_device_attr limits{};
  device->completions_max_ = kCompletionsAtFirst;
  if (ibv_query_device(context, &limits) == 0) {
    device->completions_max_ = static_cast<std::uint32_t>(std::max(limits.max_cqe, 1));
    device->reads_max_ =
        static_cast<std::uint32_t>(std::clamp(std::min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom), 1, 16));
    constexpr unsigned kBoundToQueuePairs = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    if ((limits.device_cap_flags & kBoundToQueuePairs) != 0 && limits.max_mw > 0 && !device->is_iwarp()) {
      device->windows_ = std::bit_floor(std::min(settings.windows_max, kWindowsMax));
    }
    device->windows_unbounded_ = limits.vendor_id == kSoftwareRoceVendor;
  }
  device->on_demand_ = settings.on_demand && registers_on_demand(*context);
  return device;
}

Device::~Device() {
  if (queue_) --statistics_.completion_queues;
}

Result<std::shared_ptr<Domain>> Device::domain_of(std::uint64_t group) {
  const Exposed exposed{.peers = windows_ == 0, .locals = is_iwarp(), .windows_unbounded = windows_unbounded_};
  const bool shared = group != 0 && !exposed.peers && !exposed.locals;
  if (shared) {
    if (auto known = domains_[group].lock()) return known;
  }
  ProtectionDomainPtr made(ibv_alloc_pd(context_));
  if (!made) return refused(*this, "a protection domain");
  auto domain = std::make_shared<Domain>(std::move(made), exposed, settings_, kept_, statistics_, on_demand_);
  std::erase_if(domains_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(own_domains_, [](const auto& entry) { return entry.expired(); });
  if (shared) {
    domains_[group] = domain;
  } else {
    own_domains_.push_back(domain);
  }
  return domain;
}

void Device::forget(std::span<const std::byte> memory, Registrations::Kept kept) {
  for (auto& [group, weak] : domains_) {
    if (auto domain = weak.lock()) domain->registrations().forget(memory, kept);
  }
  for (auto& weak : own_domains_) {
    if (auto domain = weak.lock()) domain->registrations().forget(memory, kept);
  }
}

Status Device::reserve(std::uint32_t completions) {
  const std::uint32_t wanted = reserved_ + completions;
  if (!queue_) {
    const std::uint32_t size = std::min(std::max(wanted, kCompletionsAtFirst), completions_max_);
    queue_.reset(ibv_create_cq(context_, static_cast<int>(size), nullptr, channel_.get(), 0));
    if (!queue_) return refused(*this, "a completion queue");
    ++statistics_.completion_queues;
    capacity_ = size;
  } else if (wanted > capacity_) {
    const std::uint32_t size = std::min(std::max(wanted, 2 * capacity_), completions_max_);
    if (ibv_resize_cq(queue_.get(), static_cast<int>(size)) != 0) return refused(*this, "its completion queue larger");
    capacity_ = size;
  }
  reserved_ = wanted;
  return {};
}

void Device::arm() noexcept {
  if (!queue_ || armed_) return;
  armed_ = ibv_req_notify_cq(queue_.get(), 0) == 0;
}

/// Takes the event of an armed completion queue; each arming causes one event.
void Device::take_events() noexcept {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (!armed_ || ibv_get_cq_event(channel_.get(), &queue, &context) != 0) return;
  TRIBUTARY_ASSERT(queue == queue_.get(), "a completion channel tells of a queue of another device");
  armed_ = false;
  ibv_ack_cq_events(queue, 1);
}

}  // namespace tributary::transport::verbs
