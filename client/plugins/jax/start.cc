// The calls of tributary.jax, by ctypes, on the library that JAX loads later: both get the same copy of it.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "client/plugins/jax/job.h"

namespace {

constexpr std::size_t kTextBytes = 2048;

void put(const std::string& text, char* to) {
  const std::size_t count = std::min(text.size(), kTextBytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

}  // namespace

extern "C" {

/// Fills 128 bytes with the id that the other ranks need. Only for rank 0. `error` has 2048 bytes.
TRIBUTARY_API int tributary_jax_unique_id(unsigned char* id, char* error) {
  tributary_unique_id made{};
  const tributary_status status = tributary_get_unique_id(&made);
  if (status != TRIBUTARY_OK) put(tributary_last_error(nullptr), error);
  std::copy_n(made.bytes, sizeof made.bytes, id);
  return status;
}

/// Lets all ranks meet. Collective. timeout_ms 0: TRIBUTARY_TIMEOUT. `error` has 2048 bytes.
TRIBUTARY_API int tributary_jax_start(int rank, int size, const unsigned char* id, long long timeout_ms, char* error) {
  tributary_unique_id given{};
  std::copy_n(id, sizeof given.bytes, given.bytes);
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.timeout_ms = timeout_ms;
  std::string reason;
  const tributary_status status = tributary::jax::job().start(rank, size, given, config, reason);
  if (status != TRIBUTARY_OK) put(reason, error);
  return status;
}

/// `failure` writes the reason if the program fails, at most 256 bytes; MPI_Finalize calls it. JAX calls MPI_Finalize
/// before functions that the program has registered for its end, so the program could not say it earlier.
TRIBUTARY_API void tributary_jax_ask_at_end(void (*failure)(char* text)) {
  tributary::jax::job().ask_at_end(failure);
}

/// Writes the counters as JSON; nothing before the start and after the end. `text` has 2048 bytes.
TRIBUTARY_API void tributary_jax_info(char* text) {
  const auto info = tributary::jax::job().info();
  if (!info) return put("", text);
  const char* const paths[] = {"fallback", "in-network", "local"};
  const nlohmann::json json = {{"path", paths[info->world.path]},
                               {"reason", info->world.reason},
                               {"epoch", info->world.epoch},
                               {"lanes", info->world.lanes},
                               {"communicators", info->communicators},
                               {"operations", info->operations},
                               {"bytes_in_network", info->bytes_in_network},
                               {"bytes_fallback", info->bytes_fallback},
                               {"bytes_local", info->bytes_local},
                               {"failovers", info->failovers},
                               {"returns", info->returns}};
  put(json.dump(), text);
}
}
