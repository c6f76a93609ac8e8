#pragma once
// How the 128 bytes of a unique id get from rank 0 to the others, where nothing else carries them: over one TCP
// connection per rank, or through a file.
//
//   rank r:  "tributary-id/1 <rank> <ranks> <job>\n"        rank 0:  "id <256 hexadecimal digits>\n"
//                                                                    or "no <reason>\n"
#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

using IdBytes = std::array<unsigned char, 128>;

struct IdMeeting {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::string host;  // rank 0's
  std::uint16_t port = 0;
  std::string job;  // must agree; without blanks
  std::chrono::milliseconds limit{60'000};
};

/// Rank 0: returns when every other rank has the id. Errc::bad_config: the port cannot be listened on. timed_out names
/// the missing ranks. mismatch: a rank is of another job, or counts ranks differently.
[[nodiscard]] Status hand_out_id(const IdBytes& id, const IdMeeting& meeting);
/// Any other rank. Errc::unreachable: nobody answered within the limit.
[[nodiscard]] Result<IdBytes> fetch_id(const IdMeeting& meeting);

/// Rank 0: makes the file at once or not at all. Errc::bad_config when it exists: it may be what a killed run has left.
[[nodiscard]] Status write_id_file(const IdBytes& id, const std::string& path);
/// Waits until it is there. Errc::timed_out, or corrupt when it holds something else.
[[nodiscard]] Result<IdBytes> read_id_file(const std::string& path, std::chrono::milliseconds limit);

}  // namespace tributary::cli
