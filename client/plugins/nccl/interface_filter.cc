#include "client/plugins/nccl/interface_filter.h"

#include <algorithm>
#include <sstream>

namespace tributary::nccl {

InterfaceFilter::InterfaceFilter(std::string text) : text_(std::move(text)) {
  std::string_view rest = text_;
  if (rest.starts_with('^')) {
    excludes_ = true;
    rest.remove_prefix(1);
  }
  if (rest.starts_with('=')) {
    whole_ = true;
    rest.remove_prefix(1);
  }
  std::istringstream in{std::string(rest)};
  for (std::string name; std::getline(in, name, ',');) {
    // NCCL reads "eth0:1" as a name and a port.
    if (const auto colon = name.find(':'); colon != std::string::npos) name.resize(colon);
    if (!name.empty()) names_.push_back(name);
  }
}

bool InterfaceFilter::admits(std::string_view interface_name) const noexcept {
  const bool listed = std::ranges::any_of(names_, [&](const std::string& name) {
    return whole_ ? interface_name == name : interface_name.starts_with(name);
  });
  return names_.empty() || listed != excludes_;
}

}  // namespace tributary::nccl
