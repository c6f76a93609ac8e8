#include "client/cli/cluster/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>

namespace tributary::cli {
namespace {

// Search the folder of this program, and up to four folders above it: installation and build have their programs there.
constexpr int kFoldersAbove = 4;
constexpr const char* kPlaces[] = {"", "bin", "client/cli", "tree-manager", "aggregator", "aggregator/daemon"};

/// Returns the IPv4 address in an RDMA port's identifier, 0000:0000:0000:0000:0000:ffff:0a00:0001; else an empty text.
std::optional<std::string> address_in(std::string_view identifier) {
  constexpr std::string_view kFour = "0000:0000:0000:0000:0000:ffff:";
  constexpr std::size_t kDigits = 4;
  if (!identifier.starts_with(kFour) || identifier.size() != kFour.size() + 2 * kDigits + 1) return std::nullopt;
  identifier.remove_prefix(kFour.size());
  const auto half = [](std::string_view digits) -> std::optional<unsigned> {
    unsigned number = 0;
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, number, 16);
    return error == std::errc{} && end == last ? std::optional(number) : std::nullopt;
  };
  const auto high = half(identifier.substr(0, kDigits)), low = half(identifier.substr(kDigits + 1));
  if (!high || !low || identifier[kDigits] != ':') return std::nullopt;
  return std::to_string(*high >> 8U) + "." + std::to_string(*high & 255U) + "." + std::to_string(*low >> 8U) + "." +
         std::to_string(*low & 255U);
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(Errc::io, "/proc/self/exe cannot be read: " + error.message());
  std::filesystem::path folder = self.parent_path();
  for (int up = 0; up <= kFoldersAbove && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
    for (const char* place : kPlaces) {
      const std::filesystem::path path = folder / place / name;
      if (std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0) return path.string();
    }
  }
  return fail(Errc::bad_config, name + " is neither in the folder of " + self.string() +
                                    " nor in its build directory; build or install it, or use --aggregators 0");
}

Result<std::string> make_private_folder() {
  const char* base = std::getenv("TMPDIR");
  std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/tributary-XXXXXX";
  if (mkdtemp(path.data()) != nullptr) return path;
  return fail(Errc::io, "a folder could not be made as " + path + ": " + std::strerror(errno) +
                            "; set TMPDIR to a folder that can be written");
}

std::string tail_of(const std::string& file, std::size_t lines) {
  std::ifstream in(file);
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    last.push_back("   | " + line + "\n");
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) text += line;
  return text;
}

// Returns the IPv4 addresses of all RDMA ports. A port has an identifier for each address of its interface; identifiers
// of other addresses are left out.
std::vector<std::string> rdma_addresses() {
  std::set<std::filesystem::path> devices;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none))
    devices.insert(device.path());
  std::vector<std::string> addresses;
  for (const auto& device : devices) {
    for (const auto& file : std::filesystem::directory_iterator(device / "ports/1/gids", none)) {
      std::string identifier;
      std::ifstream(file.path()) >> identifier;
      const auto address = address_in(identifier);
      if (address && std::ranges::find(addresses, *address) == addresses.end()) addresses.push_back(*address);
    }
  }
  return addresses;
}

}  // namespace tributary::cli
