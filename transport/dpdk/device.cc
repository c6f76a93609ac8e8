#include "transport/dpdk/device.h"

#include <net/if.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "transport/dpdk/af_packet.h"
#include "transport/dpdk/driver_log.h"
#include "transport/dpdk/huge_pages.h"
#include "transport/dpdk/memif.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::dpdk {
namespace {

constexpr auto kTurn = std::chrono::milliseconds(50);
constexpr std::uint32_t kMtuMin = 1280;
constexpr int kAnnouncements = 2;  // RFC 5227, 2.3: two announcements, two seconds apart
constexpr auto kAnnouncementInterval = std::chrono::seconds(2);

/// "net_memif0" of "net_memif0,role=client,socket=/run/a.sock".
std::string name_of(const std::string& device) {
  return device.substr(0, device.find(','));
}

/// The MTU of the kernel's interface with this index; 0: there is none.
std::uint32_t interface_mtu(unsigned index) {
  ifreq request{};
  if (index == 0 || ::if_indextoname(index, request.ifr_name) == nullptr) return 0;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return 0;
  const bool told = ::ioctl(socket, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0;
  ::close(socket);
  return told ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
}

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

}  // namespace

Device::Device(std::shared_ptr<Eal> eal, const DeviceSettings& settings)
    : eal_(std::move(eal)),
      settings_(settings),
      name_(name_of(settings.device)),
      taken_(std::size_t{settings.queues} * settings.ports_per_queue),
      announcements_left_(kAnnouncements) {
  for (auto& place : place_of_) place.store(kNobody, std::memory_order_relaxed);
  for (std::uint16_t queue = 0; settings.ports_per_queue > 1 && queue < settings.queues; ++queue)
    turns_.push_back(std::make_unique<Turns>());
  if (!eal_->missing_pages().empty()) notes_.push_back("DPDK's memory is in ordinary pages. " + eal_->missing_pages());
}

void Device::RingFree::operator()(rte_ring* ring) const noexcept {
  ::rte_ring_free(ring);
}

Device::~Device() {
  rules_.clear();
  if (started_) ::rte_eth_dev_stop(id_);
  rte_eth_dev_info info{};
  const bool known = attached_ && ::rte_eth_dev_info_get(id_, &info) == 0;
  if (configured_) ::rte_eth_dev_close(id_);
  if (known) ::rte_dev_remove(info.device);
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<Eal> eal, const DeviceSettings& settings) {
  std::shared_ptr<Device> device(new Device(std::move(eal), settings));
  if (auto ok = device->attach(); !ok) return std::unexpected(ok.error());
  rte_eth_dev_info info{};
  if (const int result = ::rte_eth_dev_info_get(device->id_, &info); result != 0) {
    return std::unexpected(device->error(Errc::io, "gives no information about itself", result));
  }
  if (auto ok = device->check(info); !ok) return std::unexpected(ok.error());
  if (auto ok = device->choose_mtu(info); !ok) return std::unexpected(ok.error());
  if (auto ok = device->make_host(); !ok) return std::unexpected(ok.error());
  if (auto ok = device->configure(info); !ok) return std::unexpected(ok.error());
  if (auto ok = device->allocate_on_gpu(info); !ok) return std::unexpected(ok.error());
  for (std::uint16_t queue = 0; queue < settings.queues; ++queue) {
    if (auto ok = device->make_queue(queue); !ok) return std::unexpected(ok.error());
  }
  if (auto ok = device->start(); !ok) return std::unexpected(ok.error());
  return device;
}

Error Device::error(Errc code, const std::string& what, int result) const {
  const std::string said = take_driver_log();
  std::string message = "DPDK's device " + name_ + " " + what;
  if (result != 0) message += std::string(": ") + std::strerror(result < 0 ? -result : result);
  return {code, message + (said.empty() ? "." : " (" + said + ").")};
}

Status Device::attach() {
  if (::rte_eth_dev_get_port_by_name(name_.c_str(), &id_) == 0) return {};
  static_cast<void>(take_driver_log());
  if (const int result = ::rte_dev_probe(settings_.device.c_str()); result != 0) {
    return std::unexpected(error(Errc::unreachable, "cannot be used", result));
  }
  attached_ = true;
  if (::rte_eth_dev_get_port_by_name(name_.c_str(), &id_) == 0) return {};
  return std::unexpected(error(Errc::unreachable, "is no network device, or its driver found nothing", 0));
}

Status Device::check(const rte_eth_dev_info& info) {
  // With DPDK 22.11 such a device starts and sends, but receives no packets into ordinary memory.
  if (std::string_view(info.driver_name) == "net_af_xdp" && !eal_->huge_pages()) {
    const std::size_t needed =
        memory_needed(settings_.descriptors, settings_.queues, settings_.mtu, settings_.ports_per_queue);
    return std::unexpected(error(Errc::exhausted,
                                 "receives nothing into ordinary memory: " +
                                     missing_pages_text(read_huge_pages(), needed) + " Or use net_af_packet",
                                 0));
  }
  const std::uint32_t most = std::min<std::uint32_t>(
      {info.max_rx_queues, info.max_tx_queues, static_cast<std::uint32_t>(kPortsMax / settings_.ports_per_queue)});
  if (settings_.queues == 0 || settings_.queues > most) {
    return std::unexpected(error(Errc::bad_config,
                                 "has at most " + std::to_string(most) + " queues, and " +
                                     std::to_string(settings_.queues) + " are asked for: one for each worker",
                                 0));
  }
  // These drivers spread packets over all queues in the device's arguments, even over queues that no thread serves.
  const std::string_view driver(info.driver_name);
  if ((driver == "net_af_packet" || driver == "net_af_xdp") && info.max_rx_queues > settings_.queues) {
    return std::unexpected(error(Errc::bad_config,
                                 "has " + std::to_string(info.max_rx_queues) + " queues, of which " +
                                     std::to_string(settings_.queues) +
                                     " would be served, and packets to the other queues would be lost: say " +
                                     (driver == "net_af_packet" ? "qpairs=" : "queue_count=") +
                                     std::to_string(settings_.queues) + ", or there must be more workers",
                                 0));
  }
  return {};
}

Status Device::choose_mtu(const rte_eth_dev_info& info) {
  std::uint16_t mtu = 0;
  if (::rte_eth_dev_get_mtu(id_, &mtu) != 0 || mtu == 0) mtu = RTE_ETHER_MTU;
  // Drivers over an interface of the kernel do not ask the interface for its MTU.
  const std::uint32_t interface = interface_mtu(info.if_index);
  const std::uint32_t as_it_is = interface != 0 ? interface : mtu;
  mtu_ = settings_.mtu != 0 ? settings_.mtu : std::max<std::uint32_t>(as_it_is, kMtuMin);
  const std::uint32_t most = info.max_mtu == 0 ? kMtuMax : std::min<std::uint32_t>(info.max_mtu, kMtuMax);
  const auto refuse = [this](const std::string& what) {
    return std::unexpected(error(Errc::bad_config, what + (settings_.mtu != 0 ? "" : ", as its interface has it"), 0));
  };
  if (mtu_ < kMtuMin || mtu_ > most) {
    return refuse("takes an MTU of " + std::to_string(kMtuMin) + " to " + std::to_string(most) + ", and not " +
                  std::to_string(mtu_));
  }
  if (interface != 0 && mtu_ > interface) {
    return refuse("has an interface of MTU " + std::to_string(interface) + ", which does not carry one of " +
                  std::to_string(mtu_));
  }
  if (const AfPacket driver(settings_.device); mtu_ > driver.mtu_max()) {
    return refuse("has buffers for an MTU of " + std::to_string(driver.mtu_max()) +
                  ": longer frames would be cut off. " + "Add " + AfPacket::advice(mtu_) + " to its name for one of " +
                  std::to_string(mtu_));
  }
  return {};
}

Status Device::make_host() {
  rte_ether_addr mac{};
  if (const int result = ::rte_eth_macaddr_get(id_, &mac); result != 0) {
    return std::unexpected(error(Errc::io, "has no MAC address", result));
  }
  ethernet::HostSettings host{.vlan = settings_.vlan,
                              .addresses = settings_.addresses,
                              .gateways = settings_.gateways,
                              .mtu = mtu_,
                              .neighbours = {.hash_seed = random_seed()}};
  // Ring devices have no MAC address: they get a random, locally administered address, as any virtual interface.
  if (rte_is_zero_ether_addr(&mac)) ::rte_eth_random_addr(mac.addr_bytes);
  std::ranges::copy(mac.addr_bytes, host.mac.bytes.begin());
  if (auto ok = ethernet::Host::check(host); !ok) {
    return fail(Errc::bad_config,
                "the addresses of DPDK's device " + name_ + " are wrong: " + ok.error().message + ".");
  }
  host_ = std::make_unique<ethernet::Host>(host);
  return {};
}

Status Device::configure(const rte_eth_dev_info& info) {
  constexpr std::uint64_t kReceive = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  rte_eth_conf conf{};
  conf.rxmode.mtu = mtu_;
  // A virtual device's driver that names no greatest MTU takes every frame that fits its buffers. But it names a
  // greatest length of a packet, and the MTU set here must not exceed this length.
  constexpr std::uint32_t kAround = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
  if (info.max_mtu == UINT16_MAX && info.max_rx_pktlen < mtu_ + kAround) conf.rxmode.mtu = info.max_rx_pktlen - kAround;
  conf.rxmode.offloads = info.rx_offload_capa & kReceive;
  // A device that computes only one of the IPv4 and UDP checksums would need another way of writing headers. Drivers
  // offer both checksums or none.
  constexpr std::uint64_t kSums = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  if ((info.tx_offload_capa & kSums) == kSums) {
    conf.txmode.offloads |= kSums;
    sends_ = {.ip = true, .udp = true};
  }
  // Results that go to several children are sent in several buffers (shared_payloads.h). That rules out the offload of
  // fast frees, which needs each packet in one buffer of the queue's one pool, without other references.
  sends_pieces_ = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  conf.txmode.offloads |=
      info.tx_offload_capa & (sends_pieces_ ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
  if (lends_buffers(settings_.device)) pieces_at_once_ = kLentAtOnce;
  if (settings_.queues > 1) spread_over_queues(info, conf);
  const int result = ::rte_eth_dev_configure(id_, settings_.queues, settings_.queues, &conf);
  if (result != 0) return std::unexpected(error(Errc::io, "cannot be configured", result));
  configured_ = true;
  Descriptors& wanted = settings_.descriptors;
  if (const int adjusted = ::rte_eth_dev_adjust_nb_rx_tx_desc(id_, &wanted.receive, &wanted.transmit); adjusted != 0) {
    return std::unexpected(error(Errc::bad_config, "does not take this number of descriptors", adjusted));
  }
  return {};
}

PoolSettings Device::pool_settings(const std::string& name) const {
  return {.name = name,
          .mbufs = mbufs_needed(settings_.descriptors, settings_.queues, settings_.ports_per_queue),
          .data_room = data_room(AfPacket(settings_.device).mtu_of_buffers(mtu_)),
          .node = ::rte_eth_dev_socket_id(id_)};
}

/// One allocation for all queues, so that seen_at() is the same for the packets of all queues.
Status Device::allocate_on_gpu(const rte_eth_dev_info& info) {
  if (settings_.gpu.empty()) return {};
  const std::size_t each = PacketPool::bytes_of(pool_settings({}));
  auto memory = GpuMemory::allocate(settings_.gpu, settings_.queues * each, info.device);
  if (!memory)
    return std::unexpected(error(memory.error().code, "cannot use GPU memory: " + memory.error().message, 0));
  gpu_memory_ = std::move(*memory);
  return {};
}

Status Device::make_pools(const std::string& name) {
  PoolSettings settings = pool_settings(name);
  if (gpu_memory_) {
    auto receive =
        PacketPool::make_on_gpu(settings, gpu_memory_, receive_pools_.size() * PacketPool::bytes_of(settings));
    if (!receive)
      return std::unexpected(error(receive.error().code, "cannot use GPU memory: " + receive.error().message, 0));
    receive_pools_.push_back(std::move(*receive));
    settings.name += 's';
  }
  auto pool = PacketPool::make(settings);
  if (!pool) return std::unexpected(error(Errc::exhausted, "gets no packet buffers: " + pool.error().message, 0));
  (gpu_memory_ ? send_pools_ : receive_pools_).push_back(std::move(*pool));
  return {};
}

Status Device::make_rings(const std::string& name, int node) {
  for (std::uint16_t sharer = 0; sharer < settings_.ports_per_queue; ++sharer) {
    rings_.emplace_back();
    if (ports() == 1) continue;
    const std::string of_its_own = name + "_" + std::to_string(sharer);
    rings_.back().reset(::rte_ring_create(of_its_own.c_str(), kHandOver, node, RING_F_SC_DEQ));
    if (!rings_.back()) return std::unexpected(error(Errc::exhausted, "gets no ring", rte_errno));
  }
  return {};
}

Status Device::make_queue(std::uint16_t queue) {
  const std::string name = "tributary_" + std::to_string(id_) + "_" + std::to_string(queue);
  if (auto ok = make_pools(name); !ok) return ok;
  const int node = ::rte_eth_dev_socket_id(id_);
  if (auto ok = make_rings(name, node); !ok) return ok;
  const auto socket = static_cast<unsigned>(node);
  const Descriptors& descriptors = settings_.descriptors;
  int result = ::rte_eth_rx_queue_setup(id_, queue, descriptors.receive, socket, nullptr, receive_pool(queue).get());
  if (result != 0) return std::unexpected(error(Errc::io, "gives no queue to receive from", result));
  result = ::rte_eth_tx_queue_setup(id_, queue, descriptors.transmit, socket, nullptr);
  if (result != 0) return std::unexpected(error(Errc::io, "gives no queue to send to", result));
  return {};
}

Status Device::start() {
  if (const int result = ::rte_eth_dev_start(id_); result != 0) {
    return std::unexpected(error(Errc::io, "does not start", result));
  }
  started_ = true;
  // Neighbour solicitations go to groups. A driver that cannot choose groups takes the frames of all groups, or all
  // frames.
  std::vector<rte_ether_addr> groups;
  for (const ethernet::MacAddress& mac : host_->multicast_groups()) {
    rte_ether_addr group{};
    std::ranges::copy(mac.bytes, group.addr_bytes);
    groups.push_back(group);
  }
  const auto count = static_cast<std::uint32_t>(groups.size());
  if (count > 0 && ::rte_eth_dev_set_mc_addr_list(id_, groups.data(), count) != 0 &&
      ::rte_eth_allmulticast_enable(id_) != 0) {
    static_cast<void>(::rte_eth_promiscuous_enable(id_));
  }
  static_cast<void>(take_driver_log());
  return {};
}

Result<Device::Bound> Device::bind(std::uint16_t udp_port, std::uint16_t queue) {
  constexpr std::uint32_t kEphemeral = 49152;  // RFC 6335, 6
  const std::lock_guard lock(bind_mutex_);
  if (udp_port != 0 && place_of(udp_port) != kNobody) {
    return fail(Errc::io, "UDP port " + std::to_string(udp_port) + " of DPDK's device " + name_ + " is in use.");
  }
  const std::size_t each = settings_.ports_per_queue;
  std::size_t sharer = 0;
  while (queue < settings_.queues && sharer < each && taken_[queue * each + sharer]) ++sharer;
  if (queue >= settings_.queues || sharer == each) {
    return fail(Errc::io, "queue " + std::to_string(queue) + " of DPDK's device " + name_ +
                              " is not free: " + std::to_string(each) + " ports use it, and no more may.");
  }
  if (udp_port == 0) {
    constexpr std::uint32_t kSpan = 65536 - kEphemeral;
    const auto first = static_cast<std::uint32_t>(random_seed() % kSpan);
    for (std::uint32_t i = 0; i < kSpan && udp_port == 0; ++i) {
      const auto candidate = static_cast<std::uint16_t>(kEphemeral + (first + i) % kSpan);
      if (place_of(candidate) == kNobody) udp_port = candidate;
    }
  }
  if (udp_port == 0) return fail(Errc::io, "all UDP ports of DPDK's device " + name_ + " are in use.");
  const auto place = static_cast<std::uint8_t>(queue * each + sharer);
  TRIBUTARY_ASSERT(place < taken_.size() && place != kNobody && !taken_[place], "place {} of {} is bound twice", place,
                   taken_.size());
  taken_[place] = true;
  place_of_[udp_port].store(place, std::memory_order_release);
  if (settings_.queues > 1) {
    const auto rule = rules_.emplace(udp_port, std::make_unique<Steering>(id_, udp_port, queue)).first;
    if (const std::string& refusal = rule->second->refusal(); !refusal.empty() && !refusal_noted_) {
      refusal_noted_ = true;
      notes_.push_back("DPDK's device " + name_ + " does not take all rules for its queues (" + refusal +
                       "): packets that come to another worker's queue are handed over in software, which costs more.");
    }
  }
  return Bound{udp_port, place};
}

void Device::release(const Bound& bound) noexcept {
  const std::lock_guard lock(bind_mutex_);
  TRIBUTARY_ASSERT(bound.place < taken_.size() && taken_[bound.place], "place {} of {} is released, and is free",
                   bound.place, taken_.size());
  place_of_[bound.udp_port].store(kNobody, std::memory_order_release);
  rules_.erase(bound.udp_port);
  // A thread that looked the place up just before may still add a packet. The next port at this place sees that the
  // packet is for another port.
  for (void* left = nullptr; rings_[bound.place] && ::rte_ring_dequeue(rings_[bound.place].get(), &left) == 0;)
    ::rte_pktmbuf_free(static_cast<rte_mbuf*>(left));
  taken_[bound.place] = false;
}

bool Device::claim_turn(ethernet::TimePoint now) noexcept {
  auto due = next_turn_.load(std::memory_order_relaxed);
  if (now.time_since_epoch() < due) return false;
  return next_turn_.compare_exchange_strong(due, now.time_since_epoch() + kTurn, std::memory_order_relaxed);
}

bool Device::claim_announcement(ethernet::TimePoint now) noexcept {
  auto due = next_announcement_.load(std::memory_order_relaxed);
  if (announcements_left_.load(std::memory_order_relaxed) <= 0 || now.time_since_epoch() < due || !link_up())
    return false;
  const auto next = now.time_since_epoch() + kAnnouncementInterval;
  return next_announcement_.compare_exchange_strong(due, next, std::memory_order_relaxed) &&
         announcements_left_.fetch_sub(1, std::memory_order_relaxed) > 0;
}

bool Device::link_up() const {
  rte_eth_link link{};
  return ::rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

Device::Rules Device::rules() const {
  const std::lock_guard lock(bind_mutex_);
  Rules rules;
  for (const auto& [port, rule] : rules_) {
    rules.wanted += Steering::kRules;
    rules.in_place += rule->in_place();
  }
  return rules;
}

std::vector<std::string> Device::take_notes() {
  const std::lock_guard lock(bind_mutex_);
  return std::exchange(notes_, {});
}

DeviceCounters Device::counters() const {
  return read_counters(id_);
}

std::size_t Device::mbufs_in_use() const {
  std::size_t count = 0;
  for (const auto& pool : receive_pools_) count += ::rte_mempool_in_use_count(pool->get());
  for (const auto& pool : send_pools_) count += ::rte_mempool_in_use_count(pool->get());
  return count;
}

}  // namespace tributary::transport::dpdk
