#include "aggregator/daemon/link_shares.h"

#include <net/if.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "aggregator/daemon/line_rate.h"

namespace tributary::aggregator {
namespace {

constexpr auto kLook = std::chrono::seconds(5);  // how often to look whether the qdiscs are still there
constexpr std::uint32_t kPacketBytesMin = 16U << 10;
constexpr std::uint32_t kMarkedBytesMin = 64U << 10;  // datagrams that the interface cuts apart, whatever it says
constexpr std::uint64_t kQueuesPerSecond = 500;       // a queue is what the link sends in this part of a second
constexpr std::uint64_t kQueueBytesMin = 256U << 10, kQueueBytesMax = 64U << 20;
// Rates that go before what others want. Together they are at most 9/16 of the link.
constexpr std::uint64_t kDefaultPart = 16, kPartyPart = 2 * kLinkClassesMax;
constexpr std::uint64_t kClassRateMin = 1000;     // bytes per second
constexpr std::uint64_t kBurstsPerSecond = 4000;  // a burst is what the link sends in this part of a second
constexpr unsigned kCapNetAdmin = 12;

std::unexpected<Error> refuse(const std::string& why) {
  return service::refuse({.key = "link_shares", .value = "kernel", .why = why, .allowed = "off or kernel"});
}

constexpr const char* kNoRight =
    "the process lacks the capability CAP_NET_ADMIN in this network; give it by AmbientCapabilities= and "
    "CapabilityBoundingSet= of the systemd unit, or capabilities.add of the container, or set link_shares to off";

bool may_administer() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("CapEff:")) return (std::stoull(line.substr(7), nullptr, 16) >> kCapNetAdmin & 1U) != 0;
  }
  return true;  // the kernel will tell
}

std::uint32_t burst_of(const SharedLink& link) {
  const std::uint64_t bytes = std::max<std::uint64_t>(link.bytes_per_second / kBurstsPerSecond, link.packet_bytes_max);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
}

/// Takes the interface for this process, by a name that only one process of this network can bind; the system frees the
/// name when the process ends.
Result<transport::OwnedDescriptor> claim(const std::string& interface) {
  transport::OwnedDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "tributary-link-shares-" + interface;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 2);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (socket.is_open() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  return refuse("another aggregator of this host divides the link of " + interface +
                " already; one of them can, for all its tenants");
}

/// Returns the interfaces of `listen`, with their rates.
Result<std::vector<SharedLink>> links_of(const Settings& settings, TrafficControl& control) {
  std::vector<std::string> addresses;
  for (const Endpoint& place : settings.listen) addresses.push_back(place.host);
  const auto found = interfaces_of(addresses, settings.manager);
  std::vector<SharedLink> links;
  for (const InterfaceRate& one : found) {
    SharedLink link{.interface = one.interface, .index = ::if_nametoindex(one.interface.c_str())};
    if (link.index == 0)
      return refuse("no interface has the address '" + one.address + "'; name the interfaces' addresses in listen");
    const std::uint64_t rate = settings.line_rate != 0 ? settings.line_rate / found.size() : one.rate;
    if (rate == 0)
      return refuse("the driver of " + link.interface +
                    " does not tell its rate; set line_rate to the rate of the link");
    link.bytes_per_second = rate / 8 * kLinkPercent / 100;
    const auto longest = control.packet_bytes_max(link.index);
    if (!longest) return refuse("the kernel does not describe " + link.interface + ": " + longest.error().message);
    link.marked = settings.transport == "udp";
    link.packet_bytes_max = std::max(*longest, link.marked ? kMarkedBytesMin : kPacketBytesMin);
    links.push_back(std::move(link));
  }
  return links;
}

struct OpenedLinks {
  TrafficControl control;
  std::vector<SharedLink> links;
};

Result<OpenedLinks> open_links(const Settings& settings) {
  if (!may_administer()) return refuse(kNoRight);
  auto control = TrafficControl::open();
  if (!control) return refuse(control.error().message);
  auto links = links_of(settings, *control);
  if (!links) return std::unexpected(links.error());
  return OpenedLinks{std::move(*control), std::move(*links)};
}

