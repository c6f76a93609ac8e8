// Every message of the handshake in every state, and attacks of a process without the secret that overhears messages.
#include "client/control/mutual_proof.h"

#include <gtest/gtest.h>

#include "client/control/frame_seal.h"

namespace tributary::client {
namespace {

Secret secret(std::uint8_t first) {
  Secret s{};
  s[0] = static_cast<std::byte>(first);
  return s;
}

ProofScope scope(std::uint32_t connecting = 3, std::uint32_t accepting = 0) {
  return {.purpose = "control", .connecting = connecting, .accepting = accepting};
}

struct Pair {
  ConnectingProof connecting{secret(1), scope()};
  AcceptingProof accepting{secret(1), make_nonce().value()};
};

TEST(MutualProof, BothSidesProveThemselvesAndHaveTheSameKeys) {
  Pair pair;
  const auto answer = pair.connecting.answer(pair.accepting.nonce());
  ASSERT_TRUE(answer);
  EXPECT_FALSE(pair.connecting.proved());
  const auto proof = pair.accepting.check(scope(), *answer);
  ASSERT_TRUE(proof);
  EXPECT_TRUE(pair.accepting.proved());
  EXPECT_EQ(pair.accepting.scope().connecting, 3U);
  ASSERT_TRUE(pair.connecting.check(*proof));
  EXPECT_TRUE(pair.connecting.proved());
  EXPECT_EQ(pair.connecting.keys().from_connecting, pair.accepting.keys().from_connecting);
  EXPECT_EQ(pair.connecting.keys().from_accepting, pair.accepting.keys().from_accepting);
  EXPECT_NE(pair.connecting.keys().from_accepting, pair.accepting.keys().from_connecting);
}

enum class Spoken : std::uint8_t { nonce, proof, wrong_proof, malformed_nonce };
enum class State : std::uint8_t { fresh, answered, proved, failed };

struct Case {
  State state;
  Spoken message;
  std::optional<Errc> error;
};

// The connecting side accepts one nonce, then one proof; any other message ends the handshake.
constexpr Case kConnecting[] = {
    {State::fresh, Spoken::nonce, std::nullopt},     {State::fresh, Spoken::malformed_nonce, Errc::corrupt},
    {State::fresh, Spoken::proof, Errc::corrupt},    {State::fresh, Spoken::wrong_proof, Errc::corrupt},
    {State::answered, Spoken::nonce, Errc::corrupt}, {State::answered, Spoken::malformed_nonce, Errc::corrupt},
    {State::answered, Spoken::proof, std::nullopt},  {State::answered, Spoken::wrong_proof, Errc::denied},
    {State::proved, Spoken::nonce, Errc::corrupt},   {State::proved, Spoken::malformed_nonce, Errc::corrupt},
    {State::proved, Spoken::proof, Errc::corrupt},   {State::proved, Spoken::wrong_proof, Errc::corrupt},
    {State::failed, Spoken::nonce, Errc::corrupt},   {State::failed, Spoken::malformed_nonce, Errc::corrupt},
    {State::failed, Spoken::proof, Errc::corrupt},   {State::failed, Spoken::wrong_proof, Errc::corrupt},
};

TEST(MutualProof, TheConnectingSideTakesEachMessageOnlyInItsState) {
  for (const Case& c : kConnecting) {
    SCOPED_TRACE(testing::Message() << "state " << static_cast<int>(c.state) << ", message "
                                    << static_cast<int>(c.message));
    Pair pair;
    std::string proof = std::string(64, '0');
    if (c.state != State::fresh) {
      const auto answer = pair.connecting.answer(pair.accepting.nonce());
      ASSERT_TRUE(answer);
      proof = pair.accepting.check(scope(), *answer).value();
    }
    if (c.state == State::proved) {
      ASSERT_TRUE(pair.connecting.check(proof));
    }
    if (c.state == State::failed) {
      ASSERT_FALSE(pair.connecting.check(std::string(64, '1')));
    }
    Status outcome;
    if (c.message == Spoken::nonce || c.message == Spoken::malformed_nonce) {
      const auto answer =
          pair.connecting.answer(c.message == Spoken::nonce ? make_nonce().value() : std::string("00zz"));
      if (!answer) outcome = std::unexpected(answer.error());
    } else {
      outcome = pair.connecting.check(c.message == Spoken::proof ? proof : std::string(64, '1'));
    }
    EXPECT_EQ(outcome.has_value(), !c.error);
    if (!outcome && c.error) {
      EXPECT_EQ(outcome.error().code, *c.error);
    }
    EXPECT_EQ(pair.connecting.proved(), c.state == State::answered && c.message == Spoken::proof);
    if (!pair.connecting.proved()) {
      EXPECT_THROW((void)pair.connecting.keys(), std::logic_error);
    }
  }
}

TEST(MutualProof, TheAcceptingSideTakesOneAnswer) {
  Pair pair;
  const auto answer = pair.connecting.answer(pair.accepting.nonce());
  ASSERT_TRUE(pair.accepting.check(scope(), *answer));
  EXPECT_EQ(pair.accepting.check(scope(), *answer).error().code, Errc::corrupt);
  EXPECT_FALSE(pair.accepting.proved());
  EXPECT_THROW((void)pair.accepting.keys(), std::logic_error);
}

TEST(MutualProof, AWrongAnswerEndsTheProof) {
  Pair pair;
  auto answer = pair.connecting.answer(pair.accepting.nonce()).value();
  auto wrong = answer;
  wrong.proof[5] = wrong.proof[5] == '0' ? '1' : '0';
  EXPECT_EQ(pair.accepting.check(scope(), wrong).error().code, Errc::denied);
  EXPECT_FALSE(pair.accepting.check(scope(), answer));
  EXPECT_FALSE(pair.accepting.proved());
}

TEST(MutualProof, AProofHoldsOnlyForItsScope) {
  ProofScope other_purpose = scope(), other_detail = scope();
  other_purpose.purpose = "collective";
  other_detail.detail = "17";
  for (const ProofScope& claimed : {scope(2, 0), scope(3, 1), scope(0, 3), other_purpose, other_detail}) {
    Pair pair;
    const auto answer = pair.connecting.answer(pair.accepting.nonce());
    EXPECT_EQ(pair.accepting.check(claimed, *answer).error().code, Errc::denied);
  }
}

TEST(MutualProof, WithoutTheSecretNeitherSideProvesAnything) {
  AcceptingProof fake(secret(2), make_nonce().value());
  ConnectingProof rank(secret(1), scope());
  const auto answer = rank.answer(fake.nonce());
  EXPECT_EQ(fake.check(scope(), *answer).error().code, Errc::denied);
  for (const std::string& said : {std::string(), answer->proof, answer->nonce, fake.nonce(), std::string(64, '0')}) {
    ConnectingProof again(secret(1), scope());
    const auto to_fake = again.answer(fake.nonce());
    EXPECT_EQ(again.check(said.empty() ? to_fake->proof : said).error().code, Errc::denied) << said;
  }
}

// An attacker sends a rank's own messages back to it, as an answer, or over another connection on which the rank is the
// other side.
TEST(MutualProof, ReflectedMessagesProveNothing) {
  AcceptingProof accepting(secret(1), make_nonce().value());
  EXPECT_EQ(accepting.check(scope(), {.nonce = accepting.nonce(), .proof = std::string(64, '0')}).error().code,
            Errc::denied);
  // An attacker at rank 0's address has the nonce of rank 3's own listener, and shows rank 3's answer there.
  AcceptingProof own_listener(secret(1), make_nonce().value());
  ConnectingProof rank(secret(1), scope(3, 0));
  const auto answer = rank.answer(own_listener.nonce());
  EXPECT_EQ(own_listener.check(scope(3, 3), *answer).error().code, Errc::denied);
}

TEST(MutualProof, ARepeatedProofIsRefusedOnAnotherConnection) {
  Pair first;
  const auto answer = first.connecting.answer(first.accepting.nonce());
  const auto proof = first.accepting.check(scope(), *answer);
  ASSERT_TRUE(proof);
  AcceptingProof second(secret(1), make_nonce().value());
  EXPECT_EQ(second.check(scope(), *answer).error().code, Errc::denied);
  ConnectingProof again(secret(1), scope());
  ASSERT_TRUE(again.answer(first.accepting.nonce())) << "the attacker may repeat the nonce, too";
  EXPECT_EQ(again.check(*proof).error().code, Errc::denied);
}

TEST(MutualProof, WithoutANonceEachProofIsRefused) {
  AcceptingProof accepting(secret(1), "");
  EXPECT_EQ(accepting.check(scope(), {.nonce = make_nonce().value(), .proof = std::string(64, '0')}).error().code,
            Errc::io);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct Sealed {
  FrameHeader header;
  std::vector<std::byte> body;
};
Sealed sealed(FrameSeal& seal, FrameType type, std::string_view text) {
  Sealed frame{.header = {.type = type}, .body = bytes_of(text)};
  frame.header.operation = 7;
  seal.seal(frame.header, frame.body);
  return frame;
}

TEST(FrameSeal, BringsFramesAsTheyWereAndHidesTheirBodies) {
  FrameSeal out(secret(1)), in(secret(1));
  for (const std::string_view text : {"welcome", "", "a token"}) {
    Sealed frame = sealed(out, FrameType::commit, text);
    if (!text.empty()) {
      EXPECT_NE(frame.body, bytes_of(text));
    }
    ASSERT_TRUE(in.open(frame.header, frame.body));
    EXPECT_EQ(frame.body, bytes_of(text));
    EXPECT_EQ(frame.header.operation, 7U);
    EXPECT_EQ(frame.header.group, 0U);
  }
}

TEST(FrameSeal, NothingCanBeChangedRepeatedLeftOutOrSentBack) {
  const auto refused = [](auto&& change) {
    FrameSeal out(secret(1)), in(secret(1));
    Sealed first = sealed(out, FrameType::commit, "one"), second = sealed(out, FrameType::abort, "two");
    return !change(in, first, second);
  };
  EXPECT_TRUE(refused([](FrameSeal& in, Sealed& first, Sealed&) {
    first.body[0] ^= std::byte{1};
    return in.open(first.header, first.body);
  }));
  EXPECT_TRUE(refused([](FrameSeal& in, Sealed& first, Sealed&) {
    ++first.header.operation;
    return in.open(first.header, first.body);
  }));
  EXPECT_TRUE(refused([](FrameSeal& in, Sealed& first, Sealed&) {
    first.header.type = FrameType::freeze;
    return in.open(first.header, first.body);
  }));
  EXPECT_TRUE(refused([](FrameSeal& in, Sealed& first, Sealed&) {
    first.body.pop_back();
    return in.open(first.header, first.body);
  }));
  EXPECT_TRUE(refused([](FrameSeal& in, Sealed&, Sealed& second) { return in.open(second.header, second.body); }));
  EXPECT_TRUE(refused([](FrameSeal& in, Sealed& first, Sealed& second) {
    const Sealed again = first;
    EXPECT_TRUE(in.open(first.header, first.body));
    Sealed repeated = again;
    const bool opened = in.open(repeated.header, repeated.body);
    EXPECT_FALSE(in.open(second.header, second.body)) << "after a wrong frame no frame opens";
    return opened;
  }));
  EXPECT_TRUE(refused([](FrameSeal&, Sealed& first, Sealed&) {
    FrameSeal other_direction(secret(2));
    return other_direction.open(first.header, first.body);
  }));
}

}  // namespace
}  // namespace tributary::client
