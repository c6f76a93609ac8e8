#include "tree-manager/identity/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tributary::manager {
namespace {

constexpr std::size_t kFileBytesMax = 64U << 10;
constexpr mode_t kForbidden = 077;

std::string why() {
  return std::strerror(errno);
}

/// Owns a file descriptor, and closes it.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_; }
  bool close() noexcept {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

/// Returns the text of the file, unless users other than its owner can use it.
Result<std::string> read_all(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return fail(Errc::bad_config, "the file of identity keys " + path + " cannot be opened: " + why());
  struct stat status{};
  if (::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(Errc::bad_config, "the file of identity keys " + path + " is no regular file");
  if ((status.st_mode & kForbidden) != 0) {
    return fail(Errc::bad_config, "the file of identity keys " + path +
                                      " can be used by users other than its owner; run: chmod 600 " + path);
  }
  std::string text(kFileBytesMax, '\0');
  const ssize_t bytes = ::read(file.fd(), text.data(), text.size());
  if (bytes < 0) return fail(Errc::bad_config, "the file of identity keys " + path + " cannot be read: " + why());
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

}  // namespace

Result<std::string> read_identity_keys(const std::string& path) {
  auto text = read_all(path);
  if (!text) return text;
  if (const auto keys = IdentityKeys::parse(*text); !keys)
    return fail(Errc::bad_config, "the file of identity keys " + path + ": " + keys.error().message);
  return text;
}

Result<IdentityKeys> load_identity_keys(const std::string& path) {
  const auto text = read_identity_keys(path);
  if (!text) return std::unexpected(text.error());
  return IdentityKeys::parse(*text);
}

Status add_identity_key(const std::string& path) {
  std::string before;
  if (::access(path.c_str(), F_OK) == 0) {
    if (const auto keys = load_identity_keys(path); !keys) return std::unexpected(keys.error());
    auto text = read_all(path);
    if (!text) return std::unexpected(text.error());
    before = std::move(*text);
  }
  const auto line = IdentityKeys::make_line();
  if (!line) return std::unexpected(line.error());
  const std::string text = *line + "\n" + before;
  if (const auto keys = IdentityKeys::parse(text); !keys) {
    return fail(Errc::bad_config, path + ": " + keys.error().message + "; take out keys that no token uses any more");
  }
  return write_private_file(path, text);
}

Status write_private_file(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());  // file of a writer that was killed
  File file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written = file.fd() >= 0 &&
                       ::write(file.fd(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(file.fd()) == 0 && file.close() && ::rename(draft.c_str(), path.c_str()) == 0;
  if (written) return {};
  const std::string reason = why();
  ::unlink(draft.c_str());
  return fail(Errc::io, path + " cannot be written: " + reason);
}

}  // namespace tributary::manager
