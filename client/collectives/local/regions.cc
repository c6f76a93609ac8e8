#include "client/collectives/local/regions.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tributary::client::local {
namespace {

struct Announcement {
  std::uint32_t rank, index, generation, unused;
  std::uint64_t offset, bytes;
};

bool send_announcement(int inbox, const Announcement& announcement, int file) noexcept {
  iovec data{.iov_base = const_cast<Announcement*>(&announcement), .iov_len = sizeof announcement};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof file)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(rights), &file, sizeof file);
  // Count a message to a rank that has gone as sent.
  return sendmsg(inbox, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EPIPE || errno == ECONNRESET;
}

/// Receives one announcement. Returns false if no message has come. A malformed message leaves `file` closed.
bool receive_announcement(int inbox, Announcement& announcement, transport::OwnedDescriptor& file) noexcept {
  iovec data{.iov_base = &announcement, .iov_len = sizeof announcement};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t n = recvmsg(inbox, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n <= 0) return false;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights), sizeof number);
    file.reset(number);
  }
  if (n != static_cast<ssize_t>(sizeof announcement)) file.reset();
  return true;
}

}  // namespace

Result<std::pair<FileDescriptor, FileDescriptor>> make_inbox() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(Errc::io, std::string("the ranks of this host did not meet: socketpair: ") + std::strerror(errno));
  return std::pair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Regions::Regions(std::shared_ptr<Arena> arena, const Places& places, std::uint32_t rank, std::uint32_t ranks,
                 Inboxes inboxes) noexcept
    : arena_(std::move(arena)),
      places_(places),
      rank_(rank),
      ranks_(ranks),
      inboxes_(std::move(inboxes)),
      seen_(ranks),
      foreign_(std::size_t{ranks} * kRegionsMax),
      own_(kRegionsMax) {}

Result<std::uint32_t> Regions::add(const void* address, transport::SharedRange range) {
  if (inboxes_.of.empty()) return fail(Errc::unsupported, "the ranks of this host have no way to pass descriptors");
  const std::lock_guard lock(mutex_);
  const auto free = std::ranges::find(own_, std::uint32_t{0}, &Own::generation);
  if (free == own_.end()) {
    return fail(Errc::exhausted, "the ranks of a host share at most " + std::to_string(kRegionsMax) +
                                     " ranges per rank: register larger ones, or deregister some");
  }
  const auto index = static_cast<std::uint32_t>(free - own_.begin());
  *free = {.address = static_cast<const std::byte*>(address), .range = std::move(range), .generation = ++generation_};
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    if (r != rank_) free->unsent.push_back(r);
  }
  RegionLine& line = places_.regions(rank_);
  line.generation[index].store(free->generation, std::memory_order_release);  // before any rank gets the message
  send(index, *free);
  line.changes.fetch_add(1, std::memory_order_release);  // pairs with attend()
  return free->generation;
}

void Regions::remove(std::uint32_t generation) noexcept {
  const std::lock_guard lock(mutex_);
  const auto own = std::ranges::find(own_, generation, &Own::generation);
  if (generation == 0 || own == own_.end()) return;
  RegionLine& line = places_.regions(rank_);
  line.generation[own - own_.begin()].store(0, std::memory_order_relaxed);
  line.changes.fetch_add(1, std::memory_order_release);  // pairs with attend()
  *own = {};
}

std::optional<RegionPlace> Regions::find(const void* address, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < kRegionsMax; ++i) {
    Own& own = own_[i];
    const auto at = reinterpret_cast<std::uintptr_t>(own.address);
    if (own.generation == 0 || begin < at || begin - at > own.range.bytes || bytes > own.range.bytes - (begin - at))
      continue;
    own.everywhere = own.everywhere || is_everywhere(i, own);
    if (own.everywhere) return RegionPlace{.index = i, .generation = own.generation, .offset = begin - at};
  }
  return std::nullopt;
}

