#include "transport/verbs/proof.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace tributary::transport::verbs {
namespace {

LinkSecret some_secret() {
  LinkSecret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i + 1);
  return secret;
}
sockaddr_in four(const char* text, std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}
Proof request(const LinkSecret& secret, const Greeting& greeting, const sockaddr_in& from) {
  return proof_of_request(secret, greeting, reinterpret_cast<const sockaddr&>(from));
}

TEST(RdmaProof, DependsOnEveryByteOfTheGreetingExceptTheProof) {
  const Greeting greeting{.epoch = 3, .group = 77, .child = 5, .message_eighths = 520, .lane = 2, .receive_depth = 32};
  const Proof right = request(some_secret(), greeting, four("10.0.0.1"));
  for (std::size_t i = 0; i < sizeof greeting; ++i) {
    Greeting other = greeting;
    reinterpret_cast<std::uint8_t*>(&other)[i] ^= 0x10;
    const bool in_proof = i >= offsetof(Greeting, proof);
    EXPECT_EQ(same_proof(request(some_secret(), other, four("10.0.0.1")), right), in_proof) << i;
  }
}

TEST(RdmaProof, DependsOnTheSecretAndTheAddressButNotOnThePort) {
  const Greeting greeting{.group = 77};
  const Proof right = request(some_secret(), greeting, four("10.0.0.1"));
  EXPECT_TRUE(same_proof(request(some_secret(), greeting, four("10.0.0.1", 4321)), right));
  EXPECT_FALSE(same_proof(request(some_secret(), greeting, four("10.0.0.2")), right));
  LinkSecret other = some_secret();
  other[15] ^= std::byte{1};
  EXPECT_FALSE(same_proof(request(other, greeting, four("10.0.0.1")), right));
  sockaddr_in6 mapped{};  // some systems give an IPv4 address in this form
  mapped.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "::ffff:10.0.0.1", &mapped.sin6_addr);
  EXPECT_TRUE(same_proof(proof_of_request(some_secret(), greeting, reinterpret_cast<const sockaddr&>(mapped)), right));
}

TEST(RdmaProof, InAnAnswerDependsOnTheRequest) {
  const Greeting greeting{.group = 77};
  const Proof one = request(some_secret(), greeting, four("10.0.0.1"));
  const Proof other = request(some_secret(), greeting, four("10.0.0.2"));
  EXPECT_FALSE(
      same_proof(proof_of_answer(some_secret(), greeting, one), proof_of_answer(some_secret(), greeting, other)));
  // An answer must differ from its request.
  EXPECT_FALSE(same_proof(proof_of_answer(some_secret(), greeting, one), one));
}

}  // namespace
}  // namespace tributary::transport::verbs
