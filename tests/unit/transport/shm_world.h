#pragma once
// A world on memory that two transports of this process share, as two processes would share it.
#include "tests/unit/transport/real_world.h"
#include "tributary/transport/shm.h"

namespace tributary::transport::test {

class ShmWorld final : public RealWorld {
 public:
  explicit ShmWorld(const ShmSettings& settings) : RealWorld("127.0.0.1"), server_(settings), client_(settings) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }

 private:
  ShmTransport server_;
  ShmTransport client_;
};

}  // namespace tributary::transport::test
