#pragma once
// Registered memory of one protection domain. A registration lives while a user holds it, and all users of memory
// within it get the same registration. Memory that is promised to stay is registered as a whole, and this cache holds
// its registration. The cache holds registrations of other memory after their use only as far as the settings allow. It
// holds no registration whose key gives a peer rights (Exposed).
//
// On demand (ODP) means that the device asks the kernel for a page when it needs the page, and is told when the page
// goes away. So no memory is pinned, and a registration stays valid for any memory that lies at its addresses later.
// Such a registration covers whole blocks of the address space around the wanted memory, and is kept.
#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "transport/verbs/resources.h"
#include "tributary/transport/device_memory.h"
#include "tributary/transport/verbs.h"

namespace tributary::transport::verbs {

enum class Access : std::uint8_t {
  messages,  // this side's device receives messages into it
  source,    // the peer may read it, through a memory window or, without windows, by the registration's key
  target,    // the peer may write to it, through a window or by the key, as for a source
  local,     // this side's device reads it, or writes to it the bytes of a READ
};
inline constexpr std::size_t kAccesses = 4;

/// The kinds of registrations whose keys give rights by themselves.
struct Exposed {
  // True if registrations of this kind have keys that give rights by themselves. Such registrations cover exactly the
  // wanted memory, and end with their use.
  bool peers = false;   // sources and targets, where there are no memory windows
  bool locals = false;  // local ones, on iWARP, where the answer of a read is a remote write
  // True if the device lets a window reach the whole registration under it, despite the window's bounds. So memory
  // under windows is registered exactly; registrations of parts of kept memory are then kept, too.
  bool windows_unbounded = false;
};

class Registration {
 public:
  /// `owner` is set for a device's memory.
  Registration(MemoryRegionPtr region, std::span<const std::byte> memory, std::shared_ptr<DeviceMemory> owner,
               VerbsStatistics& statistics, bool on_demand = false);
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  [[nodiscard]] std::uint32_t local_key() const noexcept { return region_->lkey; }
  [[nodiscard]] std::uint32_t remote_key() const noexcept { return region_->rkey; }
  [[nodiscard]] ibv_mr* region() const noexcept { return region_.get(); }
  [[nodiscard]] bool covers(const std::byte* at, std::size_t bytes) const noexcept;
  [[nodiscard]] bool overlaps(std::span<const std::byte> memory) const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] std::span<const std::byte> memory() const noexcept { return memory_; }
  /// True for a registration on demand. It covers only the processor's memory, even if a device's memory lies at some
  /// of its addresses.
  [[nodiscard]] bool is_on_demand() const noexcept { return on_demand_; }
  /// False if the registration is for a device's memory, and other memory may have got these addresses.
  [[nodiscard]] bool is_current() const { return owner_ == nullptr || owner_->holds(memory_); }

 private:
  MemoryRegionPtr region_;
  std::span<const std::byte> memory_;  // stored here, because a dma-buf's registration does not know its address
  std::shared_ptr<DeviceMemory> owner_;
  VerbsStatistics& statistics_;
  const bool on_demand_;
};
using RegistrationPtr = std::shared_ptr<const Registration>;

/// A range of memory that is promised to stay.
struct KeptRange {
  std::span<const std::byte> memory;
  std::shared_ptr<DeviceMemory> owner;  // nullptr: memory of the processor
};
/// The ranges of memory that are promised to stay, by the numbers of the promises. The domains of a transport share
/// this object.
using KeptRanges = std::map<std::uint64_t, KeptRange>;
/// Finds the range that holds this whole memory, even if other memory may have got its addresses; nullptr: there is
/// none.
[[nodiscard]] const KeptRange* kept_around(const KeptRanges& kept, std::span<const std::byte> memory) noexcept;
/// Finds the range that holds this whole memory now; nullptr: there is none.
[[nodiscard]] const KeptRange* kept_now(const KeptRanges& kept, std::span<const std::byte> memory);

class Registrations {
 public:
  /// `on_demand`: the device can register on demand, and the settings ask for it.
  Registrations(ibv_pd& domain, Exposed exposed, const VerbsSettings& settings, const KeptRanges& kept,
                VerbsStatistics& statistics, bool on_demand = false);

  /// Returns a registration of this memory. The text of Errc::exhausted names the limit to raise.
  [[nodiscard]] Result<RegistrationPtr> acquire(std::span<const std::byte> memory, Access access);
  /// Makes a registration that no other user gets.
  [[nodiscard]] Result<RegistrationPtr> make(std::span<const std::byte> memory, Access access);
  /// Registers kept memory as a whole, for every access, unless it is registered already. For accesses that later need
  /// exact registrations, it only tries whether the device allows them.
  [[nodiscard]] Status reach(std::span<const std::byte> memory);
  /// Forgets memory that may go away: from here on no user gets an old registration of it. Kept::stays: old
  /// registrations of memory that is still kept remain. Kept::is_new: they are forgotten, too, because other memory now
  /// has their addresses.
  enum class Kept : bool { stays, is_new };
  void forget(std::span<const std::byte> memory, Kept kept = Kept::stays);

 private:
  using ByBegin = std::multimap<const std::byte*, std::weak_ptr<const Registration>>;
  [[nodiscard]] bool is_exact(Access access) const noexcept {
    return is_exposed(access) || (is_for_peers(access) && exposed_.windows_unbounded);
  }
  [[nodiscard]] RegistrationPtr find(std::span<const std::byte> memory, Access access);
  [[nodiscard]] bool is_exposed(Access access) const noexcept {
    return is_for_peers(access) ? exposed_.peers : access == Access::local && exposed_.locals;
  }
  [[nodiscard]] static bool is_for_peers(Access access) noexcept {
    return access == Access::source || access == Access::target;
  }
  [[nodiscard]] RegistrationPtr make_on_demand(std::span<const std::byte> memory, Access access);
  [[nodiscard]] bool is_of_device(std::span<const std::byte> memory) const;
  [[nodiscard]] unsigned rights_of(Access access) const noexcept;
  void keep_idle(const RegistrationPtr& registration);
  void remember(const std::byte* begin, Access access, const RegistrationPtr& registration);

  ibv_pd& domain_;
  const Exposed exposed_;
  const VerbsSettings& settings_;
  const KeptRanges& kept_;
  VerbsStatistics& statistics_;
  std::array<ByBegin, kAccesses> known_;  // registrations by Access
  std::array<std::size_t, kAccesses> sweep_at_{64, 64, 64, 64};
  std::vector<RegistrationPtr> held_;       // registrations of whole kept ranges
  std::deque<RegistrationPtr> held_parts_;  // registrations of parts of kept ranges, the oldest first
  bool on_demand_;
  std::deque<RegistrationPtr> on_demand_blocks_;  // the oldest first
  std::list<RegistrationPtr> idle_;               // the oldest first
  std::size_t idle_bytes_ = 0;
};

}  // namespace tributary::transport::verbs
