#include "transport/shm/memory_maps.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace tributary::transport {
namespace {

/// A line of /proc/self/maps.
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  std::string rights, name;
  std::uint64_t offset = 0, inode = 0;
  unsigned device_major = 0, device_minor = 0;
};

/// Takes the number at the beginning of `text` and the character after it. Returns false if there is no number, or the
/// character is not `after`.
template <class Number>
bool take_number(std::string_view& text, Number& into, int base, char after) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, into, base);
  if (error != std::errc{} || end == last || *end != after) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

// For example: 7f2a4c000000-7f2a4c200000 rw-s 00000000 00:01 2049       /memfd:tensor (deleted)
std::optional<Mapping> parse(std::string_view line) {
  constexpr std::size_t kRights = 4;
  Mapping m;
  if (!take_number(line, m.begin, 16, '-') || !take_number(line, m.end, 16, ' ')) return std::nullopt;
  m.rights = line.substr(0, kRights);
  if (line.size() <= kRights || line[kRights] != ' ') return std::nullopt;
  line.remove_prefix(kRights + 1);
  if (!take_number(line, m.offset, 16, ' ') || !take_number(line, m.device_major, 16, ':') ||
      !take_number(line, m.device_minor, 16, ' ') || !take_number(line, m.inode, 10, ' ')) {
    return std::nullopt;
  }
  m.name = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return m;
}

std::unexpected<Error> unsupported(const std::string& why) {
  return fail(Errc::unsupported, why);
}

bool is_file_of(int descriptor, const Mapping& mapping) noexcept {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && status.st_ino == mapping.inode &&
         major(status.st_dev) == mapping.device_major && minor(status.st_dev) == mapping.device_minor;
}

/// Finds the file among this process's descriptors, because a program that maps a memfd has mostly kept its descriptor.
/// This needs no privilege.
OwnedDescriptor find_open(const Mapping& mapping) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (!folder) return {};
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    int number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc{}) continue;
    if (!is_file_of(number, mapping) || (::fcntl(number, F_GETFL) & O_ACCMODE) != O_RDWR) continue;
    OwnedDescriptor copy(::fcntl(number, F_DUPFD_CLOEXEC, 0));
    if (copy.is_open() && is_file_of(copy.get(), mapping)) return copy;  // another thread may have closed it
  }
  return {};
}

/// Works only for processes with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
OwnedDescriptor open_map_file(const Mapping& mapping) {
  char name[80];
  std::snprintf(name, sizeof name, "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, mapping.begin, mapping.end);
  OwnedDescriptor file(::open(name, O_RDWR | O_CLOEXEC));
  if (file.is_open() && is_file_of(file.get(), mapping)) return file;
  return {};
}

}  // namespace

Result<SharedRange> find_mapped_file(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = begin + memory.size();
  std::ifstream maps("/proc/self/maps");
  if (!maps) return unsupported("/proc/self/maps, which says where memory comes from, cannot be read");
  std::optional<Mapping> first, last;
  for (std::string line; std::getline(maps, line);) {
    const auto mapping = parse(line);
    if (!mapping || mapping->end <= begin) continue;
    if (mapping->begin >= end) break;
    if (mapping->rights.size() < 4 || mapping->rights[3] != 's' || mapping->inode == 0)
      return unsupported(
          "it is memory of this process alone: memory of tributary_mem_alloc, or a shared mapping of a "
          "sealed memfd, can be shared");
    if (!mapping->rights.starts_with("rw")) return unsupported("it is not mapped for reading and writing");
    if (!mapping->name.starts_with("/memfd:"))
      return unsupported("it is a mapping of " + mapping->name + ", which is no memfd and cannot be sealed");
    if (!first) {
      if (mapping->begin > begin) break;
      first = mapping;
    } else {
      const bool goes_on = mapping->begin == last->end && mapping->inode == last->inode &&
                           mapping->device_major == last->device_major && mapping->device_minor == last->device_minor &&
                           mapping->offset == last->offset + (last->end - last->begin);
      if (!goes_on) return unsupported("it is made up of several mappings that do not continue each other");
    }
    last = mapping;
  }
  if (!first || last->end < end) return unsupported("not all of it is mapped");
  SharedRange range{
      .file = find_open(*first), .offset = first->offset + (begin - first->begin), .bytes = memory.size()};
  if (!range.file.is_open()) range.file = open_map_file(*first);
  if (range.file.is_open()) return range;
  return unsupported(
      "this process has closed its memfd, and /proc/self/map_files, which could give it back, is for processes with "
      "CAP_CHECKPOINT_RESTORE: keep the descriptor open until the memory is registered");
}

}  // namespace tributary::transport
