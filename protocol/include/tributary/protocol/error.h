#pragma once
// The errors of calls that can fail at run time. A code says what the caller can do next; a sentence tells a person.
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace tributary {

enum class Errc : std::uint8_t {
  retry,         // nothing wrong: try again later
  bad_argument,  // the caller made a mistake; nothing was done
  bad_config,    // a configuration file or environment variable is wrong
  timed_out,     // the other side did not act within the time-out
  peer_gone,     // the other side closed, died or was cut off
  corrupt,       // bytes from outside that are not what they claim to be
  denied,        // the token is missing, forged, expired or for something else
  mismatch,      // ranks called different operations
  exhausted,     // no memory, slot, queue place or capacity is left; use the fallback
  unsupported,   // valid, but not built or not possible here
  unreachable,   // a service did not answer at its address
  io,            // a file or a system call failed
  aborted,       // the communicator was aborted, here or by another rank
};

[[nodiscard]] constexpr std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::retry:
      return "retry";
    case Errc::bad_argument:
      return "bad argument";
    case Errc::bad_config:
      return "bad configuration";
    case Errc::timed_out:
      return "timed out";
    case Errc::peer_gone:
      return "peer gone";
    case Errc::corrupt:
      return "corrupt";
    case Errc::denied:
      return "denied";
    case Errc::mismatch:
      return "mismatch";
    case Errc::exhausted:
      return "exhausted";
    case Errc::unsupported:
      return "unsupported";
    case Errc::unreachable:
      return "unreachable";
    case Errc::io:
      return "i/o error";
    case Errc::aborted:
      return "aborted";
  }
  return "unknown";
}

/// `message` is a whole sentence: what is wrong, where, and what to do.
struct Error {
  Errc code;
  std::string message;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace tributary
