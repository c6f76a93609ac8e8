#pragma once
// The exit codes of `tributary`.
#include "tributary/protocol/error.h"

namespace tributary::cli {

enum ExitCode : int {
  kExitGood = 0,
  kExitFailed = 1,
  kExitUsage = 64,          // sysexits.h: EX_USAGE
  kExitUnreachable = 69,    // EX_UNAVAILABLE: a service does not answer
  kExitOtherRank = 75,      // EX_TEMPFAIL: this rank fails only because another rank has failed
  kExitConfiguration = 78,  // EX_CONFIG
};

[[nodiscard]] constexpr int exit_code_of(Errc code) noexcept {
  switch (code) {
    case Errc::bad_argument:
      return kExitUsage;
    case Errc::bad_config:
      return kExitConfiguration;
    case Errc::unreachable:
      return kExitUnreachable;
    default:
      return kExitFailed;
  }
}

}  // namespace tributary::cli
