// The ways to meet again: what ranks tell each other of them, and what each rank derives itself.
#include "client/api/spare_meetings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tributary::client {
namespace {

UniqueId some_id() {
  UniqueId id{{"10.0.0.1", 7000}, {}};
  std::ranges::fill(id.secret, std::byte{0x5A});
  return id;
}

template <class Bytes>
bool has(const Bytes& bytes, const Secret& secret) {
  return !std::ranges::search(std::as_bytes(std::span(bytes)), secret).empty();
}

TEST(MeetingOffers, AnOfferHasTheAddressButNotTheSecret) {
  const UniqueId id = some_id();
  const OwnMeeting meeting(id);
  const auto offer = meeting.offer(), other = meeting.offer();
  ASSERT_TRUE(offer && other);
  EXPECT_FALSE(has(offer->bytes, id.secret));
  const auto told = decode_unique_id(offer->bytes);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->root, id.root);
  EXPECT_NE(offer->bytes, other->bytes) << "the nonces are equal";
}

TEST(MeetingOffers, TheSecretDependsOnAllThatTheMembersMustAgreeOn) {
  const auto offer = OwnMeeting(some_id()).offer(), other = OwnMeeting(some_id()).offer();
  ASSERT_TRUE(offer && other);
  const auto secret = [](std::byte old, const char* purpose, const MeetingOffer& at, const Members& members,
                         std::uint32_t attempt) {
    Secret of_old{};
    of_old.fill(old);
    return id_of_members(of_old, purpose, at, members, attempt)->secret;
  };
  const std::byte old{1};
  const Secret one = secret(old, "a split", *offer, {0, 1}, 0);
  EXPECT_EQ(one, secret(old, "a split", *offer, {0, 1}, 0));
  EXPECT_FALSE(has(offer->bytes, one));
  EXPECT_NE(one, secret(std::byte{2}, "a split", *offer, {0, 1}, 0));
  EXPECT_NE(one, secret(old, "a shrunk group", *offer, {0, 1}, 0));
  EXPECT_NE(one, secret(old, "a split", *other, {0, 1}, 0));
  EXPECT_NE(one, secret(old, "a split", *offer, {1, 0}, 0));
  EXPECT_NE(one, secret(old, "a split", *offer, {0, 1, 2}, 0));
  EXPECT_NE(one, secret(old, "a split", *offer, {0, 1}, 1));
}

TEST(SealedIds, OnlyTheSameGroupReadsAnId) {
  const UniqueId id = some_id();
  const auto bytes = encode(id);
  ASSERT_TRUE(bytes);
  Secret old{}, other{};
  other.fill(std::byte{1});
  auto sealed = seal_id(old, *bytes);
  ASSERT_TRUE(sealed);
  EXPECT_FALSE(has(sealed->bytes, id.secret));
  EXPECT_EQ(open_id(old, *sealed).value(), *bytes);
  EXPECT_EQ(open_id(other, *sealed).error().code, Errc::denied);
  sealed->bytes[20] ^= std::byte{1};
  EXPECT_EQ(open_id(old, *sealed).error().code, Errc::denied);
}

}  // namespace
}  // namespace tributary::client
