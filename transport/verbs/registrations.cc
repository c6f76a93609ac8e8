#include "transport/verbs/registrations.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/verbs/device_registration.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

/// Registrations may overlap, so the last registration that begins below an address need not cover it. The search looks
/// at this number of registrations before the code makes a new one.
constexpr int kLookBack = 16;
constexpr std::size_t kPartsMax = 1024;                           // most exact registrations of one domain
constexpr std::uintptr_t kBlockBytes = std::uintptr_t{64} << 20;  // addresses that one registration on demand
                                                                  // covers
constexpr std::size_t kBlocksMax = 1024;                          // most blocks of one domain

const std::byte* end_of(std::span<const std::byte> memory) noexcept {
  return memory.data() + memory.size();
}

}  // namespace

const KeptRange* kept_around(const KeptRanges& kept, std::span<const std::byte> memory) noexcept {
  for (const auto& [number, range] : kept) {
    if (range.memory.data() <= memory.data() && end_of(memory) <= end_of(range.memory)) return &range;
  }
  return nullptr;
}

const KeptRange* kept_now(const KeptRanges& kept, std::span<const std::byte> memory) {
  for (const auto& [number, range] : kept) {
    const bool around = range.memory.data() <= memory.data() && end_of(memory) <= end_of(range.memory);
    if (around && (range.owner == nullptr || range.owner->holds(range.memory))) return &range;
  }
  return nullptr;
}

Registration::Registration(MemoryRegionPtr region, std::span<const std::byte> memory,
                           std::shared_ptr<DeviceMemory> owner, VerbsStatistics& statistics, bool on_demand)
    : region_(std::move(region)),
      memory_(memory),
      owner_(std::move(owner)),
      statistics_(statistics),
      on_demand_(on_demand) {
  ++statistics_.registrations;
  ++statistics_.memory_regions;
  statistics_.bytes_registered += bytes();
}

Registration::~Registration() {
  TRIBUTARY_ASSERT(statistics_.memory_regions > 0 && statistics_.bytes_registered >= bytes(),
                   "a registration of {} bytes ends, and {} bytes are registered", bytes(),
                   statistics_.bytes_registered);
  --statistics_.memory_regions;
  statistics_.bytes_registered -= bytes();
}

bool Registration::covers(const std::byte* at, std::size_t bytes) const noexcept {
  return at >= memory_.data() && at + bytes <= end_of(memory_);
}

bool Registration::overlaps(std::span<const std::byte> memory) const noexcept {
  return memory_.data() < end_of(memory) && memory.data() < end_of(memory_);
}

Registrations::Registrations(ibv_pd& domain, Exposed exposed, const VerbsSettings& settings, const KeptRanges& kept,
                             VerbsStatistics& statistics, bool on_demand)
    : domain_(domain),
      exposed_(exposed),
      settings_(settings),
      kept_(kept),
      statistics_(statistics),
      on_demand_(on_demand) {}

Result<RegistrationPtr> Registrations::acquire(std::span<const std::byte> memory, Access access) {
  if (access == Access::target && !exposed_.peers) access = Access::source;  // with windows, memory is only a source
  if (auto known = find(memory, access)) {
    ++statistics_.registration_hits;
    return known;
  }
  const auto* kept = is_exposed(access) ? nullptr : kept_now(kept_, memory);
  if (on_demand_ && kept == nullptr && !is_exact(access) && access != Access::messages) {
    if (auto made = make_on_demand(memory, access)) return made;
  }
  const auto wanted = kept != nullptr && !is_exact(access) ? kept->memory : memory;
  auto made = make(wanted, access);
  if (!made) return made;
  remember(wanted.data(), access, *made);
  if (kept != nullptr && is_exact(access)) {
    held_parts_.push_back(*made);
    if (held_parts_.size() > kPartsMax) held_parts_.pop_front();
  } else if (kept != nullptr) {
    held_.push_back(*made);
  } else if (!is_exact(access)) {
    keep_idle(*made);
  }
  return made;
}

/// Forgets ended registrations when up to half of all may have ended.
void Registrations::remember(const std::byte* begin, Access access, const RegistrationPtr& registration) {
  ByBegin& known = known_[static_cast<std::size_t>(access)];
  std::size_t& sweep_at = sweep_at_[static_cast<std::size_t>(access)];
  if (known.size() >= sweep_at) {
    std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max<std::size_t>(64, 2 * known.size());
  }
  known.emplace(begin, registration);
}

RegistrationPtr Registrations::find(std::span<const std::byte> memory, Access access) {
  ByBegin& known = known_[static_cast<std::size_t>(access)];
  auto at = known.upper_bound(memory.data());
  for (int i = 0; i < kLookBack && at != known.begin(); ++i) {
    --at;
    if (auto registration = at->second.lock()) {
      const bool same = registration->memory().data() == memory.data() && registration->bytes() == memory.size();
      const bool has_it = same || (!is_exact(access) && registration->covers(memory.data(), memory.size()));
      const bool other = registration->is_on_demand() && is_of_device(memory);
      if (has_it && registration->is_current() && !other) return registration;
    } else {
      at = known.erase(at);
    }
  }
  return nullptr;
}

