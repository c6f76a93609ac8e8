#include "tree-manager/service/secrets.h"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tributary::manager {
namespace {

constexpr std::size_t kTokenRandomBytes = 32;
constexpr std::size_t kSecretBytesMax = 4096;

/// Owns a file descriptor, and closes it.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

std::string why() {
  return std::strerror(errno);
}

/// Mode bits that a secret file must not have. A group may read tokens, because orchestrators mount them for the group
/// of the process. Only the manager's user may read the signing key.
constexpr mode_t kTokenForbidden = 037;
constexpr mode_t kKeyForbidden = 077;

Result<std::string> read_secret(const std::string& path, int fd, mode_t forbidden) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail(Errc::bad_config, "the secret file " + path + ": " + why());
  if (!S_ISREG(status.st_mode)) return fail(Errc::bad_config, "the secret file " + path + " is no regular file");
  if ((status.st_mode & forbidden) != 0) {
    return fail(Errc::bad_config,
                "the secret file " + path + " can be used by users other than its owner; run: chmod 600 " + path);
  }
  std::string text(kSecretBytesMax, '\0');
  const ssize_t bytes = ::read(fd, text.data(), text.size());
  if (bytes < 0) return fail(Errc::bad_config, "the secret file " + path + " cannot be read: " + why());
  text.resize(static_cast<std::size_t>(bytes));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

/// Writes the whole file under another name and then renames it, so that no process ever sees a part of it.
Status write_secret(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  ::unlink(draft.c_str());
  const File file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string line = text + "\n";
  const bool written = file.fd() >= 0 &&
                       ::write(file.fd(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                       ::fsync(file.fd()) == 0 && ::rename(draft.c_str(), path.c_str()) == 0;
  if (written) return {};
  const std::string reason = why();
  ::unlink(draft.c_str());
  return fail(Errc::io, "the secret file " + path + " cannot be made: " + reason +
                            "; check that its directory exists, has room and belongs to the manager's user");
}

Result<std::string> random_hex(std::size_t bytes) {
  std::array<std::byte, 64> random{};
  if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), static_cast<int>(bytes)) != 1) {
    return fail(Errc::io, "OpenSSL has no random numbers");
  }
  return to_hex(std::span(random).first(bytes));
}

/// Returns the file's text. If there is no file, makes one with the text of `make`.
template <class Make>
Result<std::string> load_or_make(const std::string& path, mode_t forbidden, const Make& make) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() >= 0) return read_secret(path, file.fd(), forbidden);
  if (errno != ENOENT) return fail(Errc::bad_config, "the secret file " + path + " cannot be opened: " + why());
  Result<std::string> text = make();
  if (!text) return text;
  if (auto ok = write_secret(path, *text); !ok) return std::unexpected(ok.error());
  return text;
}

Result<std::string> load_token(const std::string& path) {
  auto token = load_or_make(path, kTokenForbidden, [] { return random_hex(kTokenRandomBytes); });
  if (!token) return token;
  bool good = token->size() >= 16 && token->size() <= 1024;
  for (const char c : *token) good = good && c > ' ' && c < 127;
  if (!good)
    return fail(Errc::bad_config,
                "the secret file " + path + " holds no token: 16 to 1024 printable characters without spaces");
  return token;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<SigningKey> load_key(const std::string& path) {
  const auto text = load_or_make(path, kKeyForbidden, []() -> Result<std::string> {
    const auto key = SigningKey::generate();
    if (!key) return std::unexpected(key.error());
    return to_hex(key->seed());
  });
  if (!text) return std::unexpected(text.error());
  std::array<std::byte, kPrivateKeyBytes> seed{};
  bool good = text->size() == 2 * seed.size();
  for (std::size_t i = 0; good && i < seed.size(); ++i) {
    const int high = hex_digit((*text)[2 * i]);
    const int low = hex_digit((*text)[2 * i + 1]);
    good = high >= 0 && low >= 0;
    seed[i] = static_cast<std::byte>(high << 4 | low);
  }
  if (!good) {
    return fail(Errc::bad_config,
                "the secret file " + path +
                    " holds no signing key (64 hexadecimal digits); restore it, or move it away to make a new one");
  }
  return SigningKey::from_seed(seed);
}

}  // namespace

Result<Secrets> load_or_make_secrets(const SecretPaths& paths) {
  auto key = load_key(paths.signing_key);
  if (!key) return std::unexpected(key.error());
  auto aggregator = load_token(paths.aggregator_token);
  if (!aggregator) return std::unexpected(aggregator.error());
  auto job = load_token(paths.job_token);
  if (!job) return std::unexpected(job.error());
  return Secrets{std::move(*key), std::move(*aggregator), std::move(*job)};
}

Result<std::string> read_secret(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return fail(Errc::bad_config, "the secret file " + path + " cannot be opened: " + why());
  return read_secret(path, file.fd(), kTokenForbidden);
}

Status check_secrets(const SecretPaths& paths) {
  const auto is_there = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  if (is_there(paths.signing_key)) {
    if (const auto key = load_key(paths.signing_key); !key) return std::unexpected(key.error());
  }
  for (const std::string& path : {paths.aggregator_token, paths.job_token}) {
    if (!is_there(path)) continue;
    if (const auto token = load_token(path); !token) return std::unexpected(token.error());
  }
  return {};
}

}  // namespace tributary::manager
