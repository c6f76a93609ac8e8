#pragma once
// Registered memory of one protection domain. A registration lives as long as somebody holds it; while it lives,
// whoever wants memory within it gets the same one. Memory that was promised to stay is registered as a whole and held
// by the cache; other memory is held after use only as far as the settings allow. Neither where the key gives a peer
// rights (Exposed).
//
// On demand (ODP): the device asks the kernel for pages as it comes to them, and is told when they go away. So nothing
// is pinned, and a registration is as good for whatever lies at its addresses later: it is made of the whole blocks of
// the address space around what is wanted, and kept.
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
  messages,  // our own device receives into it
  source,    // the peer may read it: through a memory window, or, where there are none, by the registration's key
  target,    // the peer may write it, likewise
  local,     // our own device reads it, or writes into it what it has read from the peer
};
inline constexpr std::size_t kAccesses = 4;

/// The rights that the keys of registrations give by themselves.
struct Exposed {
  // Registrations whose keys give rights to whoever knows them: they are of exactly the memory that was asked for, and
  // end with their use.
  bool peers = false;   // sources and targets: no memory windows
  bool locals = false;  // iWARP: it writes the answer of a read as a remote write
  // The device lets a window reach all of the registration that it is bound to, whatever its own bounds: so what
  // windows are bound to is registered exactly; that of memory that stays is kept.
  bool windows_unbounded = false;
};

class Registration {
 public:
  /// `owner`: of a device's memory, whose it is.
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
  /// The processor's memory alone, among which a device's may lie.
  [[nodiscard]] bool is_on_demand() const noexcept { return on_demand_; }
  /// False: it is of a device's memory, in whose place there may be other memory now.
  [[nodiscard]] bool is_current() const { return owner_ == nullptr || owner_->holds(memory_); }

 private:
  MemoryRegionPtr region_;
  std::span<const std::byte> memory_;  // of a dma-buf the region itself knows no address
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
/// By the number of their promise. Shared by the domains of a transport.
using KeptRanges = std::map<std::uint64_t, KeptRange>;
/// The one that has all of this memory, whether or not that is still what it was; nullptr: none.
[[nodiscard]] const KeptRange* kept_around(const KeptRanges& kept, std::span<const std::byte> memory) noexcept;
/// The one whose memory this is; nullptr: none's.
[[nodiscard]] const KeptRange* kept_now(const KeptRanges& kept, std::span<const std::byte> memory);

class Registrations {
 public:
  /// `on_demand`: the device can, and it is wanted.
  Registrations(ibv_pd& domain, Exposed exposed, const VerbsSettings& settings, const KeptRanges& kept,
                VerbsStatistics& statistics, bool on_demand = false);

  /// Errc::exhausted says which limit to raise.
  [[nodiscard]] Result<RegistrationPtr> acquire(std::span<const std::byte> memory, Access access);
  /// One that nobody else gets.
  [[nodiscard]] Result<RegistrationPtr> make(std::span<const std::byte> memory, Access access);
  /// Registers kept memory for every access, as a whole, unless it is. What must be registered exactly later is tried.
  [[nodiscard]] Status reach(std::span<const std::byte> memory);
  /// This memory may go away: nobody gets a registration of it any more, but what is kept still, unless it is other
  /// memory at the same addresses.
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
  std::array<ByBegin, kAccesses> known_;  // by Access
  std::array<std::size_t, kAccesses> sweep_at_{64, 64, 64, 64};
  std::vector<RegistrationPtr> held_;       // kept ranges, whole
  std::deque<RegistrationPtr> held_parts_;  // of kept ranges; oldest first
  bool on_demand_;
  std::deque<RegistrationPtr> on_demand_blocks_;  // oldest first
  std::list<RegistrationPtr> idle_;               // oldest first
  std::size_t idle_bytes_ = 0;
};

}  // namespace tributary::transport::verbs
