#include "service-kit/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tributary::service {

Status write_whole_file(const std::string& path, const std::string& text, mode_t mode) {
  const std::string made = path + "." + std::to_string(::getpid());
  const int file = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file < 0) return fail(Errc::io, std::strerror(errno));
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::rename(made.c_str(), path.c_str()) == 0;
  const std::string why = written ? "" : std::strerror(errno);
  ::close(file);
  if (written) return {};
  ::unlink(made.c_str());
  return fail(Errc::io, why);
}

}  // namespace tributary::service
