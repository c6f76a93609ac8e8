#pragma once
// Shares of the aggregator's links, which the kernel keeps: each tenant has a class of HTB on each interface
// (worker/link_classes.h). Over TCP the sockets of its connections have the class's handle as their priority. Over UDP
// one socket of each worker sends for all tenants, so each datagram has the handle as its mark.
//
// HTB gives each class that has packets a part of the link in proportion to its quantum, which is its weight times the
// longest packet, and gives what one class leaves to the others. Only what leaves this host is divided. That is enough
// where a tenant gets as many bytes as it sends: its ranks send at most their windows ahead of results, so a tenant
// whose results wait stops sending. For this the results must wait here and not elsewhere, so the link gets
// kLinkPercent of its rate: the other direction, and the switch, are then never the narrower place.
//
//         7471:  htb, at the root of the interface, or below link_shares_parent
//         7471:1  the whole link
//         7471:2  packets without a class: other programs, the manager, joins
//         7471:10, 7471:11, ...  a tenant each
//
// Over UDP a filter of the qdisc 7471: reads the marks, and each tenant's class has a short queue. A socket's buffer is
// as long as the queues of kQueuesOfSocket classes, so that a tenant whose packets wait leaves the buffer to others.
//
// A thread makes and removes classes. It also looks every few seconds whether the qdisc is still there, because an
// interface that goes and comes back has lost it.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/daemon/settings.h"
#include "aggregator/daemon/traffic_control.h"
#include "aggregator/worker/link_classes.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::aggregator {

inline constexpr std::uint64_t kLinkPercent = 97;
inline constexpr std::uint32_t kQueuesOfSocket = 8;

/// One interface whose link has shares.
struct SharedLink {
  std::string interface{};
  std::uint32_t index = 0;             // the system's number of the interface
  std::uint64_t bytes_per_second = 0;  // what its classes may send together
  std::uint32_t packet_bytes_max = 0;
  bool marked = false;  // the packets have their class as their mark: they go over UDP
};

struct LinkShareCounts {
  LinkClassCounts classes{};
  std::uint64_t refusals = 0;  // changes that the kernel has refused
};

/// Returns true if the qdisc at `parent` is one that an earlier life of this daemon has left, and that must be removed;
/// false if the place is free. Errc::bad_config: another qdisc is there, and stays.
[[nodiscard]] Result<bool> earlier_life(const std::vector<Qdisc>& found, std::uint32_t parent,
                                        const std::string& interface);
/// Returns the classes of one link: the whole, the default class, and a party's class with this weight.
[[nodiscard]] HtbClass whole_class(const SharedLink& link);
[[nodiscard]] HtbClass default_class(const SharedLink& link);
[[nodiscard]] HtbClass party_class(const SharedLink& link, std::uint32_t handle, std::uint32_t weight);
/// The bytes that a party's class may queue, if the packets are marked.
[[nodiscard]] std::uint32_t queue_bytes(const SharedLink& link);

/// Checks what open() would refuse, and changes nothing.
[[nodiscard]] Status check_link_shares(const Settings& settings);

class LinkShares {
 public:
  /// Prepares the interfaces of settings.listen, and starts the thread. Errc::bad_config: a rate is not known, the
  /// process may not do this, or another qdisc is in the place. nullptr: the settings ask for no shares, or the
  /// transport cannot have them, which the log says.
  [[nodiscard]] static Result<std::unique_ptr<LinkShares>> open(const Settings& settings);
  /// Gives the interfaces back to the system.
  ~LinkShares();
  LinkShares(const LinkShares&) = delete;
  LinkShares& operator=(const LinkShares&) = delete;

  [[nodiscard]] const std::shared_ptr<LinkClasses>& classes() const noexcept { return classes_; }
  /// The bytes that the buffer of a socket needs which sends for all tenants.
  [[nodiscard]] std::size_t send_buffer_bytes() const;
  /// Any thread may call it.
  [[nodiscard]] LinkShareCounts counts() const {
    return {.classes = classes_->counts(), .refusals = refusals_.load(std::memory_order_relaxed)};
  }

 private:
  LinkShares(TrafficControl control, std::uint32_t parent) : control_(std::move(control)), parent_(parent) {}
  [[nodiscard]] Status prepare(const SharedLink& link);
  [[nodiscard]] Status make_class(const SharedLink& link, const LinkClasses::Change& change);
  void run(const std::stop_token& stop);
  void apply(const std::vector<LinkClasses::Change>& changes);
  void repair();
  void note(const Status& done, const std::string& what);

  TrafficControl control_;
  const std::uint32_t parent_;
  std::vector<SharedLink> links_;
  std::vector<transport::OwnedDescriptor> claims_;  // no other aggregator of this host takes the same interface
  const std::shared_ptr<LinkClasses> classes_ = std::make_shared<LinkClasses>();
  std::atomic<std::uint64_t> refusals_{0};
  std::jthread thread_;  // declared last, because it uses all members above
};

}  // namespace tributary::aggregator
