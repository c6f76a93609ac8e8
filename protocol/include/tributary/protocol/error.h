#pragma once
// The errors of calls that can fail at run time. A code tells the caller what to do next; a sentence tells a person.
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace tributary {

enum class Errc : std::uint8_t {
  retry,         // no mistake: try again later
  bad_argument,  // the caller made a mistake; the call had no effect
  bad_config,    // a configuration file or environment variable is wrong
  timed_out,     // the other side did not act within the time-out
  peer_gone,     // the other side closed, died or was cut off
  corrupt,       // bytes from outside are malformed, or contradict other bytes
  denied,        // the token is missing, forged, expired or for another purpose
  mismatch,      // ranks called different operations
  exhausted,     // no memory, slot, queue place or capacity is left; use the fallback
  unsupported,   // valid, but this build or this host cannot do it
  unreachable,   // a service did not answer at its address
  io,            // a file or a system call failed
  aborted,       // this rank or another rank aborted the communicator
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
