#pragma once
// The classes of the aggregator's links, one for each party: a tenant, or a group without a tenant. A connection of the
// party gets the priority of its class, by which the kernel finds the class of a packet. daemon/link_shares.h makes the
// classes in the kernel.
//
// A party has its class from its first place until kClassKept after its last place, so that a tenant whose groups come
// and go does not make the kernel destroy its class again and again. If all classes are in use, a further party shares
// the class that a hash of its name chooses, and the weight of the party that had the class first.
//
// Any thread may call all functions; they take a lock, once for each party of a worker, and never for a frame.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace tributary::aggregator {

/// The handle of the queueing discipline whose classes these are. No system chooses it: the system's own choices begin
/// at 8001.
inline constexpr std::uint32_t kLinkQdisc = 0x7471'0000;
inline constexpr std::uint32_t kLinkWhole = kLinkQdisc | 1;    // the class of the whole link, above all others
inline constexpr std::uint32_t kLinkDefault = kLinkQdisc | 2;  // the class of all packets without a class
inline constexpr std::uint32_t kLinkFirst = kLinkQdisc | 0x10;
inline constexpr std::uint32_t kLinkClassesMax = 1024;
inline constexpr std::chrono::seconds kClassKept{60};

/// Counts of the classes.
struct LinkClassCounts {
  std::uint64_t classes = 0;  // classes of parties
  std::uint64_t sharing = 0;  // parties that share another party's class
};

class LinkClasses : public std::enable_shared_from_this<LinkClasses> {
 public:
  explicit LinkClasses(std::uint32_t classes_max = kLinkClassesMax);

  /// Keeps a party's class, until it is destroyed.
  class Place {
   public:
    Place(std::shared_ptr<LinkClasses> classes, std::string party, std::uint32_t priority)
        : classes_(std::move(classes)), party_(std::move(party)), priority_(priority) {}
    ~Place() { classes_->leave(party_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Returns the class's handle, which is the priority of the party's sockets.
    [[nodiscard]] std::uint32_t priority() const noexcept { return priority_; }

   private:
    const std::shared_ptr<LinkClasses> classes_;
    const std::string party_;
    const std::uint32_t priority_;
  };

  /// A class as it must be in the kernel.
  struct Change {
    std::uint32_t handle = 0;
    std::uint32_t weight = 0;  // 0: there is no such class
    std::string party{};       // the party that had the class first
    bool operator==(const Change&) const = default;
  };

  /// Returns a place of a party with this weight, which is at least 1. The weight of the last call counts.
  [[nodiscard]] std::shared_ptr<Place> enter(const std::string& party, std::uint32_t weight);

  /// Waits until there are changes, `limit` is over, or a stop is requested.
  void wait(const std::stop_token& stop, std::chrono::milliseconds limit);
  /// Returns what has changed since the last call, and gives back the classes of parties that have left.
  [[nodiscard]] std::vector<Change> take_changes(std::chrono::steady_clock::time_point now);
  /// Returns all classes that there are.
  [[nodiscard]] std::vector<Change> all() const;
  [[nodiscard]] LinkClassCounts counts() const;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Party {
    std::uint32_t at = 0;  // index of its class
    std::uint32_t places = 0;
    TimePoint idle_since = TimePoint::max();  // max: it has places, or has lost the last one since take_changes()
  };
  struct Class {
    std::uint32_t weight = 0;  // 0: there is no such class
    std::uint32_t parties = 0;
    std::string first{};
  };
  void leave(const std::string& party);
  [[nodiscard]] Party& admit(const std::string& party, std::uint32_t weight);
  void forget(std::map<std::string, Party>::iterator party);
  [[nodiscard]] Change change_at(std::uint32_t at) const;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable_any changes_;
  std::vector<Class> classes_;
  std::deque<std::uint32_t> free_;  // the class that was given back first is used again first
  std::map<std::string, Party> parties_;
  std::set<std::uint32_t> changed_;
};

}  // namespace tributary::aggregator
