#include "service-kit/http/address_source.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace tributary::service {

Source source_of_address(std::string_view address) noexcept {
  address = address.substr(0, address.find('%'));
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.size() >= text.size()) return {};
  std::ranges::copy(address, text.begin());
  std::array<std::byte, 16> bytes{};
  if (::inet_pton(AF_INET6, text.data(), bytes.data()) == 1) return source_of(bytes);
  if (::inet_pton(AF_INET, text.data(), bytes.data() + 12) != 1) return {};
  bytes[10] = bytes[11] = std::byte{0xff};
  return source_of(bytes);
}

}  // namespace tributary::service
