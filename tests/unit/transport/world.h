#pragma once
// A world gives the conformance suite two processes of one transport that can reach each other, and a way to let time
// pass.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "tributary/transport/channel.h"

namespace tributary::transport::test {

inline constexpr std::uint32_t kFramesQueuedMax = 64;  // setting of the transports of every world

class World {
 public:
  virtual ~World() = default;
  virtual Transport& server() = 0;
  virtual Transport& client() = 0;
  /// Returns an endpoint at which the server can listen, with the given port (0: any).
  virtual Endpoint server_address(std::uint16_t port) = 0;
  /// Returns an endpoint at which no process listens.
  virtual Endpoint nowhere() = 0;
  /// Polls both sides until `done`; false after a generous limit.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  /// Polls both sides until all frames under way have arrived, to show that an event does not happen.
  virtual void settle() = 0;
};

using WorldFactory = std::function<std::unique_ptr<World>()>;

struct NamedWorld {
  std::string name;
  WorldFactory make;
};
inline std::ostream& operator<<(std::ostream& out, const NamedWorld& world) {
  return out << world.name;
}

/// The worlds of this test program; each program links one definition.
std::vector<NamedWorld> worlds();

}  // namespace tributary::transport::test
