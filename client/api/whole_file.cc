#include "client/api/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tributary/transport/shared_memory.h"

namespace tributary::client {

Status write_whole_file(const std::string& path, const std::string& text) {
  const std::string made = path + "." + std::to_string(::getpid());
  const transport::OwnedDescriptor file(
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool written = file.is_open() &&
                       ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::rename(made.c_str(), path.c_str()) == 0;
  if (written) return {};
  const std::string why = std::strerror(errno);
  if (file.is_open()) ::unlink(made.c_str());
  return fail(Errc::io, why);
}

}  // namespace tributary::client