bool Regions::is_everywhere(std::uint32_t index, const Own& own) const noexcept {
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    if (places_.mapped(r, rank_).generation[index].load(std::memory_order_acquire) != own.generation) return false;
  }
  return true;
}

void Regions::send(std::uint32_t index, Own& own) noexcept {
  const Announcement announcement{.rank = rank_,
                                  .index = index,
                                  .generation = own.generation,
                                  .unused = 0,
                                  .offset = own.range.offset,
                                  .bytes = own.range.bytes};
  std::erase_if(own.unsent, [&](std::uint32_t to) {
    return send_announcement(inboxes_.of[to].number(), announcement, own.range.file.get());
  });
  if (!own.unsent.empty()) unsent_ = true;
}

void Regions::attend() noexcept {
  if (inboxes_.of.empty()) return;
  bool changed = false;
  for (std::uint32_t r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    const std::uint64_t changes = places_.regions(r).changes.load(std::memory_order_acquire);
    if (changes == seen_[r]) continue;
    seen_[r] = changes;
    drop_stale(r);
    changed = true;
  }
  if (changed) receive();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !unsent_) return;
  unsent_ = false;
  bool any = false;
  for (std::uint32_t i = 0; i < kRegionsMax; ++i) {
    if (own_[i].generation == 0 || own_[i].unsent.empty()) continue;
    send(i, own_[i]);
    any = true;
  }
  if (any) places_.regions(rank_).changes.fetch_add(1, std::memory_order_release);
}

void Regions::drop_stale(std::uint32_t rank) noexcept {
  const RegionLine& line = places_.regions(rank);
  for (std::uint32_t i = 0; i < kRegionsMax; ++i) {
    Foreign& here = foreign(rank, i);
    if (here.generation == 0 || here.generation == line.generation[i].load(std::memory_order_relaxed)) continue;
    places_.mapped(rank_, rank).generation[i].store(0, std::memory_order_relaxed);
    here = {};
  }
}

// Maps the announced regions. It does not acknowledge a region that it cannot map, so no call ever uses that region.
void Regions::receive() noexcept {
  Announcement a{};
  for (transport::OwnedDescriptor file; receive_announcement(inboxes_.own.number(), a, file); file.reset()) {
    if (!file.is_open() || a.rank >= ranks_ || a.rank == rank_ || a.index >= kRegionsMax || a.generation == 0) continue;
    if (places_.regions(a.rank).generation[a.index].load(std::memory_order_acquire) != a.generation) continue;
    auto mapping =
        transport::ForeignMapping::map(file, a.offset, a.bytes, transport::ForeignMapping::Access::write, true);
    if (!mapping) continue;
    Foreign& here = foreign(a.rank, a.index);
    here = {};
    here = {.generation = a.generation, .mapping = std::move(*mapping)};
    places_.mapped(rank_, a.rank).generation[a.index].store(a.generation, std::memory_order_release);
  }
}

std::byte* Regions::at(std::uint32_t rank, const RegionPlace& place, std::size_t bytes) const noexcept {
  if (place.index >= kRegionsMax) return nullptr;
  const Foreign& here = foreign_[std::size_t{rank} * kRegionsMax + place.index];
  if (here.generation == 0 || here.generation != place.generation) return nullptr;
  const auto whole = here.mapping.bytes();
  if (place.offset > whole.size() || bytes > whole.size() - place.offset) return nullptr;
  return whole.data() + place.offset;
}

Result<AnnouncedRange> AnnouncedRange::announce(std::shared_ptr<Regions> regions, const void* address,
                                                transport::SharedRange range) {
  const auto generation = regions->add(address, std::move(range));
  if (!generation) return std::unexpected(generation.error());
  return AnnouncedRange(std::move(regions), *generation);
}

std::size_t Regions::mapped() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(foreign_, [](const Foreign& f) { return f.generation != 0; }));
}

}  // namespace tributary::client::local
