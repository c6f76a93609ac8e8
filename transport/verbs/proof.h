#pragma once
// Proofs that the connecting and the answering side have the secret of the place that the connection claims, so that a
// stranger costs no queue pair. A proof is valid only for the address from which it is sent and for the numbers in its
// greeting. The connection's first frame has the token itself.
#include <sys/socket.h>

#include "transport/verbs/wire.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::transport::verbs {

using Proof = decltype(Greeting::proof);

/// The proof of a request that comes from this address.
[[nodiscard]] Proof proof_of_request(const LinkSecret& secret, const Greeting& request, const sockaddr& from) noexcept;
/// The proof of the answer to a request whose proof is `request`.
[[nodiscard]] Proof proof_of_answer(const LinkSecret& secret, const Greeting& answer, const Proof& request) noexcept;
/// Compares two proofs in constant time.
[[nodiscard]] bool same_proof(const Proof& a, const Proof& b) noexcept;
/// The place that a request claims.
[[nodiscard]] LinkName claim_of(const Greeting& request) noexcept;

}  // namespace tributary::transport::verbs
