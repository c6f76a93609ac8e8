#pragma once
// The number of files, sockets among them, that this process may have open (RLIMIT_NOFILE). The usual soft limit of
// 1,024 is for programs that use select(), whose sets hold no more; any other program may use the hard limit.
#include <cstdint>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::transport {

struct DescriptorLimit {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  std::uint64_t open = 0;  // descriptors open now
};
[[nodiscard]] DescriptorLimit descriptor_limit();
/// Raises the soft limit to the hard one if this process needs more than the soft one allows for `more` descriptors
/// beside the descriptors that are open now. Never lowers it.
void raise_descriptor_limit(std::uint64_t more);
/// Returns Errc::exhausted if the hard limit does not allow `needed` more descriptors; the text has the limit, the
/// numbers and a remedy. `what` names the process: "rank 0 of 5000 ranks".
[[nodiscard]] Status check_descriptors(const DescriptorLimit& limit, std::uint64_t needed, const std::string& what);
/// Advice for a person who sees this errno: the limit that the process has reached, and a remedy. The text is empty if
/// the errno does not come from a limit.
[[nodiscard]] std::string descriptor_advice(int error);

}  // namespace tributary::transport