/// True if the transport's packets pass the kernel's queueing disciplines.
bool passes_qdiscs(const Settings& settings) {
  return settings.transport == "tcp" || settings.transport == "udp";
}

std::uint32_t parent_of(const Settings& settings) {
  return parse_class_handle(settings.link_shares_parent).value_or(kAtRoot);
}

Result<bool> earlier_life_on(TrafficControl& control, const SharedLink& link, std::uint32_t parent) {
  const auto found = control.qdiscs(link.index);
  if (!found) return refuse("the kernel does not list the qdiscs of " + link.interface + ": " + found.error().message);
  return earlier_life(*found, parent, link.interface);
}

}  // namespace

Result<bool> earlier_life(const std::vector<Qdisc>& found, std::uint32_t parent, const std::string& interface) {
  const bool at_root = parent == kAtRoot;
  const std::string place =
      at_root ? "at the root of " + interface : "below " + handle_text(parent) + " of " + interface;
  for (const Qdisc& one : found) {
    if (one.parent != parent || one.handle == 0) continue;
    if (one.handle == kLinkQdisc && one.kind == "htb") return true;
    return refuse("the qdisc " + one.kind + " " + handle_text(one.handle) + " is " + place +
                  ", and it stays; remove it, or name a class of it without a qdisc of its own in link_shares_parent");
  }
  if (at_root) return false;
  const auto above = std::ranges::find(found, parent & 0xFFFF'0000U, &Qdisc::handle);
  if (above != found.end()) return false;
  return refuse("link_shares_parent is " + handle_text(parent) + ", but " + interface + " has no qdisc " +
                handle_text(parent & 0xFFFF'0000U));
}

HtbClass whole_class(const SharedLink& link) {
  return {.parent = kLinkQdisc,
          .handle = kLinkWhole,
          .rate = link.bytes_per_second,
          .ceil = link.bytes_per_second,
          .quantum_bytes = link.packet_bytes_max,
          .burst_bytes = burst_of(link)};
}

HtbClass default_class(const SharedLink& link) {
  HtbClass one = party_class(link, kLinkDefault, 1);
  one.rate = std::max(link.bytes_per_second / kDefaultPart, kClassRateMin);
  return one;
}

HtbClass party_class(const SharedLink& link, std::uint32_t handle, std::uint32_t weight) {
  return {.parent = kLinkWhole,
          .handle = handle,
          .rate = std::max(link.bytes_per_second / kPartyPart, kClassRateMin),
          .ceil = link.bytes_per_second,
          .quantum_bytes = weight * link.packet_bytes_max,
          .burst_bytes = burst_of(link)};
}

std::uint32_t queue_bytes(const SharedLink& link) {
  return static_cast<std::uint32_t>(
      std::clamp(link.bytes_per_second / kQueuesPerSecond, kQueueBytesMin, kQueueBytesMax));
}

Status check_link_shares(const Settings& settings) {
  if (settings.link_shares == "off" || !passes_qdiscs(settings)) return {};
  auto opened = open_links(settings);
  if (!opened) return std::unexpected(opened.error());
  for (const SharedLink& link : opened->links) {
    const auto ok = earlier_life_on(opened->control, link, parent_of(settings));
    if (!ok) return std::unexpected(ok.error());
  }
  return {};
}

Result<std::unique_ptr<LinkShares>> LinkShares::open(const Settings& settings) {
  if (settings.link_shares == "off") return nullptr;
  if (!passes_qdiscs(settings)) {
    spdlog::warn("link_shares has no effect with transport {}: tenants do not share a narrow link by their weights",
                 settings.transport);
    return nullptr;
  }
  auto opened = open_links(settings);
  if (!opened) return std::unexpected(opened.error());
  std::unique_ptr<LinkShares> shares(new LinkShares(std::move(opened->control), parent_of(settings)));
  for (const SharedLink& link : opened->links) {
    auto claimed = claim(link.interface);
    if (!claimed) return std::unexpected(claimed.error());
    shares->claims_.push_back(std::move(*claimed));
    if (auto ok = shares->prepare(link); !ok) return std::unexpected(ok.error());
    shares->links_.push_back(link);
    spdlog::info("tenants share {} Mbit/s of {}, by qdisc {}", link.bytes_per_second * 8 / 1'000'000, link.interface,
                 handle_text(kLinkQdisc));
  }
  shares->thread_ = std::jthread([self = shares.get()](const std::stop_token& stop) {
    ::pthread_setname_np(::pthread_self(), "link-shares");
    self->run(stop);
  });
  return shares;
}

LinkShares::~LinkShares() {
  thread_ = {};  // stops and joins
  for (const SharedLink& link : links_) (void)control_.remove_qdisc(link.index, parent_, kLinkQdisc);
}

std::size_t LinkShares::send_buffer_bytes() const {
  std::size_t bytes = 0;
  for (const SharedLink& link : links_) bytes += std::size_t{kQueuesOfSocket} * queue_bytes(link);
  return bytes;
}

/// Makes the qdisc with the whole and the default class, and the filter; an earlier life's goes away.
Status LinkShares::prepare(const SharedLink& link) {
  const auto earlier = earlier_life_on(control_, link, parent_);
  if (!earlier) return std::unexpected(earlier.error());
  Status done{};
  if (*earlier) done = control_.remove_qdisc(link.index, parent_, kLinkQdisc);
  if (done) done = control_.add_htb(link.index, parent_, kLinkQdisc, kLinkDefault);
  if (done) done = control_.set_class(link.index, whole_class(link));
  if (done) done = control_.set_class(link.index, default_class(link));
  const bool divided = done.has_value();
  if (done && link.marked) done = control_.add_mark_filter(link.index, kLinkQdisc);
  if (done) return {};
  if (done.error().code == Errc::denied) return refuse(kNoRight);
  (void)control_.remove_qdisc(link.index, parent_, kLinkQdisc);
  return refuse("the kernel refuses the " + std::string(divided ? "filter bpf" : "qdisc htb") + " on " +
                link.interface + ": " + done.error().message + " (is its module " + (divided ? "cls_bpf" : "sch_htb") +
                " there?)");
}

void LinkShares::run(const std::stop_token& stop) {
  auto look = std::chrono::steady_clock::now() + kLook;
  while (!stop.stop_requested()) {
    classes_->wait(stop, std::chrono::milliseconds(1000));
    const auto now = std::chrono::steady_clock::now();
    apply(classes_->take_changes(now));
    if (now < look) continue;
    look = now + kLook;
    repair();
  }
}

void LinkShares::apply(const std::vector<LinkClasses::Change>& changes) {
  for (const LinkClasses::Change& change : changes) {
    if (change.weight > 0) spdlog::info("{} has class {} of the links", change.party, handle_text(change.handle));
    for (const SharedLink& link : links_) {
      const std::string which = "class " + handle_text(change.handle) + " of " + link.interface;
      if (change.weight == 0) {
        note(control_.remove_class(link.index, change.handle), which + " stays");
      } else {
        note(make_class(link, change), which + " is not made");
      }
    }
  }
}

Status LinkShares::make_class(const SharedLink& link, const LinkClasses::Change& change) {
  auto done = control_.set_class(link.index, party_class(link, change.handle, change.weight));
  if (done && link.marked) done = control_.set_queue(link.index, change.handle, queue_bytes(link));
  return done;
}

/// Makes the qdiscs again that are gone, with all their classes.
void LinkShares::repair() {
  for (SharedLink& link : links_) {
    const std::uint32_t index = ::if_nametoindex(link.interface.c_str());
    if (index == 0) continue;  // the interface is away; nothing leaves by it
    const auto there = earlier_life_on(control_, {.interface = link.interface, .index = index}, parent_);
    if (there && *there && index == link.index) continue;
    link.index = index;
    spdlog::warn("the qdisc {} of {} is gone, and is made again", handle_text(kLinkQdisc), link.interface);
    const Status done = prepare(link);
    note(done, "the link of " + link.interface + " has no shares");
    if (!done) continue;
    for (const LinkClasses::Change& one : classes_->all()) {
      note(make_class(link, one), "a class is not made");
    }
  }
}

void LinkShares::note(const Status& done, const std::string& what) {
  if (done) return;
  if (refusals_.fetch_add(1, std::memory_order_relaxed) == 0) {
    spdlog::error("{}: {} (further refusals only count)", what, done.error().message);
  }
}

}  // namespace tributary::aggregator
