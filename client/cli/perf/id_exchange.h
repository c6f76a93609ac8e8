#pragma once
// Sends the 128 bytes of a unique id from rank 0 to the other ranks, if no launcher does so: over one TCP connection
// for each rank, or through a file.
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
  std::string host;  // rank 0's host
  std::uint16_t port = 0;
  std::string job;  // equal on all ranks; without blanks
  std::chrono::milliseconds limit{60'000};
};

/// Serves the id on rank 0, and returns when every other rank has it. Errc::bad_config: rank 0 cannot listen on the
/// port. timed_out names the missing ranks. mismatch: a rank belongs to another job, or has another number of ranks.
[[nodiscard]] Status hand_out_id(const IdBytes& id, const IdMeeting& meeting);
/// Gets the id on another rank. Errc::unreachable: rank 0 did not answer within the limit.
[[nodiscard]] Result<IdBytes> fetch_id(const IdMeeting& meeting);

/// Writes the file on rank 0, as a whole or not at all. Errc::bad_config: the file exists; a killed run may have left
/// it.
[[nodiscard]] Status write_id_file(const IdBytes& id, const std::string& path);
/// Reads the file when it exists. Errc::timed_out: there is no file. Errc::corrupt: it contains no id.
[[nodiscard]] Result<IdBytes> read_id_file(const std::string& path, std::chrono::milliseconds limit);

}  // namespace tributary::cli
