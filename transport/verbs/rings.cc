#include "transport/verbs/rings.h"

namespace tributary::transport::verbs {

constexpr std::size_t kPageBytes = 4096;

Result<Rings> Rings::make(Domain& domain, std::uint32_t receives, std::uint32_t receive_bytes, std::uint32_t sends,
                          std::uint32_t send_bytes) {
  Rings rings;
  rings.receives_ = receives;
  rings.receive_bytes_ = receive_bytes;
  rings.send_bytes_ = send_bytes;
  const std::size_t wanted = std::size_t{receives} * receive_bytes + std::size_t{sends} * send_bytes;
  const std::size_t bytes = (wanted + kPageBytes - 1) / kPageBytes * kPageBytes;
  rings.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes)));
  if (!rings.memory_) return fail(Errc::exhausted, "no memory for the messages of a connection.");
  auto registration = domain.registrations().acquire({rings.memory_.get(), bytes}, Access::messages);
  if (!registration) return std::unexpected(registration.error());
  rings.registration_ = std::move(*registration);
  return rings;
}

}  // namespace tributary::transport::verbs
