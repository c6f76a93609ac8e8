#pragma once
// What daemons say of themselves at their HTTP port.
#include <cstdint>
#include <string>

namespace tributary::chaos {

/// Of a daemon of this machine; empty where nobody answers.
[[nodiscard]] std::string page(std::uint16_t port, const std::string& path);
/// Of a page of metrics: the sum over all labels; 0 where it is not there.
[[nodiscard]] std::uint64_t metric(const std::string& page, const std::string& name);

}  // namespace tributary::chaos
