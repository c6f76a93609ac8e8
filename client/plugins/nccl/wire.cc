#include "client/plugins/nccl/wire.h"

#include "tributary/tributary.h"

namespace tributary::nccl {
namespace {

Result<Wire> choose_wire() {
  const char* name = nullptr;
  if (tributary_transport_name(nullptr, &name) != TRIBUTARY_OK) {
    return fail(Errc::unsupported, tributary_last_error(nullptr));
  }
  return std::string_view(name) == "verbs" ? Wire::verbs : Wire::tcp;
}

}  // namespace

std::string_view to_string(Wire wire) noexcept {
  return wire == Wire::verbs ? "verbs" : "tcp";
}

const Result<Wire>& wire() {
  static const Result<Wire> chosen = choose_wire();
  return chosen;
}

}  // namespace tributary::nccl