unsigned Registrations::rights_of(Access access) const noexcept {
  unsigned rights = IBV_ACCESS_LOCAL_WRITE;
  if (is_for_peers(access)) {
    const unsigned exposed = access == Access::source ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    rights |= exposed_.peers ? exposed : unsigned{IBV_ACCESS_MW_BIND};
  }
  if (access == Access::local && exposed_.locals) rights |= IBV_ACCESS_REMOTE_WRITE;
  return rights;
}

bool Registrations::is_of_device(std::span<const std::byte> memory) const {
  const KeptRange* const kept = kept_now(kept_, memory);
  return kept != nullptr && kept->owner != nullptr;
}

/// Makes a registration on demand. Returns nullptr if the device refuses; it is then not asked again.
RegistrationPtr Registrations::make_on_demand(std::span<const std::byte> memory, Access access) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / kBlockBytes * kBlockBytes;
  const auto end = (reinterpret_cast<std::uintptr_t>(end_of(memory)) + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  const std::span block(memory.data() - (reinterpret_cast<std::uintptr_t>(memory.data()) - begin), end - begin);
  const unsigned rights = rights_of(access) | unsigned{IBV_ACCESS_ON_DEMAND};
  MemoryRegionPtr region(ibv_reg_mr(&domain_, const_cast<std::byte*>(block.data()), block.size(), rights));
  if (!region) {
    on_demand_ = false;
    return nullptr;
  }
  auto made = std::make_shared<const Registration>(std::move(region), block, nullptr, statistics_, true);
  ++statistics_.registrations_on_demand;
  remember(block.data(), access, made);
  on_demand_blocks_.push_back(made);
  if (on_demand_blocks_.size() > kBlocksMax) on_demand_blocks_.pop_front();
  return made;
}

Result<RegistrationPtr> Registrations::make(std::span<const std::byte> memory, Access access) {
  const unsigned rights = rights_of(access);
  if (const KeptRange* const kept = kept_now(kept_, memory); kept != nullptr && kept->owner != nullptr) {
    auto region = register_device_memory(domain_, memory, rights, *kept->owner);
    if (!region) return std::unexpected(region.error());
    return std::make_shared<const Registration>(std::move(*region), memory, kept->owner, statistics_);
  }
  auto* const at = const_cast<std::byte*>(memory.data());  // the call has no const form; a source is only read
  MemoryRegionPtr region(ibv_reg_mr(&domain_, at, memory.size(), rights));
  if (region) return std::make_shared<const Registration>(std::move(region), memory, nullptr, statistics_);
  const int error = errno;
  std::string why =
      "cannot register " + std::to_string(memory.size()) + " bytes with the RDMA device: " + std::strerror(error);
  if (error == ENOMEM || error == EPERM) why += "; raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)";
  return fail(error == EFAULT ? Errc::bad_argument : Errc::exhausted, why + ".");
}

// The local registration is made last: if it exists, the other accesses were tried before.
Status Registrations::reach(std::span<const std::byte> memory) {
  if (is_exact(Access::local))
    return fail(Errc::unsupported, "this kind of RDMA device must have memory registered for each payload");
  if (find(memory, Access::local)) return {};
  for (const Access access : {Access::source, Access::target, Access::local}) {
    auto made = is_exact(access) ? make(memory, access) : acquire(memory, access);
    if (!made) return std::unexpected(made.error());
  }
  return {};
}

void Registrations::keep_idle(const RegistrationPtr& registration) {
  if (registration->bytes() > settings_.registrations_idle_bytes) return;
  idle_.push_back(registration);
  idle_bytes_ += registration->bytes();
  while (idle_bytes_ > settings_.registrations_idle_bytes) {
    TRIBUTARY_ASSERT(!idle_.empty(), "{} bytes are idle in no registration", idle_bytes_);
    idle_bytes_ -= idle_.front()->bytes();
    idle_.pop_front();
  }
}

void Registrations::forget(std::span<const std::byte> memory, Kept kept) {
  const auto gone = [&](const RegistrationPtr& registration) {
    return registration->overlaps(memory) &&
           (kept == Kept::is_new || kept_around(kept_, registration->memory()) == nullptr);
  };
  std::erase_if(held_, gone);
  std::erase_if(held_parts_, gone);
  std::erase_if(on_demand_blocks_, gone);
  std::erase_if(idle_, [&](const RegistrationPtr& registration) {
    if (!gone(registration)) return false;
    idle_bytes_ -= registration->bytes();
    return true;
  });
  for (ByBegin& known : known_) {
    std::erase_if(known, [&](const auto& entry) {
      const auto registration = entry.second.lock();
      return !registration || gone(registration);
    });
  }
}

}  // namespace tributary::transport::verbs
