#pragma once
// Registered memory of one protection domain. A registration lives while somebody holds it, and all who need memory
// within it get the same one. Memory that was promised to stay is registered as a whole, and this cache holds the
// registration; it holds registrations of other memory after their use only as far as the settings allow. It holds
// no registration whose key gives a peer rights (Exposed).
//
// On demand (ODP) means that the device asks the kernel for pages when it comes to them, and hears when they go away.
// So nothing is pinned, and a registration stays good for any memory that lies at its addresses later: it covers whole
// blocks of the address space around the memory that is wanted, and is kept.
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
  messages,  // this side's device receives into it
  source,    // the peer may read it, through a memory window or, without windows, by the registration's key
  target,    // the peer may write to it, in the same ways
  local,     // this side's device reads it, or writes to it the bytes of a READ
};
inline constexpr std::size_t kAccesses = 4;

/// The rights that the keys of registrations give by themselves.
struct Exposed {
  // True if registrations of this kind have keys that give rights by themselves. These cover exactly the memory that
  // was asked for, and end with their use.
  bool peers = false;   // sources and targets, where there are no memory windows
  bool locals = false;  // iWARP, which writes the answer of a read as a remote write
  // The device lets a window reach all of the registration beneath it, despite the window's bounds. So memory under
  // windows is registered exactly; registrations of such parts of kept memory are kept.
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
  /// True if it covers only the processor's memory, although a device's may lie among that.
  [[nodiscard]] bool is_on_demand() const noexcept { return on_demand_; }
  /// False if it is of a device's memory, and other memory may have taken the place of that.
  [[nodiscard]] bool is_current() const { return owner_ == nullptr || owner_->holds(memory_); }

 private:
  MemoryRegionPtr region_;
  std::span<const std::byte> memory_;  // kept here, because the registration of a dma-buf does not know its address
  std::shared_ptr<DeviceMemory> owner_;
  VerbsStatistics& statistics_;
  const bool on_demand_;
};
using RegistrationPtr = std::shared_ptr<const Registration>;

/// Memory that does not go away.
struct KeptRange {
  std::span<const std::byte> memory;
  std::shared_ptr<DeviceMemory> owner;  // nullptr: the processor's
};
/// Memory that does not go away, by the numbers of the promises. The domains of a transport share it.
using KeptRanges = std::map<std::uint64_t, KeptRange>;
/// Finds the range that has all of this memory, even if other memory may have taken its place; nullptr: there is none.
[[nodiscard]] const KeptRange* kept_around(const KeptRanges& kept, std::span<const std::byte> memory) noexcept;
/// Finds the range that has all of this memory now; nullptr: there is none.
[[nodiscard]] const KeptRange* kept_now(const KeptRanges& kept, std::span<const std::byte> memory);

class Registrations {
 public:
  /// `on_demand`: the device can do it, and the settings ask for it.
  Registrations(ibv_pd& domain, Exposed exposed, const VerbsSettings& settings, const KeptRanges& kept,
                VerbsStatistics& statistics, bool on_demand = false);

  /// Returns a registration of this memory. Errc::exhausted says which limit to raise.
  [[nodiscard]] Result<RegistrationPtr> acquire(std::span<const std::byte> memory, Access access);
  /// Makes a registration that nobody else gets.
  [[nodiscard]] Result<RegistrationPtr> make(std::span<const std::byte> memory, Access access);
  /// Registers kept memory as a whole, for every access, unless it is registered already. Only tries accesses that need
  /// exact registrations later.
  [[nodiscard]] Status reach(std::span<const std::byte> memory);
  /// Forgets memory that may go away: from here on nobody gets an old registration of it. Kept::stays: old registrations
  /// of memory that is still kept remain. Kept::is_new: they do not, because other memory has taken that memory's place.
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
