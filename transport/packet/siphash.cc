#include "transport/packet/siphash.h"

#include <sys/random.h>

#include <system_error>

#include "transport/random/random.h"

namespace tributary::transport::packet {

IdSource::IdSource(std::uint64_t seed) {
  if (seed != 0) {
    Random random(seed);
    key_ = {random.next(), random.next()};
    return;
  }
  if (::getrandom(key_.data(), sizeof key_, 0) != static_cast<ssize_t>(sizeof key_)) {
    throw std::system_error(errno, std::system_category(), "cannot get random numbers");
  }
}

}  // namespace tributary::transport::packet
