#pragma once
// The settings of this library. The settings of libtributary's communicators are in docs/client.md.
#include <cstdint>
#include <optional>
#include <string>

namespace tributary::mpi {

struct Settings {
  /// Calls of fewer bytes go by MPI.
  std::uint64_t bytes_min = kAutoBytesMin;
  /// True: measurements decide about calls of bytes_min or more. False: all of these calls go by Tributary.
  bool measured = true;
  /// True: every call goes by MPI.
  bool off = false;
  /// True: rank 0 tells in MPI_Finalize which calls went which way.
  bool report = false;

  static constexpr std::uint64_t kAutoBytesMin = 4096;
};

/// Reads TRIBUTARY_MPI_MIN_BYTES: "auto", "off", or a number of bytes, with K or M for 2^10 and 2^20. Returns false if
/// the text is none of these.
[[nodiscard]] bool read_bytes_min(const std::string& text, Settings& settings);

/// Reads the environment. `mistake` gets a sentence for each value that cannot be read; the default then holds.
[[nodiscard]] Settings settings_of_environment(std::string& mistake);

}  // namespace tributary::mpi
