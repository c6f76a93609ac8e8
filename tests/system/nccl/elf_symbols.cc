#include "tests/system/nccl/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>

namespace tributary::nccl_test {
namespace {

/// The bytes of a file, mapped, because such libraries are large.
class Image {
 public:
  explicit Image(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts{};
    if (file >= 0 && fstat(file, &facts) == 0) {
      bytes_ = static_cast<std::size_t>(facts.st_size);
      at_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
  }
  ~Image() {
    if (at_ != MAP_FAILED) munmap(at_, bytes_);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  template <class Entry>
  [[nodiscard]] std::span<const Entry> list(std::size_t offset, std::size_t bytes) const {
    if (at_ == MAP_FAILED || offset > bytes_ || bytes > bytes_ - offset) return {};
    return {reinterpret_cast<const Entry*>(static_cast<const char*>(at_) + offset), bytes / sizeof(Entry)};
  }

 private:
  void* at_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

/// Returns the address that the linker gave, not moved by loading.
std::optional<Elf64_Addr> address_in(const Image& image, const std::string& name) {
  const auto head = image.list<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  const auto sections = image.list<Elf64_Shdr>(head[0].e_shoff, head[0].e_shnum * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const auto names = image.list<char>(sections[section.sh_link].sh_offset, sections[section.sh_link].sh_size);
    for (const Elf64_Sym& symbol : image.list<Elf64_Sym>(section.sh_offset, section.sh_size)) {
      if (symbol.st_value != 0 && symbol.st_name + name.size() < names.size() &&
          std::memcmp(&names[symbol.st_name], name.c_str(), name.size() + 1) == 0) {
        return symbol.st_value;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void* find_hidden(const std::string& path, const void* exported, const std::string& exported_name,
                  const std::string& wanted) {
  const Image image(path);
  const auto known = address_in(image, exported_name);
  const auto hidden = address_in(image, wanted);
  if (!known || !hidden) return nullptr;
  // Loading has moved both symbols by the same distance.
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(exported) - *known + *hidden);
}

}  // namespace tributary::nccl_test
